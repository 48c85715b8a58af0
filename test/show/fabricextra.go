package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// What gateways may spend to teach TCP the path of a connection, how many connections they
// keep, and what the lanes may spend that they add where packets are lost.
const (
	trainingOfOne      = 16 << 20
	trainedConnections = 2
	trainingOfLanes    = 30 * 512 << 10
)

// extraPath is a link, and what new gateways may send over it beside streams.
type extraPath struct {
	what string
	link impair.Impairment
	// perHour is their budget, of which each spends this at least and at most, in bytes.
	perHour, least, most int
	loses                bool
}

// showFabricExtra holds what native sends beside what streams say: what teaches TCP its
// paths, and what stands in for what is lost.
func showFabricExtra(ctx context.Context, b *bench) error {
	const small, large = 8 << 20, 128 << 20
	const stopped = trainedConnections * trainingOfOne / 4
	clean := impair.Impairment{Delay: quantity.Duration(20 * time.Millisecond), Rate: 100e6, Queue: 1 << 20}
	lossy, narrow := clean, clean
	lossy.Loss = 0.01
	narrow.Rate = 5e6
	for _, path := range []extraPath{
		{what: "100 Mbit/s", link: clean, perHour: small, least: small / 4, most: small},
		{what: "100 Mbit/s that lose 1 %", link: lossy, perHour: large, most: stopped + trainingOfLanes, loses: true},
		{what: "5 Mbit/s, where the RTT rises", link: narrow, perHour: large, most: stopped},
	} {
		if err := b.extraOn(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path.what, err)
		}
	}
	return nil
}

// extraOn prints what new gateways have sent before anybody called, and while bulk went
// through them.
func (b *bench) extraOn(ctx context.Context, path extraPath) (err error) {
	s, err := b.open(ctx, "cubic")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.both(ctx, path.link, impair.UnitPacket); err != nil {
		return err
	}
	p, err := b.gateways(ctx, s, false, "--admin", adminAddress, "--connections", strconv.Itoa(trainedConnections),
		"--training-bytes", strconv.Itoa(trainingOfOne), "--training-bytes-per-hour", strconv.Itoa(path.perHour))
	if err != nil {
		return err
	}
	for _, node := range []topology.Ref{client, service} {
		e, err := s.extra(ctx, node)
		if err != nil {
			return err
		}
		taught := int(e.TrainingBytes)
		b.print(line{
			what:  fmt.Sprintf("training over %s, by the gateway at %s, which may spend %d MiB for a connection and %d in an hour", path.what, node, trainingOfOne>>20, path.perHour>>20),
			seen:  fmt.Sprintf("%.1f MiB", float64(taught)/(1<<20)),
			bound: fmt.Sprintf("%.1f to %.1f MiB", float64(path.least)/(1<<20), float64(path.most)/(1<<20)),
			pass:  taught > 0 && taught >= path.least && taught <= path.most, command: fabricCommand,
		})
	}
	end, err := s.pour(ctx, []string{p.address})
	if err != nil {
		return err
	}
	const lasts = 10 * time.Second
	err = pause(ctx, lasts)
	end()
	if err != nil {
		return err
	}
	e, err := s.extra(ctx, client)
	if err == nil {
		b.printParity(path, e)
	}
	return err
}

// printParity prints what stands in for what bulk loses.
func (b *bench) printParity(path extraPath, e admin.Extra) {
	const most = 0.2
	l := line{
		what: "bulk over " + path.what, seen: fmt.Sprintf("%d bytes of parity, %d of copies", e.ParityBytes, e.CopyBytes),
		bound: "none", pass: e.ParityBytes+e.CopyBytes == 0, command: fabricCommand,
	}
	if path.loses {
		part := float64(e.ParityBytes) / float64(max(e.DataBytes, 1))
		l.seen = fmt.Sprintf("%.1f %% of %.1f MiB of data again as parity", 100*part, float64(e.DataBytes)/(1<<20))
		l.bound, l.pass = fmt.Sprintf("> 0, <= %.0f %%", 100*most), part > 0 && part <= most
	}
	b.print(l)
}

// adminAddress is where each gateway answers at its node.
const adminAddress = "127.0.0.1:9090"

// extra is what the gateway at a node has sent so far.
func (s *session) extra(ctx context.Context, node topology.Ref) (sum admin.Extra, err error) {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) { return s.Dial(ctx, node, address) }
	asks := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+adminAddress+"/v1/status", http.NoBody)
	if err != nil {
		return sum, err
	}
	answer, err := asks.Do(r)
	if err != nil {
		return sum, err
	}
	var status admin.Status
	err = errors.Join(json.NewDecoder(answer.Body).Decode(&status), answer.Body.Close())
	for _, e := range status.Extra {
		sum.TrainingBytes += e.TrainingBytes
		sum.CopyBytes += e.CopyBytes
		sum.DataBytes += e.DataBytes
		sum.ParityBytes += e.ParityBytes
	}
	return sum, err
}
