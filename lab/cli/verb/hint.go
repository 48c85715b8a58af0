package verb

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/capture"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/workload/broker"
)

// InstallGo is the remedy where the go command is missing.
const InstallGo = "install Go (https://go.dev/doc/install) and put it on the path"

// Hint is the remedy of an error, "" where there is none: the error's own, else
// the first that applies.
func Hint(err error) string {
	if own := ownHint(err); own != "" {
		return own
	}
	switch packages, systems := missing(err); {
	case len(packages) > 0:
		word := "system"
		if len(systems) > 1 {
			word = "systems"
		}
		return fmt.Sprintf("apt-get install %s, or leave the %s %s out", strings.Join(packages, " "), word, strings.Join(systems, " and "))
	case errors.Is(err, gobuild.ErrNoGo):
		return InstallGo
	case errors.Is(err, host.ErrNotRoot):
		return "run as root, or 'skerry doctor' to see what this host lacks"
	case errors.Is(err, unix.EPERM), errors.Is(err, host.ErrLinks):
		return "'skerry doctor' shows what this host lacks, each with its remedy"
	case errors.Is(err, experiment.ErrNotRunnable):
		return "run it on a machine with more cores; 'skerry plan FILE' shows what each cell needs"
	case errors.Is(err, cgroup.ErrMissing):
		return "mount the control groups (cgroup2 on /sys/fs/cgroup); 'skerry doctor' shows what this host lacks"
	case errors.Is(err, unix.ENOSPC):
		return "free some space, or write to another place"
	case errors.Is(err, whole.ErrKind):
		return "name a file: it would take the place of what is there"
	case errors.Is(err, ErrNoAgent):
		return "build both by 'make build'"
	case lacksOwn(err):
		return "build all of Skerry's programs by 'make build'"
	case errors.Is(err, system.ErrUnknown):
		return "'skerry systems' lists them"
	case errors.Is(err, run.ErrDamaged):
		return "run the experiment anew; or, if the file is a repetition's, remove that repetition's folder and run --resume"
	case errors.Is(err, run.ErrRunning):
		return "'skerry status DIR' shows how far it is"
	case errors.Is(err, run.ErrNoRun):
		return "name the directory that 'skerry run' wrote, such as runs/NAME-DATE-TIME"
	case errors.Is(err, run.ErrDirExists):
		return "choose another directory by --out"
	}
	if changed, ok := errors.AsType[*run.ChangedError](err); ok {
		return "restore " + folders(changed.System) + " (--systems names another folder), or run the experiment anew"
	}
	if changed, ok := errors.AsType[*run.ChangedFileError](err); ok {
		return "restore " + changed.Path + ", or run the experiment anew"
	}
	if m, ok := errors.AsType[*program.MissingError](err); ok {
		return toolHint(m)
	}
	if m, ok := errors.AsType[*broker.MissingError](err); ok {
		return "apt-get install " + m.Need.Package + ", or leave " + m.Name + " out of workloads"
	}
	if _, ok := errors.AsType[*run.SpaceError](err); ok {
		return "free some space, or choose another place by --out"
	}
	if failed, ok := errors.AsType[*run.RepetitionError](err); ok {
		const cellsAndID = "../../.."
		return "its logs and files are in " + failed.Dir + "; 'skerry run --resume " + filepath.Join(failed.Dir, cellsAndID) + "' tries it again"
	}
	return labHint(err)
}

