package control_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// slowlyPython has its number of sockets, sends once by each, says so and waits for a line; then it opens
// one more and says how long 500 packets of that took, in ms. Without a daemon they go by the kernel.
const slowlyPython = `
import socket, struct, sys, time
SO_TXTIME, CLOCK_TAI = 61, 11
def opened():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", CLOCK_TAI, 0))
    s.connect((sys.argv[1], int(sys.argv[2])))
    return s
def send(s):
    at = struct.pack("Q", time.clock_gettime_ns(CLOCK_TAI) + 100_000_000)
    s.sendmsg([b"x"], [(socket.SOL_SOCKET, SO_TXTIME, at)])
some = [opened() for _ in range(int(sys.argv[3]))]
for s in some:
    send(s)
print("ready", flush=True)
sys.stdin.readline()
s = opened()
begun = time.monotonic()
for i in range(500):
    send(s)
print(int((time.monotonic() - begun) * 1000))
`

// A daemon that says nothing, or that refuses a socket, costs a program some time now and then,
// and not at each packet.
func TestSilenceIsNotWaitedForEachTime(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	l := newLAN(t)
	_, daemon := l.daemon()
	l.listen(far4)
	silent := filepath.Join(l.dir, "silent")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: silent, Net: "unixpacket"})
	must(t, err)
	defer func() { _ = listener.Close() }()
	nothing := func() {}
	for _, of := range []struct {
		what, path string
		sockets    int
		meanwhile  func()
		most       time.Duration
	}{
		{"a daemon that greets nobody", silent, 0, nothing, time.Second},
		{"a daemon that has its most of its sockets", filepath.Join(l.dir, "ktsn"), 256, nothing, 100 * time.Millisecond},
		{"a daemon that stands still", filepath.Join(l.dir, "ktsn"), 1, func() { must(t, daemon.Process.Signal(syscall.SIGSTOP)) }, time.Second},
	} {
		program := exec.Command(python, "-c", slowlyPython, far4, strconv.Itoa(port), strconv.Itoa(of.sockets))
		program.Env = append(l.talk(far4).Env, "KTSN_FALLBACK=", "KTSN_SOCKET="+of.path)
		program.Stderr = os.Stderr
		in, err := program.StdinPipe()
		must(t, err)
		out, err := program.StdoutPipe()
		must(t, err)
		must(t, program.Start())
		said := bufio.NewScanner(out)
		said.Scan()
		of.meanwhile()
		_, err = in.Write([]byte("go\n"))
		must(t, err)
		said.Scan()
		ms, err := strconv.Atoi(said.Text())
		must(t, err)
		must(t, program.Wait())
		t.Logf("%s: %d ms", of.what, ms)
		if took := time.Duration(ms) * time.Millisecond; took > of.most {
			t.Errorf("with %s 500 packets take %s", of.what, took)
		}
	}
	must(t, daemon.Process.Signal(syscall.SIGCONT))
}
