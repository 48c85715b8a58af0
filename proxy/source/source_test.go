package source

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"skerry.dev/skerry/proxy/snapshot"
)

const patience = 20 * time.Second

var opted = map[string]string{proxyName: snapshot.ProxyName}

func aService(change func(*core.Service)) *core.Service {
	s := &core.Service{
		ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "web", Labels: opted, UID: "s"},
		Spec: core.ServiceSpec{
			ClusterIP: "10.96.0.5", ClusterIPs: []string{"10.96.0.5", "fd00::5"},
			Ports: []core.ServicePort{{Name: "http", Port: 80, NodePort: 30080}},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func aSlice(name string, endpoints ...discovery.Endpoint) *discovery.EndpointSlice {
	labels := map[string]string{discovery.LabelServiceName: "web"} // one of a selector has the proxy's name as well
	return &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		AddressType: discovery.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discovery.EndpointPort{{Name: new("http"), Port: new(int32(8080))}, {Name: new("other"), Port: new(int32(9))}},
	}
}

func at(ip, node string, change func(*discovery.Endpoint)) discovery.Endpoint {
	e := discovery.Endpoint{
		Addresses: []string{ip}, NodeName: &node,
		TargetRef: &core.ObjectReference{Kind: "Pod", UID: types.UID("uid-" + ip)},
	}
	if change != nil {
		change(&e)
	}
	return e
}

// What Kubernetes says of a Service becomes what the proxy knows of it.
func TestServiceOf(t *testing.T) {
	local := core.ServiceInternalTrafficPolicyLocal
	s := serviceOf(aService(func(s *core.Service) {
		s.Annotations = map[string]string{snapshot.PolicyAnnotation: "rap"}
		s.Spec.InternalTrafficPolicy = &local
		s.Spec.ExternalTrafficPolicy = core.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 31000
		s.Spec.ExternalIPs = []string{"192.0.2.1"}
		s.Spec.SessionAffinity = core.ServiceAffinityClientIP
		s.Spec.LoadBalancerSourceRanges = []string{" 192.0.2.0/24", "2001:db8::/64 "}
		s.Status.LoadBalancer.Ingress = []core.LoadBalancerIngress{{IP: "192.0.2.2"}, {IP: "192.0.2.3", IPMode: new(core.LoadBalancerIPModeProxy)}}
		s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{Name: "dns", Port: 53, Protocol: core.ProtocolUDP}, core.ServicePort{Name: "x", Port: 9, Protocol: core.ProtocolSCTP})
	}), []*discovery.EndpointSlice{
		aSlice("a", at("10.0.0.2", "n2", func(e *discovery.Endpoint) { e.Conditions.Ready = new(false) }), at("10.0.0.1", "n1", func(e *discovery.Endpoint) {
			e.Zone, e.Hints = new("z"), &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: "z"}}, ForNodes: []discovery.ForNode{{Name: "n1"}}}
		})),
		aSlice("b", at("10.0.0.2", "n2", nil), at("10.0.0.3", "n2", func(e *discovery.Endpoint) {
			e.Conditions = discovery.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		}), at("no-address.example", "n", nil)),
	})
	if s.Policy != "rap" || !s.InternalLocal || !s.ExternalLocal || s.HealthPort != 31000 || s.Affinity != 3*time.Hour {
		t.Errorf("%+v", s)
	}
	if got := fmt.Sprint(s.ClusterIPs, s.ExternalIPs, s.LoadBalancerIPs, s.SourceRanges); got != "[10.96.0.5 fd00::5] [192.0.2.1] [192.0.2.2] [192.0.2.0/24 2001:db8::/64]" {
		t.Error(got)
	}
	if len(s.Refusals) != 1 || !strings.Contains(s.Refusals[0], "SCTP") {
		t.Errorf("refusals %q", s.Refusals)
	}
	if len(s.Ports) != 2 || s.Ports[0].NodePort != 30080 || s.Ports[1].Protocol != snapshot.UDP {
		t.Fatalf("ports %+v", s.Ports)
	}
	want := []snapshot.Endpoint{
		{Addr: netip.MustParseAddrPort("10.0.0.1:8080"), Node: "n1", Zone: "z", PodUID: "uid-10.0.0.1", Ready: true, Serving: true, ForZones: []string{"z"}, ForNodes: []string{"n1"}},
		{Addr: netip.MustParseAddrPort("10.0.0.2:8080"), Node: "n2", PodUID: "uid-10.0.0.2", Ready: true, Serving: true},
		{Addr: netip.MustParseAddrPort("10.0.0.3:8080"), Node: "n2", PodUID: "uid-10.0.0.3", Serving: true, Terminating: true},
	}
	if got := s.Ports[0].Endpoints; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("endpoints\n%v\nnot\n%v", got, want)
	}
}

