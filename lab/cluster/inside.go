package cluster

// AdminKubeconfig is the path of the file by which a program in the first node
// calls the API server, past every link.
func (c *Cluster) AdminKubeconfig() string { return c.plane.file("admin.kubeconfig") }
