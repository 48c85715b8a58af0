package guest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/topology"
)

// echoPort is where this binary answers as a service.
const echoPort = "7"

// actAsAgent has this binary be the lab's program inside nodes, as far as a lab
// needs one here; it returns for any other command line.
func actAsAgent(args []string) {
	if len(args) < 2 {
		return
	}
	switch args[1] {
	case "hold":
		for {
			time.Sleep(time.Hour)
		}
	case "links": // links --socket PATH --backend NAME
		fmt.Println("error:", emulator.Serve(context.Background(), args[3], args[5]))
		os.Exit(1)
	case "echo":
		fmt.Println("error:", echo())
		os.Exit(1)
	}
}

func echo() error {
	listener, err := net.Listen("tcp4", ":"+echoPort)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_ = conn.Close()
	}
}

// testLab takes a whole lab up as on a usual Debian host: control groups of
// version 2 and links by the kernel, which the host of the test may lack.
func testLab(t *testing.T) {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	clusters := []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"worker"}}}
	lab, err := host.Up(t.Context(), topology.Topology{Clusters: clusters, Service: "c1/worker", Client: "c2/worker"},
		host.Options{Name: "guest", Agent: "/init", Backend: emulator.Auto})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := lab.LinkStatus(t.Context()); err != nil || status.Backend != emulator.Netem {
		t.Errorf("links by %q, %v", status.Backend, err)
	}
	if _, err := lab.Start(host.Command{Node: "c1/worker", Name: "echo", Args: []string{"/init", "echo"}}); err != nil {
		t.Fatal(err)
	}
	const delay = 5 * time.Millisecond
	for _, ends := range [][2]topology.Ref{{"c1", "c2"}, {"c1/worker", "c2/worker"}} {
		plain := dialTime(t, lab, nil)
		does := impair.Impairment{Delay: 5e6}
		impaired := dialTime(t, lab, []host.Link{{From: ends[0], To: ends[1], Does: does}, {From: ends[1], To: ends[0], Does: does}})
		if added := impaired - plain; added < 2*delay-delay/10 || added > 2*delay+delay/2 {
			t.Errorf("%s to %s: a dial takes %s more over 5 ms each way", ends[0], ends[1], added)
		}
	}
	if err := lab.Down(); err != nil {
		t.Fatal(err)
	}
	tree, err := cgroup.FindHere()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/run/skerry"); !errors.Is(err, os.ErrNotExist) || tree.Group("skerry").Exists() {
		t.Errorf("left: /run/skerry: %v, control group: %v", err, tree.Group("skerry").Exists())
	}
}

// dialTime is how long a dial takes over links, the shortest of three: the
// first asks for the hardware address as well.
func dialTime(t *testing.T, lab *host.Lab, links []host.Link) time.Duration {
	t.Helper()
	if err := lab.SetLinks(t.Context(), links, 1); err != nil {
		t.Fatal(err)
	}
	const tries, answersWithin = 3, 5 * time.Second
	shortest := answersWithin
	deadline := time.Now().Add(answersWithin)
	for done := 0; done < tries; {
		began := time.Now()
		conn, err := lab.Dial(t.Context(), "c2/worker", "10.1.0.2:"+echoPort)
		switch {
		case err == nil:
			shortest = min(shortest, time.Since(began))
			done++
			_ = conn.Close() // the dial is all that is timed
		case time.Now().After(deadline):
			t.Fatal(err)
		default: // the service does not listen yet
			time.Sleep(time.Millisecond)
		}
	}
	return shortest
}
