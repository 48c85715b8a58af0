// Package source watches what a cluster says of the Services that opted in, of their
// endpoints and of nodes, and gives it on as changes of a snapshot. It decides nothing.
// While the API server is away, what was known last stays. Start at Watch.
package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unique"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"skerry.dev/skerry/proxy/snapshot"
)

// proxyName is the label by which a Service names its proxy. EndpointSlices have it where the
// cluster makes them of a selector, a little later, and not where a user or another controller
// does: so those of all Services are watched, as kube-proxy watches them.
const proxyName = "service.kubernetes.io/service-proxy-name"

// gatherFor is how long changes are waited for after the first, so that many that come at
// once are one.
const gatherFor = 5 * time.Millisecond

// A Watcher follows a cluster.
type Watcher struct {
	services, slices, nodes cache.SharedIndexInformer
	factories               []informers.SharedInformerFactory
	synced                  []cache.InformerSynced // whether all of the first list was noted
	events                  events
	client                  kubernetes.Interface
	metrics                 metrics.PodMetricsesGetter

	mu         sync.Mutex
	dirty      map[snapshot.Key]bool
	dirtyNodes map[string]bool
	woken      chan struct{}
	told       map[snapshot.Key]*snapshot.Service
	toldNodes  map[string]*snapshot.Node
}

// bySlicesService is the index of EndpointSlices by their Service.
const bySlicesService = "service"

// New prepares to watch by a client, for a node; metrics is who is asked for what pods use.
func New(client kubernetes.Interface, metrics metrics.PodMetricsesGetter, node string) (*Watcher, error) {
	w := &Watcher{
		events: newEvents(client, node), client: client, metrics: metrics,
		dirty: map[snapshot.Key]bool{}, dirtyNodes: map[string]bool{}, woken: make(chan struct{}, 1),
		told: map[snapshot.Key]*snapshot.Service{}, toldNodes: map[string]*snapshot.Node{},
	}
	of := func(selector string) informers.SharedInformerFactory {
		f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim),
			informers.WithTweakListOptions(func(o *meta.ListOptions) { o.LabelSelector = selector }))
		w.factories = append(w.factories, f)
		return f
	}
	w.services = of(proxyName + "=" + snapshot.ProxyName).Core().V1().Services().Informer()
	w.slices = of("!" + core.IsHeadlessService).Discovery().V1().EndpointSlices().Informer()
	w.nodes = of("").Core().V1().Nodes().Informer()
	err := w.slices.AddIndexers(cache.Indexers{bySlicesService: func(o any) ([]string, error) {
		if s, ok := o.(*discovery.EndpointSlice); ok {
			return []string{serviceOfSlice(s).String()}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index endpoint slices: %w", err)
	}
	for _, informer := range []cache.SharedIndexInformer{w.services, w.slices, w.nodes} {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: w.changed, UpdateFunc: func(was, is any) { w.changed(was); w.changed(is) }, DeleteFunc: w.changed,
		})
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		w.synced = append(w.synced, handler.HasSynced)
	}
	return w, nil
}

// slim drops what the proxy has no use for: of ten thousand Services that is most of the
// memory.
func slim(o any) (any, error) {
	switch o := o.(type) {
	case *core.Node:
		return &core.Node{ObjectMeta: meta.ObjectMeta{Name: o.Name, ResourceVersion: o.ResourceVersion, Labels: o.Labels}, Spec: core.NodeSpec{PodCIDRs: o.Spec.PodCIDRs}, Status: core.NodeStatus{Addresses: o.Status.Addresses, Allocatable: o.Status.Allocatable}}, nil
	case *core.Service:
		o.ManagedFields, o.Status.Conditions = nil, nil
	case *discovery.EndpointSlice:
		o.ManagedFields, o.OwnerReferences = nil, nil
		for i := range o.Endpoints {
			slimEndpoint(&o.Endpoints[i])
		}
	}
	return o, nil
}

// slimEndpoint drops what is not of use, and has the same names share their memory.
func slimEndpoint(e *discovery.Endpoint) {
	e.Hostname, e.DeprecatedTopology = nil, nil
	if e.TargetRef != nil {
		e.TargetRef = &core.ObjectReference{Kind: unique.Make(e.TargetRef.Kind).Value(), UID: e.TargetRef.UID}
	}
	for _, name := range []*string{e.NodeName, e.Zone} {
		if name != nil {
			*name = unique.Make(*name).Value()
		}
	}
}

func serviceOfSlice(s *discovery.EndpointSlice) snapshot.Key {
	return snapshot.Key{Namespace: s.Namespace, Name: s.Labels[discovery.LabelServiceName]}
}

// changed notes whose object was added, updated or deleted.
func (w *Watcher) changed(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	w.mu.Lock()
	switch o := o.(type) {
	case *core.Service:
		w.dirty[snapshot.Key{Namespace: o.Namespace, Name: o.Name}] = true
	case *discovery.EndpointSlice:
		w.dirty[serviceOfSlice(o)] = true
	case *core.Node:
		w.dirtyNodes[o.Name] = true
	}
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// ErrNotSynced is of an API server that has not answered in time.
var ErrNotSynced = errors.New("the API server has not told what there is")

// Watch follows until ctx ends. Tell is called with all that there is once it is known,
// and with each change after that, one call after the other. What it is given must not be
// changed.
func (w *Watcher) Watch(ctx context.Context, tell func(snapshot.Change)) error {
	for _, f := range w.factories {
		f.StartWithContext(ctx)
	}
	defer func() {
		for _, f := range w.factories {
			f.Shutdown()
		}
		w.events.broadcaster.Shutdown()
	}()
	if !cache.WaitForCacheSync(ctx.Done(), w.synced...) {
		return fmt.Errorf("%w: %w", ErrNotSynced, context.Cause(ctx))
	}
	first := true
	for {
		if c := w.take(); first || len(c.Services)+len(c.Nodes) > 0 {
			first = false
			tell(c)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.woken:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(gatherFor):
		}
	}
}

// take makes what has changed.
func (w *Watcher) take() snapshot.Change {
	w.mu.Lock()
	services, nodes := w.dirty, w.dirtyNodes
	w.dirty, w.dirtyNodes = map[snapshot.Key]bool{}, map[string]bool{}
	w.mu.Unlock()
	c := snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{}, Nodes: map[string]*snapshot.Node{}}
	for key := range services {
		differs(c.Services, w.told, key, w.service(key))
	}
	for name := range nodes {
		differs(c.Nodes, w.toldNodes, name, w.node(name))
	}
	return c
}

// differs notes what is not as it was told last.
func differs[K comparable, V any](changes, told map[K]*V, key K, now *V) {
	if was := told[key]; reflect.DeepEqual(was, now) {
		return
	}
	changes[key] = now
	if now == nil {
		delete(told, key)
	} else {
		told[key] = now
	}
}

// service is that of a key; nil where it is gone.
func (w *Watcher) service(key snapshot.Key) *snapshot.Service {
	o, ok, err := w.services.GetStore().GetByKey(key.String())
	if err != nil || !ok {
		return nil
	}
	list, err := w.slices.GetIndexer().ByIndex(bySlicesService, key.String())
	if err != nil {
		return nil
	}
	var all []*discovery.EndpointSlice
	for _, s := range list {
		all = append(all, s.(*discovery.EndpointSlice))
	}
	return serviceOf(o.(*core.Service), all)
}

// node is that of a name; nil where it is gone.
func (w *Watcher) node(name string) *snapshot.Node {
	o, ok, err := w.nodes.GetStore().GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return nodeOf(o.(*core.Node))
}
