package guest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
)

const (
	// instant is far more than an answer takes that is not held up.
	instant = 300 * time.Millisecond
	// patience is for one that was: TCP sends it again.
	patience = 10 * time.Second
)

// answer asks the service for what it was sent, and says how long that took.
func answer(conn net.Conn, within time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := conn.SetDeadline(began.Add(within)); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return 0, err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return time.Since(began), err
}

func wantAnswer(t *testing.T, conn net.Conn) time.Duration {
	t.Helper()
	took, err := answer(conn, patience)
	must(t, err)
	return took
}

func wantSilence(t *testing.T, conn net.Conn, why string) {
	t.Helper()
	if took, err := answer(conn, instant); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: answered after %s, %v", why, took, err)
	}
}

// wantLate wants the answer that did not come while a fault was in force.
func wantLate(t *testing.T, conn net.Conn, after string) {
	t.Helper()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("what was asked is not answered after %s: %v", after, err)
	}
}

// linked has 5 ms on the link between the clusters, and a warm connection over it.
func linked(t *testing.T, lab *host.Lab) net.Conn {
	t.Helper()
	must(t, lab.SetLinks(t.Context(), bothWays("c1", "c2", impair.Impairment{Delay: ms(5)}), 1))
	conn := call(t, lab)
	t.Cleanup(func() { _ = conn.Close() })
	wantAnswer(t, conn)
	return conn
}

func inject(t *testing.T, lab *host.Lab, f host.Fault) host.Fault {
	t.Helper()
	f, err := lab.Inject(t.Context(), f)
	must(t, err)
	return f
}

func undo(t *testing.T, lab *host.Lab, f host.Fault) {
	t.Helper()
	must(t, lab.Undo(t.Context(), f.ID))
	if again, err := host.Open(lab.Name); err != nil || len(again.Faults) > 0 {
		t.Errorf("in force after undo: %+v, %v", again.Faults, err)
	}
}

// counted is what the emulator has counted of a direction.
func counted(t *testing.T, lab *host.Lab, direction string) impair.Counters {
	t.Helper()
	status, err := lab.LinkStatus(t.Context())
	must(t, err)
	return status.Counters[direction]
}

func cut(t *testing.T, lab *host.Lab) {
	conn := linked(t, lab)
	before := counted(t, lab, "c2>c1")
	f := inject(t, lab, host.CutLink(bothWays("c1", "c2", impair.Impairment{})...))
	wantSilence(t, conn, "over a link that is cut")
	beside, err := lab.Dial(t.Context(), "c1/head", serviceIP+":"+echoPort)
	must(t, err)
	defer beside.Close()
	if took := wantAnswer(t, beside); took > ms(5).Std() {
		t.Errorf("beside the link an answer takes %s", took)
	}
	if c, _ := counted(t, lab, "c2>c1").Minus(before); c.Lost == 0 || c.Lost != c.Packets {
		t.Errorf("counted %+v, want all lost", c)
	}
	undo(t, lab, f)
	wantLate(t, conn, "a cut")
	wantAround(t, wantAnswer(t, conn), 2*ms(5).Std())
}

func wantAround(t *testing.T, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+want/5 {
		t.Errorf("an answer takes %s, want %s", got, want)
	}
}

func degrade(t *testing.T, lab *host.Lab) {
	conn := linked(t, lab)
	links := bothWays("c1", "c2", impair.Impairment{Delay: ms(20)})
	f := inject(t, lab, host.Fault{Kind: host.Degrade, Links: links})
	wantAround(t, wantAnswer(t, conn), 2*ms(20).Std())
	undo(t, lab, f)
	wantAround(t, wantAnswer(t, conn), 2*ms(5).Std())
	// One direction between two nodes goes before the clusters'.
	links = []host.Link{{From: clientNode, To: serviceNode, Does: impair.Impairment{Delay: ms(20)}}}
	f = inject(t, lab, host.Fault{Kind: host.Degrade, Links: links})
	wantAround(t, wantAnswer(t, conn), ms(25).Std())
	undo(t, lab, f)
	wantAround(t, wantAnswer(t, conn), 2*ms(5).Std())
}

func freeze(t *testing.T, lab *host.Lab) {
	for _, f := range []host.Fault{
		{Kind: host.Freeze, Node: serviceNode},
		{Kind: host.Freeze, Node: serviceNode, Process: "echo"},
	} {
		conn := linked(t, lab)
		f = inject(t, lab, f)
		wantSilence(t, conn, "with "+f.Target()+" frozen")
		must(t, call(t, lab).Close()) // the kernel accepts
		undo(t, lab, f)
		wantLate(t, conn, "a freeze of "+f.Target())
	}
}

// The kernel closes the connections of a process that was killed.
func killProcess(t *testing.T, lab *host.Lab) {
	conn := linked(t, lab)
	if f := inject(t, lab, host.Fault{Kind: host.Kill, Node: serviceNode, Process: "echo"}); f.ID != 0 {
		t.Errorf("there is something to undo: %+v", f)
	}
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("its peer sees %v, want the end of the connection", err)
	}
	serve(t, lab)
	wantAnswer(t, linked(t, lab))
}

// The peer of a node that was killed hears nothing, not even of the end.
func killNode(t *testing.T, lab *host.Lab) {
	conn := linked(t, lab)
	f := inject(t, lab, host.Fault{Kind: host.Kill, Node: serviceNode})
	wantSilence(t, conn, "of a node that was killed")
	ctx, cancel := context.WithTimeout(t.Context(), instant)
	defer cancel()
	if conn, err := lab.Dial(ctx, clientNode, serviceIP+":"+echoPort); err == nil {
		t.Error("it accepts connections")
		_ = conn.Close()
	}
	must(t, lab.Check(t.Context()))
	undo(t, lab, f)
	if running, err := lab.Running(); err != nil || len(running) > 0 {
		t.Errorf("running after the fault: %v, %v", running, err)
	}
	serve(t, lab)
	wantAnswer(t, linked(t, lab))
}
