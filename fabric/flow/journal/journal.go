// Package journal writes records of flows to a file. No stream ever waits for it: records
// go by a queue that is bounded, and what finds it full, or a disk that takes no more, is
// counted and lost. The file and the one before it, whose name ends in .1, are bounded
// too; one that was moved away, as logrotate does, is made anew. Start at Open.
package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/flow"
)

const (
	// bytesMax is how long a file grows before it becomes the one before.
	bytesMax = 64 << 20
	// queueMax is how many records may wait to be written.
	queueMax = 4096
	// batchBytes is how much is written at once, where so much waits.
	batchBytes = 64 << 10
	// lookEvery is how often it looks whether the file was moved.
	lookEvery = time.Second
	perm      = 0o600
)

// Journal is an open one. Put and the numbers are safe for concurrent use.
type Journal struct {
	queue            chan flow.Record // never closed: a stream may end late
	stop, done       chan struct{}
	written, dropped atomic.Uint64
	file             file
}

// Open begins to write to a file, behind what is there. When that begins to fail, told is
// called with why, and when it works again, with nil.
func Open(path string, told func(error)) (*Journal, error) {
	return open(path, bytesMax, told)
}

func open(path string, most int64, told func(error)) (*Journal, error) {
	j := &Journal{
		queue: make(chan flow.Record, queueMax), stop: make(chan struct{}), done: make(chan struct{}),
		file: file{path: path, most: most, told: told},
	}
	if err := j.file.open(); err != nil {
		return nil, fmt.Errorf("open the log of flows: %w", err)
	}
	go j.run()
	return j, nil
}

// Put takes a record, unless too many wait. It does not block.
func (j *Journal) Put(r flow.Record) {
	select {
	case j.queue <- r:
	default:
		j.dropped.Add(1)
	}
}

// Written counts records that are in the file.
func (j *Journal) Written() uint64 { return j.written.Load() }

// Dropped counts those that found the queue full, or a disk that takes no more.
func (j *Journal) Dropped() uint64 { return j.dropped.Load() }

// Close writes what waits, and ends.
func (j *Journal) Close() error {
	close(j.stop)
	<-j.done
	return j.file.close()
}

// run writes what waits, as soon as anything does.
func (j *Journal) run() {
	defer close(j.done)
	var batch []byte
	for {
		select {
		case r := <-j.queue:
			batch = j.flush(batch[:0], r)
		case <-j.stop:
			for len(j.queue) > 0 {
				batch = j.flush(batch[:0], <-j.queue)
			}
			return
		}
	}
}

// flush writes a record and those that wait behind it at once. It gives the batch back,
// to be used again.
func (j *Journal) flush(batch []byte, first flow.Record) []byte {
	batch, n := j.take(batch, first)
	for len(j.queue) > 0 && len(batch) < batchBytes { // nobody else takes of it
		var one uint64
		batch, one = j.take(batch, <-j.queue)
		n += one
	}
	if j.file.write(batch) {
		j.written.Add(n)
	} else {
		j.dropped.Add(n)
	}
	return batch
}

// take adds a record's line to a batch, and says how many that makes.
func (j *Journal) take(batch []byte, r flow.Record) ([]byte, uint64) {
	batch, err := r.Append(batch)
	if err != nil {
		j.dropped.Add(1)
		return batch, 0
	}
	return batch, 1
}

// file is where it is written. One goroutine uses it.
type file struct {
	path string
	most int64 // bytes
	told func(error)

	f       *os.File // nil where it could not be made anew
	info    fs.FileInfo
	size    int64
	looked  time.Time
	failing bool
}

// open opens or makes the file. Neither a queue nor a folder is one: to open the first
// would wait for a reader.
func (w *file) open() error {
	if info, err := os.Stat(w.path); err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0 {
		return fmt.Errorf("%s is no regular file", w.path)
	}
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.f, w.info, w.size, w.looked = f, info, info.Size(), time.Now()
	return nil
}

func (w *file) close() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	return f.Close()
}

// write says whether all of a batch was written. What was written of it in part is taken
// back, so that each line is a record.
func (w *file) write(batch []byte) bool {
	err := w.ready(int64(len(batch)))
	if err == nil {
		if _, err = w.f.Write(batch); err != nil {
			_ = w.f.Truncate(w.size) // of a device there is nothing to take back
		} else {
			w.size += int64(len(batch))
		}
	}
	if failing := err != nil; failing != w.failing {
		w.failing = failing
		w.told(err)
	}
	return err == nil
}

// ready has the file open that the path names, with room for so many bytes more.
func (w *file) ready(more int64) error {
	if now := time.Now(); now.Sub(w.looked) >= lookEvery {
		w.looked = now
		switch info, err := os.Stat(w.path); {
		case err != nil || !os.SameFile(info, w.info):
			_ = w.close() // all was written, or told
		default:
			w.size = info.Size() // it may have been cut short
		}
	}
	if w.f != nil && w.size > 0 && w.size+more > w.most && w.info.Mode().IsRegular() {
		if err := os.Rename(w.path, w.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = w.close()
	}
	if w.f == nil {
		return w.open()
	}
	return nil
}
