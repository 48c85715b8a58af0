package adapter

import (
	_ "embed"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

// k6 is a generator in Go whose users are scripts: its own is k6.js here. An open
// loop is its constant-arrival-rate.
//
// A row: ScheduledNs is when a connection was asked for, LastByteNs when the
// answer was whole, both exact to 1 us or so. In an open loop, too, that is when
// the request began, which may be after it was due; one that no virtual user was
// free for is "missed". Thread is the virtual user.
type k6 struct{}

//go:embed k6.js
var k6Script []byte

const k6Rows = "k6.csv"

func (k6) abilities() abilities {
	return abilities{warmup: true, fresh: true, open: true, openLeast: time.Second, think: time.Nanosecond, ramp: time.Nanosecond}
}

func (k6) plan(j Job, m load.Message) (Invocation, error) {
	c := j.Cell
	values := map[string]string{
		"TARGET": j.url(m), "METHOD": m.Method, "THREADS": strconv.Itoa(c.Threads), "ITERATIONS": strconv.Itoa(c.Iterations + c.Warmup),
		"THINK": inSeconds(c.Think), "RAMP": inSeconds(c.Ramp), "TIMEOUT": inSeconds(c.Timeout), "CONNECTION": c.Connection,
	}
	if c.Rate > 0 {
		values["RATE"], values["DURATION"] = strconv.FormatFloat(float64(c.Rate), 'g', -1, 64), inSeconds(c.Duration)
	}
	if len(m.Body) > 0 {
		values["BODY"], values["TYPE"] = bodyFile, load.ContentType
	}
	args := []string{"run", "--quiet", "--no-color", "--no-usage-report", "--address", "", "--out", "csv=" + k6Rows}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "-e", name+"="+values[name])
	}
	return Invocation{
		Args: append(args, "k6.js"), Files: map[string][]byte{"k6.js": k6Script}, Stdout: "k6.out",
		Env: []string{"K6_CSV_TIME_FORMAT=unix_nano", "K6_AUTO_EXTENSION_RESOLUTION=false"},
	}, nil
}

func inSeconds(d quantity.Duration) string {
	return strconv.FormatFloat(d.Std().Seconds(), 'f', -1, 64)
}

func (k6) read(j Job, folder fs.FS, began Moment) (Result, error) {
	rows, err := readFile(folder, k6Rows, func(r io.Reader) ([]sample.Request, error) { return readK6(r, began, j.Cell) })
	if err == nil && j.Cell.Rate == 0 {
		err = counted(experiment.ToolK6, rows, j.Cell)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Requests: rows}, nil
}

// k6Reader gathers the rows of a request, which follow one another: a k6 request
// is a sample of each of eight metrics at the moment of its end.
type k6Reader struct {
	*table
	began Moment
	cell  experiment.Cell
	rows  []sample.Request
	// Of the request under way, in ns, where one is open.
	open                                    bool
	end, duration, blocked, dial, receiving int64
	row                                     sample.Request
	connections                             map[int32]*counter
}

// readK6 reads the file of --out csv. The first iterations of each virtual user are
// marked as warm-up.
func readK6(r io.Reader, began Moment, c experiment.Cell) ([]sample.Request, error) {
	t, err := openTable(experiment.ToolK6, r, ',', "metric_name", "timestamp", "metric_value", "status", "error_code", "metadata")
	if err != nil {
		return nil, err
	}
	k := &k6Reader{table: t, began: began, cell: c, connections: map[int32]*counter{}}
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		k.metric()
	}
	k.close()
	inOrder(k.rows)
	return k.rows, nil
}

// metric takes one row of the file.
func (k *k6Reader) metric() {
	var into *int64
	switch k.text("metric_name") {
	case "http_reqs":
		k.close()
		k.begin()
		return
	case "dropped_iterations":
		k.dropped()
		return
	case "http_req_duration":
		into = &k.duration
	case "http_req_blocked":
		into = &k.blocked
	case "http_req_connecting":
		into = &k.dial
	case "http_req_receiving":
		into = &k.receiving
	default:
		return
	}
	if !k.open {
		k.fail("%s comes before any request", k.text("metric_name"))
		return
	}
	*into = k.length("metric_value", time.Millisecond)
}

// begin opens a request.
func (k *k6Reader) begin() {
	k.open = true
	k.duration, k.blocked, k.dial, k.receiving = 0, 0, 0, 0
	k.end = k.began.mono(k.whole("timestamp", timesMost))
	k.row = sample.Request{}
	user, iteration := k.user()
	k.row.Thread, k.row.Warmup = int32(user)-1, iteration < int64(k.cell.Warmup)
	if k.text("status") != "" {
		k.row.Status = int32(k.whole("status", math.MaxInt16))
	}
	k.row.Error = k.class()
}

// user is the virtual user, from 1, and its iteration, from 0.
func (k *k6Reader) user() (user, iteration int64) {
	values, err := url.ParseQuery(k.text("metadata"))
	if err == nil {
		user, err = strconv.ParseInt(values.Get("vu"), 10, 32)
	}
	if err == nil {
		iteration, err = strconv.ParseInt(values.Get("iter"), 10, 64)
	}
	if err != nil || user < 1 {
		k.fail("metadata is %.40q, which names no vu and iter", k.text("metadata"))
	}
	return user, iteration
}

// close ends the request under way.
func (k *k6Reader) close() {
	if !k.open {
		return
	}
	k.open = false
	row := k.row
	row.ScheduledNs, row.SentNs = k.end-k.duration-k.blocked, k.end-k.duration
	if row.Status != 0 {
		row.FirstByteNs, row.LastByteNs = k.end-k.receiving, k.end
	}
	c := k.connections[row.Thread]
	if c == nil {
		c = &counter{}
		k.connections[row.Thread] = c
	}
	row.Connection, row.Index = c.next(k.dial > 0 || k.cell.Connection == experiment.ConnectionNew)
	k.rows = append(k.rows, row)
}

// dropped adds what no virtual user was free for.
func (k *k6Reader) dropped() {
	due := k.began.mono(k.whole("timestamp", timesMost))
	n, err := strconv.ParseFloat(k.text("metric_value"), 64)
	if most := requests(k.cell) + k.cell.Threads - len(k.rows); err != nil || !(n >= 0 && n <= float64(most)) {
		k.fail("metric_value is %.40q, not a number of requests", k.text("metric_value"))
		return
	}
	for range int(n) {
		k.rows = append(k.rows, sample.Request{ScheduledNs: due, Error: errorMissed})
	}
}

// class is the error of a request, in the classes of Skerry's own load: k6 has a
// number for each kind.
func (k *k6Reader) class() string {
	code := k.text("error_code")
	if code == "" {
		return statusError(k.row.Status)
	}
	if k.row.Status != 0 && statusError(k.row.Status) != "" {
		return statusError(k.row.Status)
	}
	for _, known := range []struct{ code, class string }{
		{"1050", "timeout"}, {"1210", "dial error"}, {"1211", "dial timeout"}, {"1212", "dial refused"}, {"1220", "reset"},
	} {
		if code == known.code {
			return known.class
		}
	}
	return errorOther
}
