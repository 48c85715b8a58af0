package guest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		go func() {
			_, _ = io.Copy(conn, conn) // a client that has gone is no error
			_ = conn.Close()
		}()
	}
}

const (
	serviceNode = topology.Ref("c1/worker")
	clientNode  = topology.Ref("c2/worker")
	// serviceIP is the address of the service's node.
	serviceIP = "10.1.0.2"
)

// testLab takes a whole lab up as on a usual Debian host: control groups of
// version 2 and links by the kernel, which the host of the test may lack.
func testLab(t *testing.T) {
	must(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
	clusters := []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"worker"}}}
	lab, err := host.Up(t.Context(), topology.Topology{Clusters: clusters, Service: serviceNode, Client: clientNode},
		host.Options{Name: "guest", Agent: "/init", Backend: emulator.Auto})
	must(t, err)
	if status, err := lab.LinkStatus(t.Context()); err != nil || status.Backend != emulator.Netem {
		t.Errorf("links by %q, %v", status.Backend, err)
	}
	serve(t, lab)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *host.Lab)
	}{
		{"links", labLinks},
		{"capture of a link", captureLink},
		{"capture inside a cluster", captureInside},
		{"cut", cut},
		{"degrade", degrade},
		{"freeze", freeze},
		{"kill of a process", killProcess},
		{"kill of a node", killNode},
		{"wireguard", wireGuard},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, lab) })
	}
	must(t, lab.Down())
	tree, err := cgroup.FindHere()
	must(t, err)
	if _, err := os.Stat("/run/skerry"); !errors.Is(err, os.ErrNotExist) || tree.Group("skerry").Exists() {
		t.Errorf("left: /run/skerry: %v, control group: %v", err, tree.Group("skerry").Exists())
	}
}

// serve starts the service.
func serve(t *testing.T, lab *host.Lab) {
	t.Helper()
	_, err := lab.Start(host.Command{Node: serviceNode, Name: "echo", Args: []string{"/init", "echo"}})
	must(t, err)
	must(t, call(t, lab).Close())
}

// answersWithin bounds how long the service may take, once it is started.
const answersWithin = 5 * time.Second

// call dials the service from the client's node, until it listens.
func call(t *testing.T, lab *host.Lab) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(answersWithin); ; time.Sleep(time.Millisecond) {
		conn, err := lab.Dial(t.Context(), clientNode, serviceIP+":"+echoPort)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func labLinks(t *testing.T, lab *host.Lab) {
	const delay = 5 * time.Millisecond
	for _, ends := range [][2]topology.Ref{{"c1", "c2"}, {serviceNode, clientNode}} {
		plain := dialTime(t, lab, nil)
		does := impair.Impairment{Delay: 5e6}
		impaired := dialTime(t, lab, bothWays(ends[0], ends[1], does))
		if impaired < 2*delay || impaired-plain > 2*delay+delay/2 {
			t.Errorf("%s to %s: a dial takes %s over 5 ms each way, %s without", ends[0], ends[1], impaired, plain)
		}
	}
}

func bothWays(a, b topology.Ref, does impair.Impairment) []host.Link {
	return []host.Link{{From: a, To: b, Does: does}, {From: b, To: a, Does: does}}
}

// dialTime is how long a dial takes over links, the shortest of three: the
// first asks for the hardware address as well.
func dialTime(t *testing.T, lab *host.Lab, links []host.Link) time.Duration {
	t.Helper()
	must(t, lab.SetLinks(t.Context(), links, 1))
	shortest := answersWithin
	for range 3 {
		began := time.Now()
		conn := call(t, lab)
		shortest = min(shortest, time.Since(began))
		_ = conn.Close() // the dial is all that is timed
	}
	return shortest
}
