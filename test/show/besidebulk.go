package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

// besideBulk holds that small requests do not wait behind bulk in a gateway: what they take
// longer beside eight streams is what stands in the link's own queue.
func (b *bench) besideBulk(ctx context.Context) (err error) {
	const streams, requests, times = 8, 400, 2.0
	const rate, queue = 100e6, 125 << 10
	s, err := b.open(ctx, "cubic")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	link := impair.Impairment{Delay: quantity.Duration(10 * time.Millisecond), Rate: rate, Queue: queue}
	if err := s.both(ctx, link, impair.UnitPacket); err != nil {
		return err
	}
	p, err := b.gateways(ctx, s, false)
	if err != nil {
		return err
	}
	idle, err := s.echoes(ctx, p.address, requests)
	if err != nil {
		return err
	}
	end, err := s.pour(ctx, slices.Repeat([]string{p.address}, streams))
	if err != nil {
		return err
	}
	const settle = 5 * time.Second
	if err = pause(ctx, settle); err == nil {
		var busy measure.Sorted
		if busy, err = s.echoes(ctx, p.address, requests); err == nil {
			own := float64(queue) * 8e9 / rate
			bound := times*idle.Quantile(0.99) + own
			b.print(line{
				what:  fmt.Sprintf("a request of 60 B beside %d bulk streams, 100 Mbit/s, RTT 20, n=%d: p99", streams, requests),
				seen:  fmt.Sprintf("%.2f ms, idle %.2f ms", busy.Quantile(0.99)/1e6, idle.Quantile(0.99)/1e6),
				bound: fmt.Sprintf("<= %.2f ms, twice that when idle and the link's queue (%.1f ms)", bound/1e6, own/1e6),
				pass:  busy.Quantile(0.99) <= bound, command: fabricCommand,
			})
		}
	}
	end()
	return err
}

// echoes are response times in ns of requests of 60 B on one connection.
func (s *session) echoes(ctx context.Context, address string, n int) (measure.Sorted, error) {
	conn, err := s.Dial(ctx, client, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, echoLabel); err != nil {
		return nil, err
	}
	times, data := make([]float64, n), make([]byte, 60)
	for i := range times {
		began := time.Now()
		if err := echoed(conn, data); err != nil {
			return nil, err
		}
		times[i] = float64(time.Since(began))
	}
	return measure.Sort(times), nil
}

func echoed(conn net.Conn, data []byte) error {
	const patience = 20 * time.Second
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write(data); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, data)
	return err
}
