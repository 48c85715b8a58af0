package source

import (
	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"skerry.dev/skerry/proxy/snapshot"
)

// events tells users of Services, where they look, what is not done for them. The library
// counts what is told again and again, and bounds how often.
type events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// newEvents tells in the name of a node's proxy.
func newEvents(client kubernetes.Interface, node string) events {
	b := record.NewBroadcaster()
	b.StartRecordingToSink(&corev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return events{b, b.NewRecorder(scheme.Scheme, core.EventSource{Component: "skerry-proxy", Host: node})}
}

// Refused tells by an Event what of a Service the proxy does not carry, or not as it says.
func (w *Watcher) Refused(service snapshot.Key, why string) {
	object := &core.ObjectReference{Kind: "Service", APIVersion: "v1", Namespace: service.Namespace, Name: service.Name}
	if o, ok, err := w.services.GetStore().GetByKey(service.String()); err == nil && ok {
		object.UID = o.(*core.Service).UID
	}
	w.events.recorder.Event(object, core.EventTypeWarning, "NotCarried", why)
}
