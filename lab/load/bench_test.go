package load

import (
	"bytes"
	"net/http"
	"testing"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload"
)

// BenchmarkEcho compares the load with net/http's client against the same
// server, one request of each in turn, so that both see the same machine. It
// reports ns per request of each and their ratio; ns/op is for the pair.
//
//	go test -run '^$' -bench Echo -count 10 ./lab/load
func BenchmarkEcho(b *testing.B) {
	for _, size := range []quantity.Size{1e3, 100e3, 1e6} {
		b.Run(size.String(), func(b *testing.B) { benchmarkEcho(b, size) })
	}
}

func benchmarkEcho(b *testing.B, size quantity.Size) {
	p, err := newPlan(b.Context(), Spec{Target: start(b, workload.PayloadEcho), Workload: workload.PayloadEcho, Size: size, Iterations: 1})
	if err != nil {
		b.Fatal(err)
	}
	l, release, err := newLoop(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	theirs := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer theirs.CloseIdleConnections()
	var oursNs, theirsNs int64
	l.start(func(r *routine) {
		ours := newThread(r, p, nil)
		defer ours.link.close()
		for b.Loop() {
			row, _ := ours.request(0)
			if row.Error != "" {
				b.Fatal(row.Error)
			}
			oursNs += row.ResponseNs()
			at := clock.Mono()
			n, err := netHTTP(theirs, p, ours.answer)
			theirsNs += clock.Mono() - at
			if err != nil || !bytes.Equal(ours.answer[:n], p.want) {
				b.Fatalf("net/http: %d bytes, %v", n, err)
			}
		}
	})
	if err := l.run(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(oursNs)/float64(b.N), "load-ns")
	b.ReportMetric(float64(theirsNs)/float64(b.N), "nethttp-ns")
	b.ReportMetric(float64(oursNs)/float64(theirsNs), "ratio")
}

// netHTTP posts the payload and reads the whole answer into buf.
func netHTTP(c *http.Client, p *plan, buf []byte) (int, error) {
	answer, err := c.Post("http://"+p.Target+"/", "application/octet-stream", bytes.NewReader(p.want))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return fill(answer.Body, buf)
}
