package agent_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/netnstest"
	"skerry.dev/skerry/proxy/snapshot"
)

// Who is asked to end tells load balancers so, and goes on until what is open has ended.
func TestEnds(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	c.changes <- web("10.1.0.11")
	end, wait := begin(t, c)
	await(t, "it serves", func() bool { return ask("tcp", "10.96.0.5:80") != "" })
	open, err := net.DialTimeout("tcp", "10.96.0.5:80", patience)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	await(t, "it is carried", func() bool { return strings.Contains(get(t, "/metrics"), "skerry_proxy_connections_open 1\n") })
	end()
	await(t, "load balancers know", func() bool {
		answer, err := http.Get("http://10.1.0.1:31000/healthz")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusServiceUnavailable
	})
	healthy(t, http.StatusServiceUnavailable, `"serviceProxyHealthy":false`)
	if phase := get(t, "/readyz"); !strings.Contains(phase, "draining") {
		t.Errorf("operators are told %q", phase)
	}
	c.changes <- web("10.1.0.12")
	await(t, "others are served, and elsewhere", func() bool { return ask("tcp", "10.96.0.5:80") == "10.1.0.12" })
	_ = open.SetDeadline(time.Now().Add(patience))
	_, _ = open.Write([]byte("?"))
	if who, err := io.ReadAll(open); err != nil || string(who) != "10.1.0.11" {
		t.Errorf("what was open is answered by %q: %v", who, err)
	}
	_ = open.Close()
	wait()
	if got := ask("tcp", "10.96.0.5:80"); got != "" {
		t.Errorf("after the end %q answers", got)
	}
}

// What does not end is broken off when its time is over.
func TestEndsInTime(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	c.changes <- web("10.1.0.11")
	end, wait := beginWith(t, c, 300*time.Millisecond)
	await(t, "it serves", func() bool { return ask("tcp", "10.96.0.5:80") != "" })
	open, err := net.DialTimeout("tcp", "10.96.0.5:80", patience)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	end()
	wait()
	_ = open.SetDeadline(time.Now().Add(patience))
	if _, err := io.ReadAll(open); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what was open hangs")
	}
}

// An endpoint may be where clients call, as a pod on the host network is at its node's port:
// what the proxy sends there is not brought to it again, by either plane.
func TestEndpointIsNodePort(t *testing.T) {
	netnstest.Node(t, []string{"10.1.0.1/24", "10.1.0.11/24", "10.1.0.12/24"}, []string{"10.96.0.0/16"})
	pods(t)
	c := cluster{changes: make(chan snapshot.Change, 10), refused: make(chan string, 10)}
	at := func(plane string) snapshot.Change {
		change := web("10.1.0.11")
		for _, s := range change.Services {
			s.Options.Dataplane = plane
			s.Ports[0].NodePort, s.Ports[1].NodePort = 8080, 8053
		}
		return change
	}
	c.changes <- at("")
	defer proxy(t, c)()
	for _, call := range []struct{ network, service, pod string }{{"tcp", "10.96.0.5:80", "10.1.0.11:8080"}, {"udp", "10.96.0.5:53", "10.1.0.11:8053"}} {
		await(t, call.network+" is carried", func() bool { return ask(call.network, call.service) == "10.1.0.11" })
		if who, err := askWithin(call.network, call.pod, patience); who != "10.1.0.11" {
			t.Errorf("%s at the pod's own port: %q answers: %v", call.network, who, err)
		}
	}
	c.changes <- at(snapshot.DataplaneCopyLoop)
	await(t, "it is carried by the copy loop", func() bool { return ask("tcp", "10.1.0.11:8080") == "10.1.0.11" })
}
