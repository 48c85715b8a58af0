package adapter

import (
	_ "embed"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

// jmeter is Apache JMeter 5 without its window, with Apache HttpClient 4.
//
// A row: ScheduledNs is when the sample began, dial included, and all times are
// exact to 1 ms. Thread is that of the thread's name. A request opens a connection
// where it is its thread's first, or where the dial took 1 ms at least; where none
// is kept, all do. A timeout holds for the dial and for the answer, each by itself.
// Think time comes before each request, the first too.
type jmeter struct{}

//go:embed jmeter.jmx
var jmeterPlan []byte

const (
	jmeterRows = "jmeter.csv"
	jmeterFile = "plan.jmx"
)

func (jmeter) abilities() abilities {
	return abilities{warmup: true, fresh: true, think: time.Millisecond, ramp: time.Second, timeout: time.Millisecond}
}

func (jmeter) plan(j Job, m load.Message) (Invocation, error) {
	c := j.Cell
	host, port, err := j.hostPort()
	if err != nil {
		return Invocation{}, err
	}
	args := []string{"-n", "-t", jmeterFile, "-l", jmeterRows, "-j", "jmeter.log"}
	set := func(name, value string) { args = append(args, "-J"+name+"="+value) }
	// What a file of the user's own could say otherwise.
	set("jmeter.save.saveservice.output_format", "csv")
	set("jmeter.save.saveservice.print_field_names", "true")
	set("jmeter.save.saveservice.timestamp_format", "ms")
	set("jmeter.save.saveservice.connect_time", "true")
	set("sampleresult.timestamp.start", "true")
	set("httpclient4.retrycount", "0")
	set("jmeterengine.nongui.port", "0") // no port for orders
	set("host", host)
	set("port", port)
	set("method", m.Method)
	set("path", m.Path)
	set("label", c.Workload)
	set("threads", strconv.Itoa(c.Threads))
	set("loops", strconv.Itoa(c.Warmup+c.Iterations))
	set("ramp", seconds(c.Ramp.Std()))
	set("think", milliseconds(c.Think.Std()))
	set("timeout", milliseconds(c.Timeout.Std()))
	set("keep", strconv.FormatBool(c.Connection == experiment.ConnectionKept))
	if len(m.Body) > 0 {
		set("body", bodyFile)
		set("type", load.ContentType)
	}
	return Invocation{Args: args, Files: map[string][]byte{jmeterFile: jmeterPlan}, Stdout: "jmeter.out"}, nil
}

func (jmeter) read(j Job, folder fs.FS, began Moment) (Result, error) {
	labelled, err := readFile(folder, jmeterRows, func(r io.Reader) ([]Labelled, error) { return ReadJMeter(r, began) })
	if err != nil {
		return Result{}, err
	}
	rows := make([]sample.Request, len(labelled))
	sent := map[int32]int{} // by thread
	for i, l := range labelled {
		rows[i] = l.Request
		sent[l.Thread]++
		rows[i].Warmup = sent[l.Thread] <= j.Cell.Warmup
		if j.Cell.Connection == experiment.ConnectionNew {
			rows[i].Connection, rows[i].Index = int32(sent[l.Thread]), 1
		}
	}
	if err := counted(experiment.ToolJMeter, rows, j.Cell); err != nil {
		return Result{}, err
	}
	return Result{Requests: rows}, nil
}

// Labelled is a request with the name that the test plan gives it.
type Labelled struct {
	Label string
	sample.Request
}

// ReadJMeter reads a file of JMeter's results: comma-separated with a header, the
// columns of JMeter's default in any order. It needs timeStamp (of the begin, in
// ms since 1970) and elapsed (ms); from the others it takes label, threadName,
// responseCode, success, Latency and Connect where they are there. A row that says
// neither code nor success is taken for an answer. Rows come in
// the order in which requests began. An error of the file is an *OutputError.
func ReadJMeter(r io.Reader, began Moment) ([]Labelled, error) {
	t, err := openTable(experiment.ToolJMeter, r, ',', "timeStamp", "elapsed")
	if err != nil {
		return nil, err
	}
	var rows []Labelled
	threads := map[string]int32{}
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		name := strings.Clone(t.text("threadName"))
		if _, known := threads[name]; !known {
			threads[name] = int32(len(threads))
		}
		row := t.jmeter(began)
		row.Thread = threads[name]
		rows = append(rows, Labelled{strings.Clone(t.text("label")), row})
	}
	slices.SortStableFunc(rows, func(a, b Labelled) int { return int(min(max(a.ScheduledNs-b.ScheduledNs, -1), 1)) })
	connections := map[int32]*counter{}
	for i := range rows {
		row := &rows[i].Request
		c := connections[row.Thread]
		if c == nil {
			c = &counter{}
			connections[row.Thread] = c
		}
		dialled := row.SentNs > row.ScheduledNs
		row.Connection, row.Index = c.next(dialled)
	}
	return rows, nil
}

// jmeter is the request of the row under way.
func (t *table) jmeter(began Moment) sample.Request {
	begin := began.mono(t.whole("timeStamp", timesMost/int64(time.Millisecond)) * int64(time.Millisecond))
	row := sample.Request{ScheduledNs: begin, SentNs: begin}
	end := begin + t.length("elapsed", time.Millisecond)
	if t.text("Connect") != "" {
		row.SentNs += t.length("Connect", time.Millisecond)
	}
	if t.text("Latency") != "" && t.text("Latency") != "0" {
		row.FirstByteNs = begin + t.length("Latency", time.Millisecond)
	}
	code := t.text("responseCode")
	if status, err := strconv.ParseUint(code, 10, 16); err == nil && status <= math.MaxInt16 {
		row.Status = int32(status)
	}
	row.Error = t.jmeterError(row.Status, code)
	if row.Error == "" || row.Status != 0 {
		row.LastByteNs = end
	}
	return row
}

// jmeterError is the error of a row, in the classes of Skerry's own load.
func (t *table) jmeterError(status int32, code string) string {
	success := t.text("success")
	switch {
	case success != "" && success != "true" && success != "false":
		t.fail("success is %.40q, neither true nor false", success)
		return ""
	case success == "true", success == "" && (code == "" || statusError(status) == ""):
		return ""
	case status != 0 && statusError(status) != "":
		return statusError(status)
	case status != 0:
		return "assertion"
	}
	for _, known := range []struct{ exception, class string }{
		{"ConnectTimeoutException", "dial timeout"}, {"HttpHostConnectException", "dial refused"}, {"ConnectException", "dial refused"},
		{"SocketTimeoutException", "timeout"}, {"NoHttpResponseException", "closed"}, {"SocketException", "reset"},
	} {
		if strings.HasSuffix(code, known.exception) {
			return known.class
		}
	}
	return errorOther
}
