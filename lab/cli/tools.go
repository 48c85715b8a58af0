package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/experiment"
)

// checkTools says what the tools of a load cannot do of its cells, each once.
func checkTools(e *experiment.Experiment) error {
	var all []error
	said := map[string]bool{}
	for _, cell := range e.Cells() {
		err := adapter.Check(cell)
		if err == nil {
			continue
		}
		if text := err.Error(); !said[text] {
			said[text] = true
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// tools finds the tools that the cells to run name, and has those built that must
// be. A cell whose tool is missing is added to lacks, as not runnable here; the
// error is that of the tool where nothing is left to run.
func (s source) tools(ctx context.Context, lacks map[string]string, tell func(line string)) (map[string]program.Program, error) {
	found, missing := map[string]program.Program{}, map[string]error{}
	all := s.Cells()
	var first error
	for _, cell := range all {
		_, have := found[cell.Tool]
		if cell.Tool == "" || have || lacks[cell.ID()] != "" {
			continue
		}
		err, known := missing[cell.Tool]
		if !known {
			var p program.Program
			if p, err = program.Find(ctx, cell.Tool, tell); err == nil {
				found[cell.Tool] = p
				continue
			}
			if _, lacking := errors.AsType[*program.MissingError](err); !lacking {
				return nil, err
			}
			missing[cell.Tool] = err
		}
		if first == nil {
			first = err
		}
		lacks[cell.ID()] = fmt.Sprintf("%v (%s)", err, hint(err))
	}
	if len(lacks) == len(all) && first != nil {
		return nil, first
	}
	return found, nil
}

// toolHint says how a tool becomes one that is here.
func toolHint(m *program.MissingError) string {
	if len(m.Packages) > 0 {
		return fmt.Sprintf("apt-get install %s, or leave %s out of load.tool", strings.Join(m.Packages, " "), m.Tool)
	}
	return "connect this host to a network once, or leave " + m.Tool + " out of load.tool"
}