// Where it is not known who may call a load balancer's addresses, nobody may.
func TestSourceRanges(t *testing.T) {
	s := serviceOf(aService(func(s *core.Service) {
		s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24", "192.0.2.0"}
		s.Status.LoadBalancer.Ingress = []core.LoadBalancerIngress{{IP: "192.0.2.2"}}
	}), nil)
	if len(s.LoadBalancerIPs) != 0 || len(s.Ports) != 1 || len(s.Refusals) != 1 || !strings.Contains(s.Refusals[0], "loadBalancerSourceRanges: ") {
		t.Errorf("%+v", s)
	}
}

// A pod of a dual-stack Service is one endpoint, by the Service's first family; of the other
// where it has no address of the first. What is no pod is there by the first family alone, if that
// has any who may serve.
func TestDualStack(t *testing.T) {
	pod := func(uid types.UID, e discovery.Endpoint) discovery.Endpoint {
		if e.TargetRef = nil; uid != "" {
			e.TargetRef = &core.ObjectReference{Kind: "Pod", UID: uid}
		}
		return e
	}
	six := aSlice("six", pod("a", at("fd00::1", "n1", nil)), pod("b", at("fd00::2", "n2", nil)))
	four := aSlice("four", pod("a", at("10.0.0.1", "n1", nil)), pod("b", at("10.0.0.2", "n2", nil)))
	more := aSlice("more", pod("c", at("10.0.0.3", "n2", nil)), pod("", at("10.0.0.4", "n2", nil)))
	alone := aSlice("alone", pod("", at("fd00::5", "n2", nil)))
	six.AddressType, alone.AddressType = discovery.AddressTypeIPv6, discovery.AddressTypeIPv6
	empty := aSlice("empty")
	for _, c := range []struct {
		families []core.IPFamily
		slices   []*discovery.EndpointSlice
		want     string
	}{
		{[]core.IPFamily{core.IPv4Protocol, core.IPv6Protocol}, []*discovery.EndpointSlice{six, four}, "[10.0.0.1:8080 10.0.0.2:8080]"},
		{[]core.IPFamily{core.IPv6Protocol, core.IPv4Protocol}, []*discovery.EndpointSlice{six, four}, "[[fd00::1]:8080 [fd00::2]:8080]"},
		{[]core.IPFamily{core.IPv4Protocol, core.IPv6Protocol}, []*discovery.EndpointSlice{six, empty}, "[[fd00::1]:8080 [fd00::2]:8080]"},
		{nil, []*discovery.EndpointSlice{four}, "[10.0.0.1:8080 10.0.0.2:8080]"},
		{[]core.IPFamily{core.IPv6Protocol, core.IPv4Protocol}, []*discovery.EndpointSlice{four, six, more}, "[10.0.0.3:8080 [fd00::1]:8080 [fd00::2]:8080]"},
		{[]core.IPFamily{core.IPv4Protocol, core.IPv6Protocol}, []*discovery.EndpointSlice{four, more, alone}, "[10.0.0.1:8080 10.0.0.2:8080 10.0.0.3:8080 10.0.0.4:8080]"},
		{[]core.IPFamily{core.IPv4Protocol, core.IPv6Protocol}, []*discovery.EndpointSlice{empty, alone}, "[[fd00::5]:8080]"},
	} {
		s := serviceOf(aService(func(s *core.Service) { s.Spec.IPFamilies = c.families }), c.slices)
		var got []netip.AddrPort
		for _, e := range s.Ports[0].Endpoints {
			got = append(got, e.Addr)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("of %v: endpoints %v, not %s", c.families, got, c.want)
		}
	}
}

// What cannot be carried is said, with what to make of it.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*core.Service)
	}{
		{"ExternalName", func(s *core.Service) { s.Spec.Type = core.ServiceTypeExternalName }},
		{"headless", func(s *core.Service) { s.Spec.ClusterIP = core.ClusterIPNone }},
		{`policy "fastest" is none of`, func(s *core.Service) { s.Annotations = map[string]string{snapshot.PolicyAnnotation: "fastest"} }},
	} {
		s := serviceOf(aService(c.change), nil)
		if len(s.Refusals) != 1 || !strings.Contains(s.Refusals[0], c.want) {
			t.Errorf("refusals %q, not of %s", s.Refusals, c.want)
		}
	}
}

