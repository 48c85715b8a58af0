package adapter

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

// Readers of each kind of output; those of a total return no rows.
func readers() map[string]func(io.Reader) ([]sample.Request, error) {
	return map[string]func(io.Reader) ([]sample.Request, error){
		"ab.tsv":  func(r io.Reader) ([]sample.Request, error) { return readAB(r, Moment{}, true) },
		"ab.out":  func(r io.Reader) ([]sample.Request, error) { _, err := readABTotal(r); return nil, err },
		"hey.csv": func(r io.Reader) ([]sample.Request, error) { return readHey(r, Moment{}, true) },
		"jmeter.csv": func(r io.Reader) ([]sample.Request, error) {
			labelled, err := ReadJMeter(r, Moment{})
			rows := make([]sample.Request, len(labelled))
			for i, l := range labelled {
				rows[i] = l.Request
			}
			return rows, err
		},
		"k6.csv": func(r io.Reader) ([]sample.Request, error) {
			return readK6(r, Moment{}, experiment.Cell{Threads: 2, Iterations: 4, Warmup: 1})
		},
		"wrk.out": func(r io.Reader) ([]sample.Request, error) { _, err := readWrk(r); return nil, err },
	}
}

const (
	heyHead    = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
	jmeterHead = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage," +
		"bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
	k6Head = "metric_name,timestamp,metric_value,error_code,status,extra_tags,metadata\n"
)

// What is not as a tool writes it is one error, with the tool and the line.
func TestMalformed(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"ab.tsv", "", "ab: it is empty"},
		{"ab.tsv", "starttime\tseconds\n", "ab: line 1: there is no column ctime"},
		{"ab.tsv", "seconds\tctime\tttime\n1\t0\t10\n1\t0\n", "ab: line 3: wrong number of fields"},
		{"ab.tsv", "seconds\tctime\tttime\nsoon\t0\t10\n", `ab: line 2: seconds is "soon", not a whole number from 0 to 3153600000`},
		{"ab.tsv", "seconds\tctime\tttime\n1\t-1\t10\n", `ab: line 2: ctime is "-1", not a time`},
		{"ab.out", "", "ab: it does not say: Complete requests"},
		{"ab.out", "Complete requests: many\n", `ab: line 1: Complete requests is "many", not a number`},
		{"ab.out", "Complete requests: 1\nFailed requests: 0\nTime taken for tests: NaN seconds\n", `ab: line 3: Time taken for tests is "NaN", not a number`},
		{"hey.csv", "0.1,0,0,0,0,0,200,0\n", "hey: line 1: there is no column response-time"},
		{"hey.csv", heyHead + "0.1,0,0,0,0,0,200,0\n0.1,0,0,0,0,0,OK,0\n", `hey: line 3: status-code is "OK", not a whole number from 0 to 32767`},
		{"hey.csv", heyHead + "Inf,0,0,0,0,0,200,0\n", `hey: line 2: response-time is "Inf", not a time`},
		{"hey.csv", heyHead + "0.1,\"0,0,0,0,0,200,0\n", `hey: line 2: extraneous or missing " in quoted-field`},
		{"jmeter.csv", "timeStamp,label\n", "jmeter: line 1: there is no column elapsed"},
		{"jmeter.csv", jmeterHead + "2023/05/04 10:00:00.000,10,a,200,OK,t 1-1,text,true,,1,1,1,1,u,9,0,0\n",
			`jmeter: line 2: timeStamp is "2023/05/04 10:00:00.000", not a whole number from 0 to 3153600000000`},
		{"jmeter.csv", jmeterHead + "1,10,a,200,OK,t 1-1,text,true,\"two\nlines\",1,1,1,1,u,9,0,0\n2,10,a,200,OK,t 1-1,text,maybe,,1,1,1,1,u,9,0,0\n",
			`jmeter: line 4: success is "maybe", neither true nor false`},
		{"k6.csv", k6Head + "http_req_duration,1,1.0,,200,,vu=1&iter=0\n", "k6: line 2: http_req_duration comes before any request"},
		{"k6.csv", k6Head + "http_reqs,1,1.0,,200,,iter=0\n", `k6: line 2: metadata is "iter=0", which names no vu and iter`},
		{"k6.csv", k6Head + "http_reqs,1,1.0,,200,,vu=1&iter=0\nhttp_req_duration,1,long,,200,,vu=1&iter=0\n", `k6: line 3: metric_value is "long", not a time`},
		{"k6.csv", k6Head + "dropped_iterations,1,1e300,,,,\n", `k6: line 2: metric_value is "1e300", not a number of requests`},
		{"wrk.out", "Running 1s test\n", "wrk: it prints no total"},
		{"wrk.out", "Running 1s test\nskerry-total {\"requests\":}\n", "wrk: line 2: invalid character '}' looking for beginning of value"},
		{"wrk.out", "skerry-total {\"requests\":1,\"p50_us\":-1}\n", "wrk: line 1: -1 is no time"},
		{"wrk.out", "skerry-total {\"requests\":1,\"errors\":{\"read\":-1}}\n", "wrk: line 1: 1 requests, -1 of them with read"},
	} {
		_, err := readers()[c.kind](strings.NewReader(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s %q:\n got %v\nwant %s", c.kind, c.text, err, c.want)
		}
		if _, ok := errors.AsType[*OutputError](err); !ok {
			t.Errorf("%s %q: %T", c.kind, c.text, err)
		}
	}
}

