package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/workload/broker"
)

// Missing lists what the systems need and this machine lacks.
func (s File) Missing() error {
	var problems []error
	for _, name := range s.Systems {
		problems = append(problems, s.Stacks[name].Missing()...)
	}
	return errors.Join(problems...)
}

// Lacks are what this machine has not of the programs that the experiment's
// systems, workloads and load tools need, and its kernel of what systems do, each once.
func (s File) Lacks() []error {
	var all []error
	said := map[string]bool{}
	add := func(errs ...error) {
		for _, err := range errs {
			if err != nil && !said[err.Error()] {
				said[err.Error()] = true
				all = append(all, err)
			}
		}
	}
	for _, name := range s.Systems {
		add(s.Stacks[name].Missing()...)
		add(s.Stacks[name].KernelLacks())
	}
	for _, w := range s.Workloads {
		if broker.Protocol(w.Name) != "" {
			add(broker.Missing(w.Name))
		}
	}
	for _, tool := range s.Load.Tool {
		add(program.Missing(tool))
	}
	return all
}

// Build has the programs built that the systems need from Go modules.
func (s File) Build(ctx context.Context, tell func(line string)) error {
	for _, name := range s.Systems {
		if err := s.Stacks[name].Build(ctx, gobuild.Builder{Tell: tell}.Path); err != nil {
			return err
		}
	}
	return nil
}

// NotRunnable says of each cell that the machine's cores cannot carry, or that needs
// what its kernel lacks, by its ID, why. The error is that of the first where nothing is
// left to run.
func (s File) NotRunnable(cores int) (map[string]string, error) {
	lacks, all := map[string]string{}, s.Cells()
	kernel := map[string]error{}
	for _, name := range s.Systems {
		kernel[name] = s.Stacks[name].KernelLacks()
	}
	var first error
	for _, cell := range all {
		budget := cell.CoreBudget(s.Stacks[cell.System].Need(len(s.Topology.Nodes())))
		if err := cmp.Or(kernel[cell.System], budget.NotRunnable(cores)); err != nil {
			lacks[cell.ID()] = err.Error()
			first = cmp.Or(first, fmt.Errorf("cell %s: %w", cell, err))
		}
	}
	if len(lacks) < len(all) {
		first = nil
	}
	return lacks, first
}

// Tools finds the tools that the cells to run name, and has those built that must
// be. A cell whose tool is missing is added to lacks, as not runnable here; the
// error is that of the tool where nothing is left to run.
func (s File) Tools(ctx context.Context, lacks map[string]string, tell func(line string)) (map[string]program.Program, error) {
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
		lacks[cell.ID()] = fmt.Sprintf("%v (%s)", err, verb.Hint(err))
	}
	if len(lacks) == len(all) && first != nil {
		return nil, first
	}
	return found, nil
}

// checkTools says what the tools of a load cannot do of its cells, each once.
func checkTools(e *experiment.Experiment) error {
	var wrong strict.Errors
	said := map[adapter.UnableError]bool{}
	for _, cell := range e.Cells() {
		for _, unable := range adapter.Unable(cell) {
			if !said[*unable] {
				said[*unable] = true
				wrong.Add(e.Mistake("load."+unable.Key, unable.Hint(), unable.Error()))
			}
		}
	}
	return wrong.Err()
}

// Brokers finds the message brokers among the workloads. The cells of one that is
// missing are added to lacks, as not runnable here; the error is that of the first
// where nothing is left to run.
func (s File) Brokers(ctx context.Context, lacks map[string]string) (map[string]broker.Program, error) {
	found := map[string]broker.Program{}
	all := s.Cells()
	var first error
	for _, w := range s.Workloads {
		if broker.Protocol(w.Name) == "" {
			continue
		}
		program, err := broker.Find(ctx, w.Name)
		if err == nil {
			found[w.Name] = program
			continue
		}
		if _, lacking := errors.AsType[*broker.MissingError](err); !lacking {
			return nil, err
		}
		first = cmp.Or(first, err)
		for _, cell := range all {
			if cell.Workload == w.Name {
				lacks[cell.ID()] = cmp.Or(lacks[cell.ID()], fmt.Sprintf("%v (%s)", err, verb.Hint(err)))
			}
		}
	}
	if len(lacks) == len(all) && first != nil {
		return nil, first
	}
	return found, nil
}