// labHint is the remedy of an error of a lab by hand. Within a run others go
// before it: its lab is down by then.
func labHint(err error) string {
	switch {
	case errors.Is(err, host.ErrName):
		return "choose another by --name"
	case errors.Is(err, host.ErrExists):
		return "'skerry ps' lists the labs, 'skerry down NAME' removes one, --name chooses another name"
	case errors.Is(err, host.ErrNoLab):
		return "'skerry ps' lists the labs, 'skerry up FILE' makes one"
	case errors.Is(err, host.ErrState):
		return "remove its folder in /run/skerry, then 'skerry doctor --clean' removes the rest"
	case errors.Is(err, host.ErrBusy):
		return "wait until it is done, or end it"
	case errors.Is(err, host.ErrSilent):
		return "'skerry ps' says what has ended or hangs; 'skerry down LAB' takes the lab down all the same"
	case errors.Is(err, host.ErrNoDir):
		return "go to another folder first: nodes of Kubernetes have their own /run, /var/lib and /var/log"
	case errors.Is(err, host.ErrNoProcess):
		return "'skerry ps' lists what runs in the nodes"
	case errors.Is(err, host.ErrNoFault), errors.Is(err, host.ErrInForce):
		return "'skerry fault list' shows those in force, 'skerry fault undo LAB FAULT' ends one"
	case errors.Is(err, host.ErrLabEnded):
		return "the file has all that came before"
	case errors.Is(err, cluster.ErrNoAnswer):
		return "'skerry fault list' shows what was stopped on purpose, 'skerry logs LAB' whose words there are"
	case errors.Is(err, cluster.ErrBoot):
		return "'skerry logs LAB' lists whose words there are, 'skerry fault undo LAB FAULT' tries again"
	case errors.Is(err, cluster.ErrNoRoom):
		return "load it into one cluster, or take down a lab that is not needed"
	case errors.Is(err, cluster.ErrNoPod):
		return "'skerry ps' says what it waits for"
	case errors.Is(err, cluster.ErrProtected):
		return "'kubectl get pdb -A' shows the budgets; 'skerry fault kill' asks for no leave"
	case errors.Is(err, capture.ErrNoCompiler):
		return "apt-get install tcpdump, or leave --filter out"
	}
	return ""
}

// ownHint is the remedy that an error brings, or that its fields make.
func ownHint(err error) string {
	if usage, ok := errors.AsType[console.UsageError](err); ok && usage.Remedy() != "" {
		return usage.Remedy()
	}
	if said, ok := errors.AsType[*run.AgentError](err); ok && said.Hint != "" {
		return said.Hint
	}
	if failed, ok := errors.AsType[*gobuild.Error](err); ok {
		return failed.Hint
	}
	if bundle, ok := errors.AsType[*gobuild.BundleError](err); ok {
		return bundle.Hint
	}
	if start, ok := errors.AsType[*cluster.StartError](err); ok {
		return "what the programs of its clusters said is in " + start.Logs
	}
	if stack, ok := errors.AsType[*system.StackError](err); ok {
		return stack.Hint
	}
	if c, ok := errors.AsType[*system.CarryError](err); ok {
		what := c.Protocol + " out of load.protocol"
		if name, alone := experiment.Speaker(c.Protocol); alone {
			what = name + " out of workloads"
		}
		return "leave " + what + ", or the system " + c.System + " out of systems"
	}
	if own, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return own.Hint()
	}
	return ""
}

// lacksOwn says that a program of Skerry's is missing.
func lacksOwn(err error) bool {
	m, ok := errors.AsType[*system.MissingError](err)
	return ok && m.Need.Own
}

// folders are where the plug-ins of a system lie.
func folders(name string) string {
	var all []string
	for _, part := range experiment.Parts(name) {
		plugin, _ := experiment.Plugin(part)
		all = append(all, "systems/"+plugin)
	}
	return strings.Join(all, " and ")
}

// missing are the packages that an error, or each of several, asks for, and the
// systems that need them, each once.
func missing(err error) (packages, systems []string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			more, of := missing(one)
			packages, systems = append(packages, more...), append(systems, of...)
		}
		return once(packages), once(systems)
	}
	if m, ok := errors.AsType[*system.MissingError](err); ok && m.Need.Package != "" {
		return []string{m.Need.Package}, []string{m.System}
	}
	return nil, nil
}

func once(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Explain prints an error and, where there is one, its remedy.
func Explain(w io.Writer, err error) { console.Explain(w, "skerry", err, Hint(err)) }

// toolHint says how a tool becomes one that is here.
func toolHint(m *program.MissingError) string {
	if len(m.Packages) > 0 {
		return fmt.Sprintf("apt-get install %s, or leave %s out of load.tool", strings.Join(m.Packages, " "), m.Tool)
	}
	return "connect this host to a network once, or leave " + m.Tool + " out of load.tool"
}
