package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// idleConnections holds what a thousand connections cost a pair of gateways that say
// nothing.
func (b *bench) idleConnections(ctx context.Context) (err error) {
	const connections, lasts = 1000, 30 * time.Second
	const cpuMost, memoryMost = 0.01, 64 << 10
	s, err := b.open(ctx, "cubic")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := b.gateways(ctx, s, false)
	if err != nil {
		return err
	}
	before, err := p.gatewaysUse()
	if err != nil {
		return err
	}
	var all []net.Conn
	defer func() {
		for _, conn := range all {
			_ = conn.Close()
		}
	}()
	for range connections {
		conn, err := s.greeted(ctx, p.address)
		if err != nil {
			return fmt.Errorf("connection %d: %w", len(all)+1, err)
		}
		all = append(all, conn)
	}
	const settle = 20 * time.Second
	if err := pause(ctx, settle); err != nil {
		return err
	}
	began, err := p.gatewaysUse()
	if err != nil {
		return err
	}
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	ended, err := p.gatewaysUse()
	if err != nil {
		return err
	}
	const pair = 2
	share := (ended.cpu - began.cpu).Seconds() / lasts.Seconds()
	each := float64(ended.memory-before.memory) / connections / pair
	b.print(line{
		what:  fmt.Sprintf("%d idle connections through a pair of gateways, over %s", connections, lasts),
		seen:  fmt.Sprintf("%.2f %% of a core for both, %.1f KiB each at a gateway", 100*share, each/1024),
		bound: fmt.Sprintf("<= %.0f %% of a core, <= %d KiB", 100*cpuMost, memoryMost>>10),
		pass:  share <= cpuMost && each <= memoryMost, command: fabricCommand,
	})
	return nil
}

// greeted is a connection whose service has answered once.
func (s *session) greeted(ctx context.Context, address string) (net.Conn, error) {
	conn, err := s.Dial(ctx, client, address)
	if err != nil {
		return nil, err
	}
	const patience = 10 * time.Second
	_ = conn.SetDeadline(time.Now().Add(patience)) // of one that is over reading tells
	_, err = io.WriteString(conn, echoLabel+"x")
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, conn.SetDeadline(time.Time{})
}
