package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"skerry.dev/skerry/lab/sample"
)

// Sizes of the benchmarks: a cell of 10⁷ requests.
const (
	benchRepetitions = 10
	benchRequests    = 1_000_000
)

// million is the requests of a repetition on 8 kept connections.
func million(rng *rand.Rand) []sample.Request {
	requests := make([]sample.Request, benchRequests)
	for i := range requests {
		due := int64(i) * 50_000
		requests[i] = sample.Request{
			Thread: int32(i % 8), Connection: 1, Index: int32(i/8) + 1, Warmup: i < 800,
			ScheduledNs: due, LastByteNs: due + int64(1e6*math.Exp(0.3*rng.NormFloat64())), Status: 200,
		}
	}
	return requests
}

func benchCell() Pooled {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []*Gathered
	for range benchRepetitions {
		all = append(all, Gather(million(rng)))
	}
	return Pool(all)
}

// BenchmarkGather is one repetition of 10⁶ requests.
func BenchmarkGather(b *testing.B) {
	requests := million(rand.New(rand.NewPCG(1, 2)))
	for b.Loop() {
		Gather(requests)
	}
}

// BenchmarkPool is a cell of 10⁷ requests.
func BenchmarkPool(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []*Gathered
	for range benchRepetitions {
		all = append(all, Gather(million(rng)))
	}
	for b.Loop() {
		Pool(all)
	}
}

// BenchmarkMedian is the bootstrap of a cell of 10⁷ values.
func BenchmarkMedian(b *testing.B) {
	values, rng := benchCell().Values, rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		values.Median(rng)
	}
}

// BenchmarkMedianRatio is the bootstrap of two cells of 10⁷ values.
func BenchmarkMedianRatio(b *testing.B) {
	values, rng := benchCell().Values, rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		ratioOf(values, values, rng)
	}
}

// BenchmarkTimelines is one repetition of 10⁶ requests.
func BenchmarkTimelines(b *testing.B) {
	requests := million(rand.New(rand.NewPCG(1, 2)))
	for b.Loop() {
		Timelines(requests)
	}
}
