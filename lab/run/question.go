package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// datagramPatience is how long the answer to one datagram is waited for beyond the
// round trip, before another is sent.
const datagramPatience = 100 * time.Millisecond

// question asks the workload at an address for a sign of life, once.
type question func(ctx context.Context, address string) error

// orReset takes a connection that is reset for a sign of life: of who is broken there is no
// other.
func (q question) orReset(ctx context.Context, address string) error {
	err := q(ctx, address)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// listens finds out whether something listens at an address of a node; a datagram
// and a broker have to show it by an answer.
func (r *runner) listens(ctx context.Context, node topology.Ref, address, protocol string) error {
	if _, isBroker := experiment.Broker(protocol); isBroker || protocol == experiment.ProtocolUDP {
		return r.question(node, protocol)(ctx, address)
	}
	conn, err := r.lab.Dial(ctx, node, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// question is how the cells of a protocol are asked from a node, on a connection
// of its own.
func (r *runner) question(node topology.Ref, protocol string) question {
	switch protocol {
	case experiment.ProtocolTCP:
		return func(ctx context.Context, address string) error {
			conn, err := r.lab.Dial(ctx, node, address)
			if err != nil {
				return err
			}
			return echoes(ctx, conn, readyTimeout)
		}
	case experiment.ProtocolUDP:
		patience := r.patience()
		return func(ctx context.Context, address string) (err error) {
			var conn net.Conn
			err = r.lab.Within(node, func() error {
				conn, err = new(net.Dialer).DialContext(ctx, "udp4", address)
				return err
			})
			if err != nil {
				return err
			}
			return echoes(ctx, conn, patience)
		}
	case experiment.ProtocolMQTT, experiment.ProtocolAMQP:
		return r.message(node, protocol)
	}
	speaks := new(http.Protocols)
	speaks.SetHTTP1(protocol != experiment.ProtocolHTTP2)
	speaks.SetUnencryptedHTTP2(protocol == experiment.ProtocolHTTP2)
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		return r.lab.Dial(ctx, node, address)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, Protocols: speaks}}
	return func(ctx context.Context, address string) error { return head(ctx, client, address) }
}

// patience is how long an answer over any scenario's links may take: twice the
// round trip, for their jitter.
func (r *runner) patience() time.Duration {
	var longest time.Duration
	values, err := system.ValuesFor(&r.Experiment.Topology, "", workloadPort)
	if err != nil {
		return datagramPatience // where the lab itself would not be up
	}
	for _, stack := range r.Stacks {
		path := stack.Path(values)
		for _, s := range r.Experiment.Scenarios {
			longest = max(longest, s.RTT(s.HopMap(path)))
		}
	}
	return 2*longest + datagramPatience
}

// message asks a broker to pass a message on, by the load's own client.
func (r *runner) message(node topology.Ref, protocol string) question {
	name, _ := experiment.Broker(protocol)
	return func(ctx context.Context, address string) error {
		return r.lab.Within(node, func() error {
			_, err := load.Run(ctx, load.Spec{
				Target: address, Workload: name, Protocol: protocol, Size: 1, Iterations: 1, Timeout: quantity.Duration(readyTimeout),
			})
			return err
		})
	}
}

// head asks for the header of an answer; any will do.
func head(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// echoes sends a byte, wants it back, and closes the connection.
func echoes(ctx context.Context, conn net.Conn, patience time.Duration) error {
	defer func() { _ = conn.Close() }() // a byte that came back is the answer
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	sent, got := []byte{'?'}, make([]byte, 1)
	if _, err := conn.Write(sent); err != nil {
		return err
	}
	if _, err := conn.Read(got); err != nil {
		return err
	}
	if !bytes.Equal(got, sent) {
		return fmt.Errorf("%q came back as %q", sent, got)
	}
	return nil
}
