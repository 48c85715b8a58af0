package control_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/overlay/control"
)

// Nothing that a program passes has the daemon wait: here it is to close a TCP socket that
// lingers for longer than the daemon may be silent, since nobody reads what was sent.
func TestNothingPassedHoldsTheDaemonUp(t *testing.T) {
	l := newLAN(t)
	c, daemon := l.daemon()
	hostile := program(t, filepath.Join(l.dir, "ktsn"))
	socket := lingering(t)
	must(t, daemon.Process.Signal(syscall.SIGSTOP)) // so that its copy is the last
	open := make([]byte, 24)
	binary.NativeEndian.PutUint32(open, 2) // WIRE_OPEN
	binary.NativeEndian.PutUint32(open[8:], unix.CLOCK_TAI)
	_, _, err := hostile.WriteMsgUnix(open, unix.UnixRights(int(socket.Fd())), nil)
	must(t, err)
	must(t, socket.Close())
	must(t, daemon.Process.Signal(syscall.SIGCONT))
	answer := make([]byte, 24)
	_, err = hostile.Read(answer)
	must(t, err)
	if code := syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[12:]))); code != unix.EPROTONOSUPPORT { //nolint:gosec // an errno
		t.Errorf("it is told %v of a TCP socket", code)
	}
	if _, err := c.Status(); err != nil {
		t.Errorf("the daemon waits for what it closes: %v", err)
	}
	if sent, refused := talked(t, l.talk(far4, "-n", "5")); sent != 5 || refused != 0 {
		t.Errorf("%d packets of 5 were sent and %d refused", sent, refused)
	}
}

// So it is where a program has passed that and was not accepted yet when its attachment ended.
func TestNobodyUnacceptedHoldsTheDaemonUp(t *testing.T) {
	l := newLAN(t)
	c, daemon := l.daemon()
	socket := lingering(t)
	must(t, daemon.Process.Signal(syscall.SIGSTOP))
	detached := make(chan error)
	go func() { detached <- c.Detach("test") }()
	time.Sleep(100 * time.Millisecond) // what is asked first is heard first
	hostile, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: filepath.Join(l.dir, "ktsn"), Net: "unixpacket"})
	must(t, err)
	_, _, err = hostile.WriteMsgUnix(make([]byte, 24), unix.UnixRights(int(socket.Fd())), nil)
	must(t, err)
	must(t, hostile.Close())
	must(t, socket.Close())
	must(t, daemon.Process.Signal(syscall.SIGCONT))
	if err := <-detached; err != nil {
		t.Errorf("the daemon waits for what it closes: %v", err)
	}
	if _, err := c.Status(); err != nil {
		t.Errorf("the daemon waits for what it closes: %v", err)
	}
}

// lingering returns a TCP socket that has sent more than anybody reads, and waits a minute for
// that when it is closed.
func lingering(t *testing.T) *os.File {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := net.Dial("tcp4", listener.Addr().String())
	must(t, err)
	tcp := conn.(*net.TCPConn)
	must(t, tcp.SetLinger(60))
	must(t, tcp.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	for err == nil {
		_, err = tcp.Write(make([]byte, 1<<20))
	}
	socket, err := tcp.File()
	must(t, err)
	must(t, tcp.Close()) // the file is the last but one
	return socket
}

// program connects to a daemon as LibKTSN does.
func program(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	welcome, passed := make([]byte, 24), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(welcome, passed)
	if err != nil || n == 0 {
		return conn // it was turned away
	}
	messages, err := unix.ParseSocketControlMessage(passed[:n])
	must(t, err)
	ring, err := unix.ParseUnixRights(&messages[0])
	must(t, err)
	must(t, unix.Close(ring[0]))
	return conn
}

// Of the programs that the daemon serves, an attachment may have its share: that of another
// finds room, however many connect by the first.
func TestAttachmentsSharePrograms(t *testing.T) {
	const most = 256
	l := newLAN(t)
	c, _ := l.daemon()
	other := control.Attachment{Name: "other", Path: filepath.Join(l.dir, "other"), Addresses: []netip.Addr{netip.MustParseAddr(near4)}}
	must(t, c.Attach(other))
	for range most {
		program(t, filepath.Join(l.dir, "ktsn"))
	}
	s, err := c.Status()
	must(t, err)
	if s.Clients != most/2 {
		t.Errorf("%d programs are served by one of two attachments", s.Clients)
	}
	talker := l.talk(far4, "-n", "5")
	talker.Env = append(talker.Env, "KTSN_SOCKET="+other.Path)
	if sent, refused := talked(t, talker); sent != 5 || refused != 0 {
		t.Errorf("%d packets of 5 were sent by the other and %d refused", sent, refused)
	}
}

// An attachment's name is its own, and so is a file that lies where it is to listen.
func TestAttachRefuses(t *testing.T) {
	l := newLAN(t)
	c, _ := l.daemon()
	file := filepath.Join(l.dir, "a-file")
	must(t, os.WriteFile(file, []byte("mine"), 0o600))
	if err := c.Attach(control.Attachment{Name: "file", Path: file}); err == nil {
		t.Error("it listens in place of a file")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q: %v", text, err)
	}
	must(t, c.Attach(control.Attachment{Name: "second", Path: filepath.Join(l.dir, "second")}))
	must(t, c.Detach("test"))
	if err := c.Attach(control.Attachment{Name: "second", Path: filepath.Join(l.dir, "third")}); err == nil {
		t.Error("there are two of one name, since an earlier one has gone")
	}
}
