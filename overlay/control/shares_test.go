package control_test

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/overlay/control"
)

// An attachment alone may have all that the daemon holds waiting; with another each may
// have half. Where the first has more than that from before, the daemon takes what there is
// room for, and no more than that.
func TestAttachmentsShareWhatMayWait(t *testing.T) {
	const packets = "64"
	l := newLAN(t)
	c, _ := l.daemon("--packets", packets)
	conn := l.listen(far4)
	waiting := func() (waiting, full uint64) {
		s, err := c.Status()
		must(t, err)
		for _, class := range s.Classes {
			waiting, full = waiting+class.Waiting, full+class.Full
		}
		return waiting, full
	}
	first := l.talk(far4, "-n", "80", "-c", "10000", "-l", "4000000000")
	must(t, first.Start())
	defer func() { _ = first.Wait() }()
	until(t, 5*time.Second, "the first does not fill it", func() bool { w, full := waiting(); return w == 64 && full == 16 })
	must(t, c.Attach(control.Attachment{Name: "other", Path: filepath.Join(l.dir, "other"), Addresses: []netip.Addr{netip.MustParseAddr(near4)}}))
	second := l.talk(far4, "-n", "80", "-c", "10000", "-l", "3000000000", "-p", "6") // a queue of its own
	second.Env = append(second.Env, "KTSN_SOCKET="+filepath.Join(l.dir, "other"))
	must(t, second.Start())
	defer func() { _ = second.Wait() }()
	until(t, 5*time.Second, "the second is not told", func() bool { w, full := waiting(); return w == 65 && full == 16+79 })
	until(t, 10*time.Second, "they still wait", func() bool { w, _ := waiting(); return w == 0 })
	if got := len(hear(t, conn, 300*time.Millisecond)); got != 65 {
		t.Errorf("%d packets arrived, of 65 that waited", got)
	}
	talked(t, l.talk(far4, "-n", "80", "-c", "10000", "-l", "1000000000")) // half, now that there are two
	if _, full := waiting(); full != 16+79+48 {
		t.Errorf("%d packets were too many, not %d", full, 16+79+48)
	}
}
