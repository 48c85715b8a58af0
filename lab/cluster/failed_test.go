package cluster

import (
	"errors"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that waits for an image in vain is told apart from one that still may start.
func TestLacksImage(t *testing.T) {
	waiting := func(reason string) core.Pod {
		return core.Pod{
			ObjectMeta: meta.ObjectMeta{Name: "web-1"}, Spec: core.PodSpec{NodeName: "c1-worker"},
			Status: core.PodStatus{ContainerStatuses: []core.ContainerStatus{{
				Image: "example/web:1", State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason}},
			}}},
		}
	}
	for reason, want := range map[string]string{
		"ErrImageNeverPull": "node c1-worker has no image example/web:1, which pod web-1 is to run",
		"InvalidImageName":  "node c1-worker has no image example/web:1, which pod web-1 is to run",
		"ContainerCreating": "",
		"CrashLoopBackOff":  "",
	} {
		err := lacksImage(waiting(reason))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: got %v, want %q", reason, err, want)
		}
	}
	if err := lacksImage(core.Pod{}); err != nil {
		t.Errorf("a pod without containers: %v", err)
	}
	early := waiting("ErrImageNeverPull")
	early.Status.InitContainerStatuses, early.Status.ContainerStatuses = early.Status.ContainerStatuses, nil
	if _, told := errors.AsType[*ImageError](lacksImage(early)); !told {
		t.Error("a container that comes first is not looked at")
	}
}

func TestHolderOf(t *testing.T) {
	services := []core.Service{
		{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "inner"}, Spec: core.ServiceSpec{Ports: []core.ServicePort{{Port: 30080}}}},
		{ObjectMeta: meta.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: core.ServiceSpec{Ports: []core.ServicePort{{NodePort: 30081}, {NodePort: 30080}}}},
	}
	if got := holderOf(services, 30080); got != "shop/web" {
		t.Errorf("got %q", got)
	}
	for err, want := range map[*PortError]string{
		{Port: 30080, Service: holderOf(services, 30080)}: "port 30080 of the nodes is taken by Service shop/web",
		{Port: 30082, Service: holderOf(services, 30082)}: "port 30082 of the nodes is taken",
	} {
		if err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	}
}
