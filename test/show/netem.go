package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"skerry.dev/skerry/internal/guest"
)

// netemCommand also runs in the guest, where the lines are made.
const netemCommand = "make show AREA=netem"

// showNetem boots a kernel that has sch_netem, with this program in it, and prints
// the lines that it measures there.
func showNetem(ctx context.Context, b *bench) (err error) {
	folder, err := os.MkdirTemp("", "skerry-show-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	init := filepath.Join(folder, "init")
	if err := guest.Build(ctx, init, "./test/show", "build"); err != nil {
		return err
	}
	said := &transcript{bench: b}
	if err := (guest.Machine{Init: init}).Run(ctx, said); err != nil {
		return fmt.Errorf("%w\n%s", err, &said.talk)
	}
	return nil
}

// serveGuest is the guest's program. It does not return.
func serveGuest(ctx context.Context) {
	code := 0
	err := guest.Prepare()
	if err == nil {
		err = measureNetem(ctx, &bench{out: os.Stdout})
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "error:", err)
		code = 1
	}
	guest.End(os.Stdout, code)
}

// transcript passes on the lines of another program's bench, and keeps what else
// it says.
type transcript struct {
	*bench
	line []byte
	talk bytes.Buffer
}

// Write implements io.Writer.
func (t *transcript) Write(b []byte) (int, error) {
	t.line = append(t.line, b...)
	for {
		line, rest, found := bytes.Cut(t.line, []byte("\n"))
		if !found {
			return len(b), nil
		}
		t.take(string(line))
		t.line = rest
	}
}

func (t *transcript) take(text string) {
	failed := strings.HasPrefix(text, failMark)
	if !failed && !strings.HasPrefix(text, passMark) {
		_, _ = fmt.Fprintln(&t.talk, text)
		return
	}
	t.lines++
	if failed {
		t.failed++
	}
	_, _ = fmt.Fprintln(t.out, text)
}
