package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/system"
)

type fsTree = fs.FS

// hints are the remedies, the first that applies is shown.
func hint(err error) string {
	var missing *system.MissingError
	switch {
	case errors.As(err, &missing):
		return fmt.Sprintf("apt-get install %s, or leave the system %s out", missing.Need.Package, missing.System)
	case errors.Is(err, host.ErrNotRoot), errors.Is(err, unix.EPERM):
		return "run as root, or 'skerry doctor' to see what this host lacks"
	case errors.Is(err, cgroup.ErrMissing):
		return "mount the control groups (cgroup2 on /sys/fs/cgroup); 'skerry doctor' shows what this host lacks"
	case errors.Is(err, unix.ENOSPC):
		return "free some space, or choose another place by --out"
	case errors.Is(err, host.ErrExists):
		return "'skerry ps' lists the labs, 'skerry down NAME' removes one, --name chooses another name"
	case errors.Is(err, host.ErrNoLab):
		return "'skerry ps' lists the labs, 'skerry up FILE' makes one"
	case errors.Is(err, host.ErrBusy):
		return "wait until it is done, or end it"
	case errors.Is(err, errNoAgent):
		return "build both by 'make build'"
	case errors.Is(err, system.ErrUnknown):
		return "'skerry systems' lists them"
	case errors.Is(err, run.ErrDirExists):
		return "choose another directory by --out"
	}
	return ""
}

// explain prints an error and, where there is one, its remedy. Errors of a file
// bring their own.
func explain(w io.Writer, err error) {
	_, _ = fmt.Fprintf(w, "skerry: error: %v\n", err)
	if h := hint(err); h != "" {
		_, _ = fmt.Fprintf(w, "skerry: hint: %s\n", h)
	}
}
