package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/cluster/crilog"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// Log is what a program of a lab, or a container in it, has said. It is read where it
// was written, so that it needs no API server.
type Log struct {
	// Target names it: "links", "c1/head:kubelet", "c1/kube-system/coredns-x", and with
	// ":CONTAINER" where a pod has several.
	Target string `json:"target"`
	Bytes  int64  `json:"bytes"`
	// pattern is of the files that it consists of: a container has one for each start.
	pattern string
	// framed lines are a container runtime's.
	framed bool
}

// linksTarget names the log of the link emulator.
const linksTarget = "links"

// Logs lists the logs of a lab: of its links, of the programs of its clusters and of the
// containers in them.
func Logs(lab *host.Lab) ([]Log, error) {
	all := []Log{{Target: linksTarget, pattern: lab.LinksLog()}}
	for _, n := range lab.Topology.Nodes() {
		programs, err := filepath.Glob(filepath.Join(dirOf(lab, n.Cluster), n.Name, "*"+logSuffix))
		if err != nil {
			return nil, err
		}
		for _, path := range programs {
			all = append(all, Log{Target: n.String() + ":" + strings.TrimSuffix(filepath.Base(path), logSuffix), pattern: path})
		}
	}
	for _, n := range lab.Topology.Nodes() {
		if _, err := os.Stat(filepath.Join(dirOf(lab, n.Cluster), recordFile)); err != nil {
			continue // its nodes are hosts, which have the machine's /var/log
		}
		pods, err := podLogs(lab, n)
		if err != nil {
			return nil, err
		}
		all = append(all, pods...)
	}
	for i, l := range all {
		files, err := l.files()
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if info, err := os.Stat(f); err == nil { // else its pod has just gone
				all[i].Bytes += info.Size()
			}
		}
	}
	return all, nil
}

// podLogs are those of the containers at a node, as its kubelet has them written:
// /var/log/pods/NAMESPACE_POD_UID/CONTAINER/START.log, seen through its holder.
func podLogs(lab *host.Lab, n topology.Node) (all []Log, err error) {
	const folderParts = 3
	root := filepath.Join("/proc", strconv.Itoa(lab.Nodes[n.Ref()].Pid), "root/var/log/pods")
	pods, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for logs of pods: %w", err)
	}
	for _, pod := range pods {
		name := strings.Split(pod.Name(), "_") // which no name of Kubernetes has
		if len(name) != folderParts {
			continue
		}
		containers, err := os.ReadDir(filepath.Join(root, pod.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has just gone
			return nil, fmt.Errorf("look for logs of pods: %w", err)
		}
		for _, container := range containers {
			l := Log{Target: n.Cluster + "/" + name[0] + "/" + name[1], framed: true}
			if len(containers) > 1 {
				l.Target += ":" + container.Name()
			}
			l.pattern = filepath.Join(root, pod.Name(), container.Name(), "*"+logSuffix)
			all = append(all, l)
		}
	}
	return all, nil
}

// files of the log, in the order in which they were written.
func (l Log) files() ([]string, error) {
	files, err := filepath.Glob(l.pattern)
	slices.SortFunc(files, func(a, b string) int { return startOf(a) - startOf(b) })
	return files, err
}

// startOf a container, by the number that names its log.
func startOf(path string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), logSuffix)) // programs have one log
	return n
}

// followPause lies between two looks whether more was written.
const followPause = 100 * time.Millisecond

// Copy writes what was said, without the runtime's frames. With follow it goes on with
// what is said then, until the context ends or the log is gone.
func (l Log) Copy(ctx context.Context, w io.Writer, follow bool) error {
	read := map[string]int64{} // bytes of each file
	for {
		files, err := l.files()
		if err != nil {
			return err
		}
		for _, path := range files {
			if read[path], err = l.copyFrom(w, path, read[path]); err != nil {
				return fmt.Errorf("read log of %s: %w", l.Target, err)
			}
		}
		if !follow || len(files) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// copyFrom writes what a file has from a place on, in whole lines where they are
// framed, and tells how far it came.
func (l Log) copyFrom(w io.Writer, path string, from int64) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return from, nil
	}
	if err != nil {
		return from, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return from, err
	}
	if info.Size() < from {
		from = 0 // it was begun anew
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	if !l.framed {
		n, err := io.Copy(w, f)
		return from + n, err
	}
	return copyFramed(w, f, from)
}

func copyFramed(w io.Writer, r io.Reader, from int64) (int64, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return from, err
	}
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			break // the rest comes later
		}
		if _, err := w.Write(crilog.Text(text[:end])); err != nil {
			return from, err
		}
		text, from = text[end:], from+int64(end)
	}
	return from, nil
}

// StartError says why clusters did not start, and where what their programs said is
// kept.
type StartError struct {
	Err error
	// Logs is a folder, with a log of each program in CLUSTER/NODE.
	Logs string
}

// Error is why.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap gives why.
func (e *StartError) Unwrap() error { return e.Err }

// keepLogs saves what the programs of a lab's clusters have said before the lab goes.
func keepLogs(lab *host.Lab, path string, why error) error {
	logs, err := filepath.Glob(filepath.Join(dirOf(lab, "*"), "*", "*"+logSuffix))
	if err != nil || path == "" || len(logs) == 0 {
		return why
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return errors.Join(why, fmt.Errorf("keep logs: %w", err))
	}
	for _, log := range logs {
		name, err := filepath.Rel(filepath.Join(lab.Dir(), "clusters"), log)
		if err == nil {
			err = copyFile(filepath.Join(dir, name), log)
		}
		if err != nil {
			return errors.Join(why, fmt.Errorf("keep logs: %w", err))
		}
	}
	return &StartError{why, dir}
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
