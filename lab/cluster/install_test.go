package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/topology"
)

// shipped is the manifest of the proxy that Skerry ships.
func shipped(t *testing.T) []byte {
	t.Helper()
	var parts [][]byte
	for _, file := range []string{"rbac.yaml", "daemonset.yaml"} {
		text, err := os.ReadFile("../../deploy/proxy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, text)
	}
	return bytes.Join(parts, []byte("---\n"))
}

// installs has the proxy that Skerry ships on every node, as its manifests say: a Service
// that opts in is balanced over the pods of both nodes, at its addresses and at any node's
// port, of either family, and by nobody once the proxy is taken away.
func installs(t *testing.T, on site) {
	c := open(t, on)
	mustKubectl(t, on, "--namespace", "kube-system", "create", "secret", "generic", "skerry-proxy-keys", "--from-literal=key="+strings.Repeat("k", 32))
	installed, err := c.Install(t.Context(), shipped(t))
	if err != nil {
		t.Fatal(err)
	}
	removed := false
	remove := func() {
		if removed = true; installed.Remove() != nil {
			t.Error("the proxy is not taken away")
		}
	}
	t.Cleanup(func() {
		if !removed {
			remove()
		}
	})
	w := hello(on)
	w.Nodes, w.Anywhere = []topology.Ref{on.worker(), on.head()}, true
	w.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "skerry"}
	w.Annotations = map[string]string{"proxy.skerry.dev/policy": "round-robin"}
	if err := c.Deploy(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.Background(), w.Name); err != nil {
			t.Error(err)
		}
	})
	called := []string{on.at("head", helloPort), on.at("worker", helloPort)}
	if on.lab.Topology.Dual {
		called = append(called, on.at6("head", helloPort), on.at6("worker", helloPort))
	}
	addresses, err := c.ServiceIPs(t.Context(), w.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		called = append(called, net.JoinHostPort(a, "8080"))
	}
	for _, at := range called {
		eventually(t, at, func() error { return answers(t, on, at) })
		for range 9 {
			if err := answers(t, on, at); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	}
	// A pod that is ready late is chosen when somebody calls after it.
	eventually(t, "both pods chosen, of both known", func() error {
		return errors.Join(answers(t, on, net.JoinHostPort(addresses[0], "8080")), balanced(t, on))
	})
	if uses, err := installed.Use(); err != nil || len(uses) != 3 || uses[on.worker()].CPU <= 0 {
		t.Errorf("used %+v, %v", uses, err)
	}
	var said bytes.Buffer
	if err := installed.Log(t.Context(), &said); err != nil || strings.Count(said.String(), `"msg":"ready"`) != 3 {
		t.Errorf("said %v, %s", err, &said)
	}
	if err := installed.Err(); err != nil {
		t.Error(err)
	}
	survives(t, on, installed)
	remove()
	if err := answers(t, on, on.at("worker", helloPort)); err == nil {
		t.Error("without the proxy somebody answers: kube-proxy has not left the Service alone")
	}
	if _, err := c.Install(t.Context(), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")); !errors.Is(err, cluster.ErrOneDaemonSet) {
		t.Errorf("a manifest without a DaemonSet: %v", err)
	}
}

// survives has a proxy killed: it leaves no rule behind, by which connections would go
// nowhere, and serves again when the kubelet has started it again.
func survives(t *testing.T, on site, installed *cluster.Installed) {
	t.Helper()
	if err := unix.Kill(pidOf(t, "--node="+on.host("worker")), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-installed.Done()
	if err := installed.Err(); err == nil || err.Error() != "in the pod at "+string(on.worker()) {
		t.Errorf("a proxy was killed: %v", err)
	}
	eventually(t, "served again", func() error { return answers(t, on, on.at("worker", helloPort)) })
	if uses, err := installed.Use(); err != nil || uses[on.worker()].CPU <= 0 {
		t.Errorf("until then it used %+v, %v", uses, err)
	}
	eventually(t, "both lives of one, and the others, are ready", func() error {
		var said bytes.Buffer
		if err := installed.Log(t.Context(), &said); err != nil || strings.Count(said.String(), `"msg":"ready"`) != 4 {
			return fmt.Errorf("said %w, %s", err, &said)
		}
		return nil
	})
}

// balanced asks the head's proxy whether it has chosen both pods, and what it has heard of
// their nodes.
func balanced(t *testing.T, on site) error {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return on.lab.Dial(ctx, on.head(), address)
	}}}
	answer, err := client.Get("http://127.0.0.1:4482/v1/explain?service=default/hello")
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var ports []struct {
		Endpoints []struct {
			Node   string `json:"node"`
			Chosen int    `json:"chosen"`
			Usage  any    `json:"usage"`
			RTTNs  int64  `json:"rttNs"`
			Local  bool   `json:"local"`
		} `json:"endpoints"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&ports); err != nil {
		return err
	}
	if len(ports) != 1 || len(ports[0].Endpoints) != 2 {
		return fmt.Errorf("there are %+v", ports)
	}
	for _, e := range ports[0].Endpoints {
		if e.Chosen == 0 || e.Usage == nil || !e.Local && e.RTTNs == 0 {
			return fmt.Errorf("of %+v", ports)
		}
	}
	return nil
}
