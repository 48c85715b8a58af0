package source

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect prepares to watch for a node by a kubeconfig; without one as the pod may which
// this runs in.
func Connect(kubeconfig, node string) (*Watcher, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	// Protobuf is a fifth of the work of JSON where there are many Services.
	config.ContentType = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return New(client, node)
}
