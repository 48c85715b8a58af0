package control_test

import (
	"os/exec"
	"strconv"
	"testing"
	"time"

	"skerry.dev/skerry/overlay/control"
)

// closingPython closes sockets of which there are errors, unread or still to come, and counts
// those that others find then.
const closingPython = `
import socket, struct, sys, time
SO_TXTIME, CLOCK_TAI, CYCLE = 61, 11, 20_000_000
def opened():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 3)
    s.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("iI", CLOCK_TAI, 2)) # SOF_TXTIME_REPORT_ERRORS
    s.connect((sys.argv[1], int(sys.argv[2])))
    return s
def send(s, at):
    s.sendmsg([b"x"], [(socket.SOL_SOCKET, SO_TXTIME, struct.pack("Q", at))])
def errors(s):
    n = 0
    try:
        while True:
            s.recvmsg(100, 100, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            n += 1
    except BlockingIOError:
        return n
now = lambda: time.clock_gettime_ns(CLOCK_TAI)
first, other = opened(), opened()
for i in range(100): # more than there is room for; all are past
    send(first, 1)
    time.sleep(0.0001)
time.sleep(0.1)
first.close()
send(other, 1)
time.sleep(0.1)
print("another finds", errors(other))
first = opened()
print("the next of its number finds", errors(first))
for i in range(10): # in half a second, while the gate is shut
    send(first, (now() + 500_000_000) // CYCLE * CYCLE + CYCLE // 2)
first.close()
first = opened()
time.sleep(0.8)
print("the next after that finds", errors(first))
`

// Errors are of the socket whose packets were not sent: that has gone, they are nobody's.
func TestErrorsEndWithTheirSocket(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	l := newLAN(t)
	c, _ := l.daemon("--late-ns", "1000000")
	_, err = c.Load(control.Schedule{Cycle: 20 * time.Millisecond, Entries: []control.Entry{{Open: 1 << 3, For: 2 * time.Millisecond}, {Open: 1 << 7, For: 18 * time.Millisecond}}})
	must(t, err)
	program := exec.Command(python, "-c", closingPython, far4, strconv.Itoa(port))
	program.Env = l.talk(far4).Env
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const want = "another finds 1\nthe next of its number finds 0\nthe next after that finds 0\n"
	if string(out) != want {
		t.Errorf("it says\n%swant\n%s", out, want)
	}
	if k := only(t, c); k.Missed != 10 || k.Late != 101 {
		t.Errorf("the daemon counts %+v", k)
	}
}