// Errors have the classes of Skerry's own load, whatever the tool calls them.
func TestErrors(t *testing.T) {
	jmeterRow := func(code, success string) string {
		return jmeterHead + "1000,10," + "a," + code + ",m,t 1-1,text," + success + ",,1,1,1,1,u,0,0,0\n"
	}
	k6Row := func(status, code string) string {
		return k6Head + "http_reqs,1,1.0," + code + "," + status + ",,vu=1&iter=1\n"
	}
	for _, c := range []struct{ kind, text, want string }{
		{"hey.csv", heyHead + "0.1,0,0,0,0,0,503,0\n", "status 503"},
		{"hey.csv", heyHead + "0.1,0,0,0,0,0,200,0\n", ""},
		{"jmeter.csv", jmeterRow("200", "true"), ""},
		{"jmeter.csv", jmeterRow("204", ""), ""},
		{"jmeter.csv", jmeterRow("500", ""), "status 500"},
		{"jmeter.csv", jmeterRow("503", "false"), "status 503"},
		{"jmeter.csv", jmeterRow("200", "false"), "assertion"},
		{"jmeter.csv", jmeterRow("Non HTTP response code: java.net.SocketTimeoutException", "false"), "timeout"},
		{"jmeter.csv", jmeterRow("Non HTTP response code: org.apache.http.conn.ConnectTimeoutException", "false"), "dial timeout"},
		{"jmeter.csv", jmeterRow("Non HTTP response code: org.apache.http.conn.HttpHostConnectException", "false"), "dial refused"},
		{"jmeter.csv", jmeterRow("Non HTTP response code: java.net.SocketException", "false"), "reset"},
		{"jmeter.csv", jmeterRow("Non HTTP response code: org.apache.http.NoHttpResponseException", "false"), "closed"},
		{"jmeter.csv", jmeterRow("Non HTTP response code: java.io.IOException", "false"), "error"},
		{"k6.csv", k6Row("200", ""), ""},
		{"k6.csv", k6Row("503", "1503"), "status 503"},
		{"k6.csv", k6Row("0", "1050"), "timeout"},
		{"k6.csv", k6Row("0", "1211"), "dial timeout"},
		{"k6.csv", k6Row("0", "1212"), "dial refused"},
		{"k6.csv", k6Row("0", "1220"), "reset"},
		{"k6.csv", k6Row("0", "1000"), "error"},
		{"k6.csv", k6Head + "dropped_iterations,1,1.0,,,,\n", "missed"},
	} {
		rows, err := readers()[c.kind](strings.NewReader(c.text))
		if err != nil || len(rows) != 1 || rows[0].Error != c.want {
			t.Errorf("%s: got %+v, %v; want %q", c.text, rows, err, c.want)
			continue
		}
		if answered := rows[0].LastByteNs != 0; answered != (rows[0].Status != 0) {
			t.Errorf("%s: status %d, last byte at %d", c.text, rows[0].Status, rows[0].LastByteNs)
		}
	}
}

