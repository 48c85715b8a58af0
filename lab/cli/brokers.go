package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"skerry.dev/skerry/lab/workload/broker"
)

// brokers finds the message brokers among the workloads. The cells of one that is
// missing are added to lacks, as not runnable here; the error is that of the first
// where nothing is left to run.
func (s source) brokers(ctx context.Context, lacks map[string]string) (map[string]broker.Program, error) {
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
				lacks[cell.ID()] = cmp.Or(lacks[cell.ID()], fmt.Sprintf("%v (%s)", err, hint(err)))
			}
		}
	}
	if len(lacks) == len(all) && first != nil {
		return nil, first
	}
	return found, nil
}
