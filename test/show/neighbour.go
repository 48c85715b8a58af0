package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// neighbourly holds that a bulk stream of the fabric leaves a flow of cubic beside it its
// part of a narrow link, and does not have it lose more than another of its kind would.
func (b *bench) neighbourly(ctx context.Context) (err error) {
	const rounds, lasts = 8, 30 * time.Second
	const jainLeast, lossMost = 0.8, 2.0
	s, err := b.open(ctx, "cubic")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	narrow := impair.Impairment{Delay: quantity.Duration(20 * time.Millisecond), Rate: 20e6, Queue: 64 << 10}
	if err := s.both(ctx, narrow, impair.UnitPacket); err != nil {
		return err
	}
	p, err := b.gateways(ctx, s, false)
	if err != nil {
		return err
	}
	node, err := s.Topology.Node(service)
	if err != nil {
		return err
	}
	straight := net.JoinHostPort(node.Data.Addr().String(), servedPort)
	var jain, loss []float64
	for range rounds {
		alone, err := s.beside(ctx, [2]string{straight, straight}, lasts)
		if err != nil {
			return err
		}
		with, err := s.beside(ctx, [2]string{straight, p.address}, lasts)
		if err != nil {
			return err
		}
		jain, loss = append(jain, with.jain()), append(loss, with.lost/max(alone.lost, 1e-6))
	}
	e := medianOf(jain)
	b.print(line{
		what: fmt.Sprintf("one bulk stream of the fabric beside one of cubic, 20 Mbit/s, 64 KiB, 40 ms, %d times %s: Jain's index", rounds, lasts),
		seen: e.show(1, ""), bound: fmt.Sprintf(">= %.1f", jainLeast), pass: e.value >= jainLeast, command: fabricCommand,
	})
	e = medianOf(loss)
	b.print(line{
		what: "its loss over that of two of cubic, in turns", seen: e.show(1, ""),
		bound: fmt.Sprintf("<= %.0f", lossMost), pass: e.value <= lossMost, command: fabricCommand,
	})
	return nil
}

// besides is what two flows got of a link.
type besides struct {
	bytes [2]float64
	lost  float64 // of the link's packets
}

// jain is the index of fairness of two shares (Jain, Chiu and Hawe, 1984).
func (r besides) jain() float64 {
	sum := r.bytes[0] + r.bytes[1]
	return sum * sum / (2 * (r.bytes[0]*r.bytes[0] + r.bytes[1]*r.bytes[1]))
}

// beside has two flows say all they can, and reads what came of each.
func (s *session) beside(ctx context.Context, to [2]string, lasts time.Duration) (besides, error) {
	before, err := s.towards(ctx)
	if err != nil {
		return besides{}, err
	}
	end, err := s.pour(ctx, to[:])
	if err != nil {
		return besides{}, err
	}
	err = pause(ctx, lasts)
	end()
	if err != nil {
		return besides{}, err
	}
	after, err := s.towards(ctx)
	if err != nil {
		return besides{}, err
	}
	since, _ := after.Minus(before)
	r := besides{lost: float64(since.Overflowed) / float64(max(since.Packets, 1))}
	r.bytes, err = counted(ctx, s.sinkFile())
	return r, err
}

// pour has a flow to each address say all that it can, until they are ended.
func (s *session) pour(ctx context.Context, to []string) (end func(), err error) {
	var flows []net.Conn
	end = func() {
		for _, conn := range flows {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}
	for i, address := range to {
		conn, err := s.Dial(ctx, client, address)
		if err != nil {
			end()
			return nil, err
		}
		flows = append(flows, conn)
		go func() {
			_, err := fmt.Fprintf(conn, "%-*d", labelBytes, i)
			for data := make([]byte, 64<<10); err == nil; {
				_, err = conn.Write(data)
			}
		}()
	}
	return end, nil
}

// towards are the counters of the link to the service.
func (s *session) towards(ctx context.Context) (impair.Counters, error) {
	status, err := s.LinkStatus(ctx)
	if err != nil {
		return impair.Counters{}, err
	}
	for name, c := range status.Counters {
		if strings.HasPrefix(name, "c2") {
			return c, nil
		}
	}
	return impair.Counters{}, fmt.Errorf("no link from c2 among %d", len(status.Counters))
}

// counted waits for what the sink says of both flows, and takes it away.
func counted(ctx context.Context, seen string) (bytes [2]float64, err error) {
	for range 500 {
		text, err := os.ReadFile(seen)
		if err != nil {
			return bytes, err
		}
		if strings.Count(string(text), "\n") >= len(bytes) {
			var label int
			var n float64
			for line := range strings.Lines(string(text)) {
				if _, err := fmt.Sscan(line, &label, &n); err != nil || label < 0 || label >= len(bytes) {
					return bytes, fmt.Errorf("the sink says %q", line)
				}
				bytes[label] = n
			}
			return bytes, os.Truncate(seen, 0)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return bytes, err
		}
	}
	return bytes, errors.New("the sink does not say what came")
}
