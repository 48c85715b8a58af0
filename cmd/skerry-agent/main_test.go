package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"skerry.dev/skerry/lab/sample"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"skerry-agent": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("ADDR", freeAddr(t))
			e.Setenv("OTHER", freeAddr(t))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"answers": answers, "requests": requests, "packets": packets, "files": files,
		},
	})
}

// freeAddr is an address that nothing listens on, by TCP or UDP, just now.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		if p, err := net.ListenPacket("udp", addr); err == nil {
			p.Close()
			return addr
		}
	}
	t.Fatal("no port is free for both TCP and UDP")
	return ""
}

// answers waits until a program of the script listens: answers tcp|udp ADDR.
func answers(ts *testscript.TestScript, _ bool, args []string) {
	for range 500 {
		switch args[0] {
		case "tcp":
			if conn, err := net.Dial("tcp", args[1]); err == nil {
				conn.Close()
				return
			}
		case "udp":
			p, err := net.ListenPacket("udp", args[1])
			if err != nil {
				return // taken
			}
			p.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("nothing listens on %s %s", args[0], args[1])
}

// requests holds that a file has so many rows without error:
// requests FILE ROWS WARMUP.
func requests(ts *testscript.TestScript, _ bool, args []string) {
	f, size := open(ts, args[0])
	defer f.Close()
	rows, err := sample.ReadRequests(f, size)
	ts.Check(err)
	warmup := 0
	for i, r := range rows {
		if r.Error != "" || r.Status != 200 || r.ResponseNs() <= 0 {
			ts.Fatalf("row %d: %+v", i, r)
		}
		if r.Warmup {
			warmup++
		}
	}
	if len(rows) != number(ts, args[1]) || warmup != number(ts, args[2]) {
		ts.Fatalf("%d rows, %d of warm-up", len(rows), warmup)
	}
}

// packets holds that a file has so many rows, all arrived: packets FILE ROWS.
func packets(ts *testscript.TestScript, _ bool, args []string) {
	f, size := open(ts, args[0])
	defer f.Close()
	rows, err := sample.ReadOneWay(f, size)
	ts.Check(err)
	for i, p := range rows {
		if p.Sequence != int64(i) || p.ReceivedNs < p.SentNs {
			ts.Fatalf("row %d: %+v", i, p)
		}
	}
	if len(rows) != number(ts, args[1]) {
		ts.Fatalf("%d rows", len(rows))
	}
}

// files holds that a folder has so many entries, hidden ones too: files DIR N.
func files(ts *testscript.TestScript, _ bool, args []string) {
	list, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(list) != number(ts, args[1]) {
		ts.Fatalf("%s holds %v", args[0], list)
	}
}

func open(ts *testscript.TestScript, name string) (*os.File, int64) {
	f, err := os.Open(ts.MkAbs(name))
	ts.Check(err)
	info, err := f.Stat()
	ts.Check(err)
	return f, info.Size()
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

func TestSummary(t *testing.T) {
	row := func(warmup bool, ns int64, class string) sample.Request {
		return sample.Request{Warmup: warmup, ScheduledNs: 100, LastByteNs: 100 + ns, Error: class}
	}
	s := summarise([]sample.Request{row(true, 9000, ""), row(false, 30, ""), row(false, 10, ""), row(false, -100, "timeout"), row(false, 20, ""), row(false, 40, "")})
	if s.N != 5 || s.Errors != 1 || s.MedianNs == nil || *s.MedianNs != 25 {
		t.Errorf("got %+v, want n 5, errors 1, median 25", s)
	}
	if s := summarise([]sample.Request{row(false, 0, "timeout")}); s.N != 1 || s.MedianNs != nil {
		t.Errorf("without an answer: got %+v, want no median", s)
	}
}
