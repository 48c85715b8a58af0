package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"skerry.dev/skerry/fabric/flow"
)

// Read gives the records of a file, those of the one before first, until one is wrong.
func Read(path string) iter.Seq2[*flow.Record, error] {
	return func(yield func(*flow.Record, error) bool) {
		now, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer now.Close()
		before, err := os.Open(path + ".1")
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			yield(nil, err)
			return
		default:
			defer before.Close()
			if same(before, now) { // it has just become the one before
				break
			}
			if !records(before, yield) {
				return
			}
		}
		records(now, yield)
	}
}

func same(a, b *os.File) bool {
	one, err := a.Stat()
	two, wrong := b.Stat()
	return err == nil && wrong == nil && os.SameFile(one, two)
}

// records says whether more are wanted.
func records(f *os.File, yield func(*flow.Record, error) bool) bool {
	for r, err := range flow.Read(f) {
		if err != nil {
			err = fmt.Errorf("%s: %w", f.Name(), err)
		}
		if !yield(r, err) || err != nil {
			return false
		}
	}
	return true
}
