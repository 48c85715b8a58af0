package cluster

import "testing"

// It is the one that calls the API server at the first node's loopback.
func TestAdminKubeconfig(t *testing.T) {
	c := &Cluster{plane: plane{dir: "/lab/clusters/c1"}}
	if got, want := c.AdminKubeconfig(), "/lab/clusters/c1/admin.kubeconfig"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
