package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that the lab sets.
const fieldManager = "skerry"

// apply makes the objects of a YAML stream as they are written there.
func (c *Cluster) apply(ctx context.Context, manifest []byte) error {
	objects, err := c.objects(manifest)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := o.apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

// object of a manifest, and where the API server has it.
type object struct {
	*unstructured.Unstructured
	at dynamic.ResourceInterface
}

// objects are those of a YAML stream.
func (c *Cluster) objects(manifest []byte) (all []object, err error) {
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	if err != nil {
		return nil, fmt.Errorf("ask the API server what it has: %w", err)
	}
	kinds := restmapper.NewDiscoveryRESTMapper(groups)
	server, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		o := object{Unstructured: &unstructured.Unstructured{}}
		if err := decoder.Decode(o.Unstructured); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read a manifest: %w", err)
		}
		kind := o.GroupVersionKind()
		mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("apply %s: %w", o, err)
		}
		o.at = server.Resource(mapping.Resource).Namespace(o.GetNamespace())
		all = append(all, o)
	}
}

// String is its kind and name.
func (o object) String() string { return o.GetKind() + " " + o.GetName() }

// apply makes it as it is written.
func (o object) apply(ctx context.Context) error {
	_, err := o.at.Apply(ctx, o.GetName(), o.Unstructured, meta.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("apply %s: %w", o, err)
	}
	return nil
}
