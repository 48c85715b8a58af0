package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const wrkSays = `Running 1s test @ http://c1-worker:8080/
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    92.35us   82.15us   3.14ms   94.23%
    Req/Sec    86.73k     4.31k   91.36k    90.91%
  Latency Distribution
     50%   72.00us
     75%   97.00us
     90%  151.00us
     99%    1.02ms
  94842 requests in 1.10s, 10.58MB read
Requests/sec:  86218.29
Transfer/sec:      9.62MB
`

func TestReadWrk(t *testing.T) {
	got, err := readWrk(wrkSays)
	if err != nil || got.median != float64(72*time.Microsecond) || got.perSecond != 86218.29 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "Requests/sec: 1", wrkSays + "  Socket errors: connect 0, read 1, write 0, timeout 0\n", wrkSays + "  Non-2xx or 3xx responses: 3\n"} {
		if got, err := readWrk(bad); err == nil {
			t.Errorf("%.40q is read as %+v", bad, got)
		}
	}
}

func TestReadVegeta(t *testing.T) {
	const says = "1700000000000000000,200,1338000,0,0,,,,0,GET,http://c1-worker:8081/?ms=1,\n1700000000002000000,200,1401000,0,0,,,,1,GET,http://c1-worker:8081/?ms=1,\n"
	got, err := readVegeta(strings.NewReader(says))
	if err != nil || !slices.Equal(got, []float64{1338000, 1401000}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"1,0,5,0,0,refused\n", "1,200\n", "1,200,soon,0,0,\n"} {
		if got, err := readVegeta(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
