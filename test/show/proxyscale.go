package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/topology"
)

const (
	scaleCommand  = "make show AREA=proxy-scale"
	scaleServices = 10_000
	scalePods     = 10
	scaleAdmin    = "127.0.0.1:4482"
	// churn is how many EndpointSlices change a second, and for how long; of every
	// churnSeen'th it is measured when the proxy knows it.
	churnRate, churnSeen = 100, 5
	churnLasts           = 30 * time.Second
)

// scale is a cluster with many Services that opted in, and a proxy of its node.
type scale struct {
	lab *host.Lab
	api kubernetes.Interface
	ask *http.Client
}

// showProxyScale has skerry-proxy follow a real API server with many Services. Their
// endpoints are EndpointSlices without pods, which a proxy cannot tell from those with.
func showProxyScale(ctx context.Context, b *bench) (err error) {
	programs, err := gobuild.Builder{Catalogue: kube.Catalogue()}.Paths(ctx, nil)
	if err != nil {
		return err
	}
	lab, _, err := b.up(ctx, programs, spec.Spec{}, topology.Cluster{Name: "c1", Nodes: []string{"head"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	s := &scale{lab: lab, ask: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return lab.Dial(ctx, "c1/head", address)
	}}}}
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig(lab, "c1"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	if s.api, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	return s.follow(ctx, b)
}

func scaleName(i int) string { return fmt.Sprintf("svc-%05d", i) }

// fill makes the Services.
func (s *scale) fill(ctx context.Context) error {
	const atOnce = 16
	making, ctx := errgroup.WithContext(ctx)
	making.SetLimit(atOnce)
	for i := range scaleServices {
		making.Go(func() error {
			labels := map[string]string{"service.kubernetes.io/service-proxy-name": "skerry"}
			_, err := s.api.CoreV1().Services("default").Create(ctx, &core.Service{
				ObjectMeta: meta.ObjectMeta{Name: scaleName(i), Labels: labels},
				Spec:       core.ServiceSpec{Ports: []core.ServicePort{{Name: "http", Port: 80}}},
			}, meta.CreateOptions{})
			if err == nil {
				_, err = s.api.DiscoveryV1().EndpointSlices("default").Create(ctx, sliceOf(i, 0), meta.CreateOptions{})
			}
			return err
		})
	}
	return making.Wait()
}

// sliceOf a Service, whose first endpoint is another in each version.
func sliceOf(i, version int) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{Name: scaleName(i), Labels: map[string]string{
			"service.kubernetes.io/service-proxy-name": "skerry", discovery.LabelServiceName: scaleName(i),
		}},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
	for n := range scalePods {
		ip := fmt.Sprintf("10.%d.%d.%d", 128+n, i/250, i%250)
		if n == 0 {
			ip = endpointOf(version)
		}
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{ip}, NodeName: new(fmt.Sprintf("node-%d", (i+n)%100))})
	}
	return slice
}

// endpointOf a version is an address that no other version has.
func endpointOf(version int) string {
	return fmt.Sprintf("10.%d.%d.%d", 160+version>>16, version>>8&255, version&255)
}

// follow has a proxy begin, and then follow changes.
func (s *scale) follow(ctx context.Context, b *bench) (err error) {
	const startMost, changeMost, memoryMost = 10 * time.Second, 200 * time.Millisecond, 400e6
	node, err := s.lab.Topology.Node("c1/head")
	if err != nil {
		return err
	}
	began := time.Now()
	proxy, err := s.lab.Start(host.Command{Node: "c1/head", Name: "skerry-proxy", Stdout: io.Discard, Stderr: os.Stderr, Args: []string{
		filepath.Join(filepath.Dir(b.agent), "skerry-proxy"), "--node=c1-head", "--address=" + node.Data.Addr().String(), "--admin=" + scaleAdmin,
		"--kubeconfig=" + filepath.Join(s.lab.Dir(), "clusters", "c1", "admin.kubeconfig"),
	}})
	if err != nil {
		return err
	}
	var use host.Use
	stop := sync.OnceValue(func() (err error) {
		use, err = proxy.Stop(10 * time.Second)
		return err
	})
	defer func() { err = errors.Join(err, stop()) }()
	if err := s.until(ctx, "/readyz", "ready"); err != nil {
		return err
	}
	took := time.Since(began)
	what := fmt.Sprintf("%d Services of %d endpoints", scaleServices, scalePods)
	b.print(line{
		what: "skerry-proxy on a real API server with " + what + ", from its start to ready", seen: fmt.Sprintf("%.2f s", took.Seconds()),
		bound: "<= " + startMost.String(), command: scaleCommand, pass: took <= startMost,
	})
	delays, err := s.churn(ctx)
	if err != nil {
		return err
	}
	sorted := measure.Sort(delays)
	b.print(line{
		what:  fmt.Sprintf("%s, %d of which change a second for %s: from the call of the API until the proxy chooses by it, n=%d", what, churnRate, churnLasts, len(delays)),
		seen:  fmt.Sprintf("median %.1f ms, p99 %.1f ms, at most %.1f ms", sorted.Median()*1e3, sorted.Quantile(0.99)*1e3, sorted.Max()*1e3),
		bound: "p99 <= " + changeMost.String(), command: scaleCommand, pass: sorted.Quantile(0.99) <= changeMost.Seconds(),
	})
	if err := stop(); err != nil {
		return err
	}
	b.print(line{
		what: what + ", the proxy's memory at most", seen: fmt.Sprintf("%.0f MB, and %.1f s of CPU time in all", float64(use.MemoryPeak)/1e6, use.CPU.Seconds()),
		bound: fmt.Sprintf("<= %.0f MB", memoryMost/1e6), command: scaleCommand, pass: float64(use.MemoryPeak) <= memoryMost,
	})
	return nil
}

// churn changes EndpointSlices at a steady rate, and returns in seconds how long some of
// them took until the proxy knew.
func (s *scale) churn(ctx context.Context) (delays []float64, err error) {
	var mu sync.Mutex
	changing, ctx := errgroup.WithContext(ctx)
	order := rand.New(rand.NewPCG(1, 2)).Perm(scaleServices) // each at most once
	every := time.NewTicker(time.Second / churnRate)
	defer every.Stop()
	for version := 1; version <= churnRate*int(churnLasts/time.Second); version++ {
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), changing.Wait())
		case <-every.C:
		}
		i := order[version]
		changing.Go(func() error {
			began := time.Now()
			if _, err := s.api.DiscoveryV1().EndpointSlices("default").Update(ctx, sliceOf(i, version), meta.UpdateOptions{}); err != nil {
				return err
			}
			if version%churnSeen != 0 {
				return nil
			}
			if err := s.until(ctx, "/v1/explain?service=default/"+scaleName(i), `"`+endpointOf(version)+`:8080"`); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			delays = append(delays, time.Since(began).Seconds())
			return nil
		})
	}
	return delays, changing.Wait()
}

var errNotTold = errors.New("the proxy does not tell it")

// until asks the proxy until it tells something.
func (s *scale) until(ctx context.Context, path, part string) error {
	const patience, pauseFor = time.Minute, 5 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: %w: %s", path, errNotTold, part))
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+scaleAdmin+path, nil)
		if err != nil {
			return err
		}
		if answer, err := s.ask.Do(request); err == nil {
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(body), part) {
				return nil
			}
		}
		if err := pause(ctx, pauseFor); err != nil {
			return context.Cause(ctx)
		}
	}
}
