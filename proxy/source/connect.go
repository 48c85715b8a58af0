package source

import (
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
)

// ErrNowhere is of a proxy that is neither in a pod nor was told.
var ErrNowhere = errors.New("nothing says where the API server is: this is no pod, and no kubeconfig is given")

// Connect prepares to watch for a node by a kubeconfig; without one as the pod may which
// this runs in.
func Connect(kubeconfig, node string) (*Watcher, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, ErrNowhere
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	usage, err := metrics.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach metrics.k8s.io: %w", err)
	}
	// Protobuf is a fifth of the work of JSON where there are many Services.
	config.ContentType = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return New(client, usage, node)
}
