package load

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry.dev/skerry/lab/sample"
)

// Range and precision of a histogram, in ns. Its buckets are no wider than
// 1/1000 of the values in them at any time above 2 µs, and below as fine as 1 ns.
const (
	histogramLowest  = 1
	histogramHighest = int64(time.Hour)
	histogramDigits  = 3
)

// WriteHistogram writes the response times of the requests that count and were
// answered as one interval of a HdrHistogram log (format 1.3, compressed V2),
// which the tools of that project read. Values are ns, those above 1 h count as
// 1 h; began is when the load was started. An open loop's times already run from
// when a request was due, so nothing is corrected for coordinated omission, and
// a closed loop's have none to correct.
func WriteHistogram(w io.Writer, rows []sample.Request, began time.Time) error {
	h := hdrhistogram.New(histogramLowest, histogramHighest, histogramDigits)
	ended := int64(0)
	for _, r := range rows {
		ended = max(ended, r.LastByteNs)
		if r.Warmup || r.Error != "" {
			continue
		}
		if err := h.RecordValue(min(max(r.ResponseNs(), histogramLowest), histogramHighest)); err != nil {
			return fmt.Errorf("write histogram: %w", err)
		}
	}
	start := began.UnixMilli()
	h.SetStartTimeMs(start)
	h.SetEndTimeMs(start)
	if len(rows) > 0 {
		h.SetEndTimeMs(start + max(0, ended-rows[0].ScheduledNs)/int64(time.Millisecond))
	}
	log := hdrhistogram.NewHistogramLogWriter(w)
	log.SetBaseTime(start)
	for _, write := range []func() error{
		log.OutputLogFormatVersion,
		func() error { return log.OutputComment("[Response times in ns, of skerry-agent load]") },
		func() error { return log.OutputStartTime(start) },
		func() error { return log.OutputBaseTime(start) },
		log.OutputLegend,
		func() error { return log.OutputIntervalHistogram(h) },
	} {
		if err := write(); err != nil {
			return fmt.Errorf("write histogram: %w", err)
		}
	}
	return nil
}
