package source

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsfake "k8s.io/metrics/pkg/client/clientset/versioned/fake"

	"skerry.dev/skerry/proxy/snapshot"
)

// resources of a pod's containers, or of a node.
func resources(cpu, ram string) core.ResourceList {
	return core.ResourceList{core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(ram)}
}

func aPod(name, node string, limits ...core.ResourceList) core.Pod {
	p := core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}}, Spec: core.PodSpec{NodeName: node}}
	for _, l := range limits {
		p.Spec.Containers = append(p.Spec.Containers, core.Container{Resources: core.ResourceRequirements{Limits: l}})
	}
	return p
}

func using(pod string, at time.Time, containers ...core.ResourceList) metricsv1beta1.PodMetrics {
	m := metricsv1beta1.PodMetrics{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: pod, Labels: map[string]string{"app": "web"}}, Timestamp: meta.NewTime(at)}
	for _, c := range containers {
		m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Usage: c})
	}
	return m
}

// What pods use is a share of what they may: their limits, or what the node has.
func TestUsageOf(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(115, 0)
	pods := []core.Pod{
		aPod("limited", "n1", resources("500m", "64Mi"), resources("500m", "64Mi")),
		aPod("half", "n2", resources("1", "1Gi"), nil), // a container without: up to all of the node
		aPod("other", "n2", nil),
		aPod("pending", "", nil),
		aPod("unmeasured", "n3", nil),
		aPod("nowhere", "n4", nil),
	}
	told := []metricsv1beta1.PodMetrics{
		using("limited", early, resources("300m", "32Mi"), resources("300m", "64Mi")),
		using("half", early, resources("500m", "512Mi")),
		using("other", late, resources("1", "1Gi")),
		using("pending", early), using("nowhere", early, resources("1", "1Gi")), using("gone", early),
	}
	gives := map[string]core.ResourceList{"n1": resources("4", "4Gi"), "n2": resources("2", "4Gi"), "n3": resources("2", "4Gi")}
	got := usageOf(pods, told, func(node string) core.ResourceList { return gives[node] })
	want := map[string]snapshot.Usage{
		"n1": {CPU: 0.6, RAM: 0.75, Cores: 1, Measured: early},
		"n2": {CPU: 0.75, RAM: 0.25, Cores: 2, Measured: late},
		"n4": {Measured: early},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nnot\n%+v", got, want)
	}
}

// metrics.k8s.io is asked for the pods that the Service selects, and what it cannot say is
// an error.
func TestUsage(t *testing.T) {
	pod := aPod("web-1", "n1", nil)
	client := fake.NewClientset(
		aService(func(s *core.Service) { s.Spec.Selector = map[string]string{"app": "web"} }),
		aService(func(s *core.Service) { s.Name = "bare" }), &pod,
		&core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1"}, Status: core.NodeStatus{Allocatable: resources("2", "4Gi")}},
	)
	at := time.Unix(100, 0)
	var away error
	asked := &metricsfake.Clientset{}
	asked.AddReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if got := action.(clienttesting.ListAction).GetListRestrictions().Labels.String(); got != "app=web" {
			t.Errorf("pods of %q are asked for", got)
		}
		return true, &metricsv1beta1.PodMetricsList{Items: []metricsv1beta1.PodMetrics{using("web-1", at, resources("1", "1Gi"))}}, away
	})
	w, err := New(client, asked.MetricsV1beta1(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	known := make(chan bool, 1)
	go func() {
		_ = w.Watch(t.Context(), func(snapshot.Change) {
			select {
			case known <- true:
			default:
			}
		})
	}()
	<-known
	got, err := w.Usage(t.Context(), snapshot.Key{Namespace: "default", Name: "web"})
	if want := map[string]snapshot.Usage{"n1": {CPU: 0.5, RAM: 0.25, Cores: 2, Measured: at}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := w.Usage(t.Context(), snapshot.Key{Namespace: "default", Name: "bare"}); !errors.Is(err, ErrNoSelector) {
		t.Errorf("of one that selects none: %v", err)
	}
	if got, err := w.Usage(t.Context(), snapshot.Key{Namespace: "default", Name: "gone"}); len(got) != 0 || err != nil {
		t.Errorf("of none: %v, %v", got, err)
	}
	away = errAway
	if _, err := w.Usage(t.Context(), snapshot.Key{Namespace: "default", Name: "web"}); !errors.Is(err, errAway) {
		t.Errorf("while it is away: %v", err)
	}
}

// Parameters of a policy are what the annotation says, or all defaults.
func TestOptionsOf(t *testing.T) {
	for text, want := range map[string]snapshot.Options{
		"":                 {},
		`{"maxCPU": 50}`:   {MaxCPU: 50},
		"{maxRAM: 100}":    {MaxRAM: 100},
		"usage: reports\n": {Usage: snapshot.UsageReports},
		`{"maxCPU": 70, "maxRAM": 80, "usage": "metrics.k8s.io"}`: {MaxCPU: 70, MaxRAM: 80, Usage: snapshot.UsageMetrics},
	} {
		if got, err := optionsOf(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"{maxCPU: 101}":     "101 is no percentage",
		"{maxRAM: 0}":       "0 is no percentage",
		"{maxRAM: 0.9}":     "0.9",
		"{maxCpu: 90}":      "maxCpu",
		"{usage: kubelet}":  "kubelet",
		"{dataplane: ebpf}": "write one of userspace, copy-loop",
		"fast":              "annotation proxy.skerry.dev/options",
	} {
		got, err := optionsOf(text)
		if err == nil || got != (snapshot.Options{}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	loop := serviceOf(aService(func(s *core.Service) {
		s.Annotations = map[string]string{snapshot.OptionsAnnotation: "{dataplane: copy-loop}"}
		s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{Name: "dns", Port: 53, Protocol: core.ProtocolUDP})
	}), nil)
	if len(loop.Refusals) != 1 || !strings.Contains(loop.Refusals[0], "carries TCP alone") || len(loop.Ports) != 1 {
		t.Errorf("%+v", loop)
	}
	s := serviceOf(aService(func(s *core.Service) {
		s.Annotations = map[string]string{snapshot.OptionsAnnotation: "{maxCPU: 900}"}
	}), nil)
	want := "annotation proxy.skerry.dev/options:1:10: 900 is no percentage; hint: write one of 1 to 100; defaults are taken"
	if len(s.Refusals) != 1 || s.Refusals[0] != want || len(s.Ports) != 1 {
		t.Errorf("%+v", s)
	}
}
