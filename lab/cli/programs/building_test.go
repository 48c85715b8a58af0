package programs

import (
	"strings"
	"testing"
	"time"
)

// Without a terminal a build says now and then how far it is; on one a line is written
// over, and gone at the end.
func TestBuilding(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	p := &building{w: &out, now: func() time.Time { return now }}
	p.tell("building etcd")
	for done := range 101 {
		p.progress("etcd", done, 100)
		now = now.Add(time.Second)
	}
	want := "building etcd\netcd: 15 of 100 packages\netcd: 30 of 100 packages, about 1m10s left\netcd: 45 of 100 packages, about 55s left\n" +
		"etcd: 60 of 100 packages, about 40s left\netcd: 75 of 100 packages, about 25s left\netcd: 90 of 100 packages, about 10s left\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}

	out.Reset()
	p = &building{w: &out, now: p.now, terminal: true}
	p.progress("runc", 1, 2)
	p.progress("runc", 2, 2)
	const erase = "\r\x1b[K"
	if want := erase + "runc: 1 of 2 packages" + erase; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