// JMeter's columns may come in any order, and those that are not needed may be
// missing, as in files that were made smaller.
func TestJMeterColumns(t *testing.T) {
	const small = "\ufeffelapsed,timeStamp\n20,1000\n10,1500\n"
	rows, err := ReadJMeter(strings.NewReader(small), Moment{})
	if err != nil || len(rows) != 2 || rows[1].ScheduledNs != 1.5e9 || rows[1].ResponseNs() != 10e6 || rows[1].Error != "" {
		t.Errorf("the two columns that are needed: %+v, %v", rows, err)
	}
	const paper = "timeStamp,elapsed,label,responseCode,threadName,success,Latency,Connect\n" +
		"1000,30,small,200,Group 1-1,true,29,10\n1000,31,small,200,Group 1-2,true,30,10\n" +
		"1040,10,large,200,Group 1-1,true,9,0\n1050,25,small,200,Group 1-1,true,24,11\n"
	rows, err = ReadJMeter(strings.NewReader(paper), Moment{})
	if err != nil || len(rows) != 4 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for i, want := range []struct {
		label                     string
		thread, connection, index int32
		response                  int64
	}{{"small", 0, 1, 1, 30e6}, {"small", 1, 1, 1, 31e6}, {"large", 0, 1, 2, 10e6}, {"small", 0, 2, 1, 25e6}} {
		r := rows[i]
		if r.Label != want.label || r.Thread != want.thread || r.Connection != want.connection || r.Index != want.index || r.ResponseNs() != want.response {
			t.Errorf("row %d: %+v, want %+v", i+1, r, want)
		}
	}
}

const seedMax = 800

// fuzz has a reader take anything: what it returns is sound, what it refuses it
// refuses with an *OutputError.
func fuzz(f *testing.F, kind string) {
	recorded, err := os.ReadFile("testdata/" + kind)
	if err != nil {
		f.Fatal(err)
	}
	// Short, since the fuzzer takes a minute to shorten a long one.
	f.Add(recorded[:min(len(recorded), seedMax)])
	f.Add(recorded[:min(len(recorded), seedMax/2)])
	read := readers()[kind]
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := read(bytes.NewReader(data))
		if err != nil {
			if _, ok := errors.AsType[*OutputError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for i, q := range rows {
			switch {
			case i > 0 && q.ScheduledNs < rows[i-1].ScheduledNs:
				t.Fatalf("row %d began before the one above it", i)
			case q.Error == "" && q.LastByteNs < q.ScheduledNs:
				t.Fatalf("row %d was answered before it began: %+v", i, q)
			case q.Error != errorMissed && q.Index < 1, q.Thread < 0, q.Status < 0:
				t.Fatalf("row %d: %+v", i, q)
			}
		}
	})
}

func FuzzABRows(f *testing.F)  { fuzz(f, "ab.tsv") }
func FuzzABTotal(f *testing.F) { fuzz(f, "ab.out") }
func FuzzHey(f *testing.F)     { fuzz(f, "hey.csv") }
func FuzzJMeter(f *testing.F)  { fuzz(f, "jmeter.csv") }
func FuzzK6(f *testing.F)      { fuzz(f, "k6.csv") }
func FuzzWrk(f *testing.F)     { fuzz(f, "wrk.out") }
