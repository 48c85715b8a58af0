// Package sample is what the lab records: one row for each request and one for
// each timed packet, kept as Parquet, or one tool's total where that is all there
// is. It draws no conclusions; lab/measure does.
package sample

// Request is one request as the load saw it, by whatever protocol. Times are nanoseconds of
// CLOCK_MONOTONIC on this machine; 0 means that it did not come to that.
type Request struct {
	// Thread of the load, from 0.
	Thread int32 `parquet:"thread"`
	// Connection number within the thread, from 1.
	Connection int32 `parquet:"connection"`
	// Index of the request on its connection, from 1.
	Index int32 `parquet:"index"`
	// Warmup marks a request that came before those that count.
	Warmup bool `parquet:"warmup"`
	// ScheduledNs is when the request was due. In a closed loop a new
	// connection's dial begins here; in an open one the request may first wait
	// for a free thread.
	ScheduledNs int64 `parquet:"scheduled_ns,delta"`
	// SentNs is just before the first byte of the request was written.
	SentNs int64 `parquet:"sent_ns,delta"`
	// FirstByteNs is when the first byte of the answer was read.
	FirstByteNs int64 `parquet:"first_byte_ns,delta"`
	// LastByteNs is when the last byte of the answer was read.
	LastByteNs int64 `parquet:"last_byte_ns,delta"`
	// Status is the HTTP status, 0 without an answer and in other protocols.
	Status int32 `parquet:"status"`
	// Error is empty for the expected answer: of HTTP 2xx with its body. "missed" is a
	// request of an open loop that was never begun: it has no connection.
	Error string `parquet:"error,dict"`
}

// ResponseNs is the response time: from when the request was due (wait
// for a thread and dial included) to the last byte.
func (r Request) ResponseNs() int64 { return r.LastByteNs - r.ScheduledNs }

// Summary is what a load's tool says of all its requests together. Its figures
// are the tool's own, by the tool's own rules: they are never resampled. A figure
// that the tool does not give is 0.
type Summary struct {
	// Requests that the tool counts, and how many of them failed.
	Requests int64 `json:"requests"`
	Errors   int64 `json:"errors,omitempty"`
	// Classes counts the errors by what the tool calls them.
	Classes map[string]int64 `json:"error_classes,omitempty"`
	// DurationNs is from the tool's start of the load to its end.
	DurationNs int64 `json:"duration_ns"`
	// Response times: their mean, their quantiles and the longest.
	MeanNs int64 `json:"mean_ns,omitempty"`
	P50Ns  int64 `json:"p50_ns,omitempty"`
	P90Ns  int64 `json:"p90_ns,omitempty"`
	P99Ns  int64 `json:"p99_ns,omitempty"`
	MaxNs  int64 `json:"max_ns,omitempty"`
}

// OneWay is one timed packet between two nodes of the same machine. Times are ns of
// CLOCK_REALTIME; but for SentNs they are 0 for a lost packet.
type OneWay struct {
	// Flow of the packet, from 0, and its number in it.
	Flow     int32 `parquet:"flow"`
	Sequence int64 `parquet:"sequence,delta"`
	// SentNs is when it was to leave, or where nobody planned that, just before the send.
	SentNs int64 `parquet:"sent_ns,delta"`
	// ReceivedNs is the kernel's time of its arrival, ReadNs when the receiver had read
	// it; 0 where nobody looked.
	ReceivedNs int64 `parquet:"received_ns,delta"`
	ReadNs     int64 `parquet:"read_ns,delta"`
}