// Changes come one by one, each once, and what is gone is told.
func TestWatch(t *testing.T) {
	client := fake.NewClientset(aService(nil), aSlice("a", at("10.0.0.1", "n1", nil)),
		&core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", Labels: map[string]string{core.LabelTopologyZone: "z"}}, Spec: core.NodeSpec{PodCIDRs: []string{"10.244.1.0/24"}},
			Status: core.NodeStatus{Addresses: []core.NodeAddress{{Type: core.NodeInternalIP, Address: "10.1.0.1"}}}})
	w, err := New(client, nil, "n1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan snapshot.Change, 10)
	done := make(chan error, 1)
	go func() { done <- w.Watch(ctx, func(c snapshot.Change) { changes <- c }) }()
	next := func() snapshot.Change {
		t.Helper()
		select {
		case c := <-changes:
			return c
		case <-time.After(patience):
			t.Fatal("no change is told")
			return snapshot.Change{}
		}
	}
	web := snapshot.Key{Namespace: "default", Name: "web"}
	if c := next(); len(c.Services[web].Ports[0].Endpoints) != 1 || c.Nodes["n1"].Zone != "z" || fmt.Sprint(c.Nodes["n1"].Addrs, c.Nodes["n1"].Pods) != "[10.1.0.1] [10.244.1.0/24]" {
		t.Errorf("at first %+v", c)
	}
	w.Refused(web, "port 9: SCTP is not carried")
	awaitEvent(t, client)
	if _, err := client.DiscoveryV1().EndpointSlices("default").Create(ctx, aSlice("b", at("10.0.0.2", "n1", nil)), meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if c := next(); len(c.Services[web].Ports[0].Endpoints) != 2 || len(c.Nodes) != 0 {
		t.Errorf("with another slice %+v", c)
	}
	if err := client.CoreV1().Services("default").Delete(ctx, "web", meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if c := next(); len(c.Services) != 1 || c.Services[web] != nil {
		t.Errorf("without the Service %+v", c)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// While the API server is away what was told stays; what has changed meanwhile is told when
// it is back.
func TestAPIServerGone(t *testing.T) {
	client := fake.NewClientset(aService(nil), aSlice("a", at("10.0.0.1", "n1", nil)))
	var gone atomic.Bool
	var mu sync.Mutex
	var watches []watch.Interface
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return gone.Load(), nil, errAway })
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if gone.Load() {
			return true, nil, errAway
		}
		one, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		mu.Lock()
		defer mu.Unlock()
		watches = append(watches, one)
		return true, one, err
	})
	w, err := New(client, nil, "n1")
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan snapshot.Change, 10)
	go func() { _ = w.Watch(t.Context(), func(c snapshot.Change) { changes <- c }) }()
	web := snapshot.Key{Namespace: "default", Name: "web"}
	if c := <-changes; len(c.Services[web].Ports[0].Endpoints) != 1 {
		t.Fatalf("at first %+v", c)
	}
	gone.Store(true)
	mu.Lock()
	for _, one := range watches {
		one.Stop()
	}
	mu.Unlock()
	if err := client.Tracker().Add(aSlice("b", at("10.0.0.2", "n1", nil))); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-changes:
		t.Errorf("while it is away %+v is told", c)
	case <-time.After(2 * time.Second): // in which it is called again and again
	}
	gone.Store(false)
	select {
	case c := <-changes:
		if len(c.Services[web].Ports[0].Endpoints) != 2 {
			t.Errorf("when it is back %+v", c.Services[web])
		}
	case <-time.After(patience):
		t.Error("what has changed meanwhile is not told")
	}
}

var errAway = errors.New("connection refused")

// awaitEvent waits for the Event that tells users of the Service.
func awaitEvent(t *testing.T, client *fake.Clientset) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		list, err := client.CoreV1().Events("default").List(t.Context(), meta.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 0 {
			e := list.Items[0]
			if e.InvolvedObject.UID != "s" || e.Reason != "NotCarried" || e.Message != "port 9: SCTP is not carried" || e.Source.Host != "n1" {
				t.Errorf("the Event is %+v", e)
			}
			return
		}
		if time.Since(begun) > patience {
			t.Fatal("no Event is told")
		}
	}
}

// One that is neither in a pod nor told says so, and not what a library says.
func TestConnectNowhere(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", "n1"); !errors.Is(err, ErrNowhere) {
		t.Errorf("in no pod: %v", err)
	}
	if _, err := Connect(t.TempDir()+"/none", "n1"); err == nil || errors.Is(err, ErrNowhere) {
		t.Errorf("by a file that is not there: %v", err)
	}
}

func TestSlim(t *testing.T) {
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n", Annotations: map[string]string{"a": "b"}}}
	o, err := slim(n)
	if got, ok := o.(*core.Node); err != nil || !ok || got.Name != "n" || got.Annotations != nil {
		t.Errorf("%v, %v", o, err)
	}
	long := at("10.0.0.1", "n1", func(e *discovery.Endpoint) {
		e.Hostname, e.Zone, e.TargetRef.Name = new("h"), new("z"), "web-1"
	})
	o, err = slim(aSlice("a", long))
	short := at("10.0.0.1", "n1", func(e *discovery.Endpoint) { e.Zone = new("z") })
	if got, ok := o.(*discovery.EndpointSlice); err != nil || !ok || !reflect.DeepEqual(got.Endpoints, []discovery.Endpoint{short}) {
		t.Errorf("%v, %v", o, err)
	}
	if !slices.Equal(addresses([]string{"x", "::ffff:10.0.0.1"}), []netip.Addr{netip.MustParseAddr("10.0.0.1")}) {
		t.Error("addresses")
	}
}
