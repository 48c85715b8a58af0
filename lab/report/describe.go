package report

import (
	"fmt"
	"strings"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// objectiveText is "p99 below 50ms (system direct; scenario edg10, edg20)".
func objectiveText(o experiment.Objective) string {
	var selects []string
	for _, s := range []struct {
		what  string
		names []string
	}{{"system", o.Systems}, {"scenario", o.Scenarios}, {"workload", o.Workloads}} {
		if len(s.names) > 0 {
			selects = append(selects, s.what+" "+strings.Join(s.names, ", "))
		}
	}
	text := o.Metric + " below " + o.Below
	if len(selects) > 0 {
		text += " (" + strings.Join(selects, "; ") + ")"
	}
	return text
}

// stagesText is the stages that do something, each as impairmentText has it:
// "delay 5ms, loss 0.08%; then delay 1ms".
func stagesText(stages impair.Stages) string {
	var parts []string
	for _, i := range stages {
		if !i.IsZero() {
			parts = append(parts, impairmentText(i))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; then ")
}

// impairmentText is "delay 5ms ± 1ms uniform, loss 0.08%, rate 1gbit".
func impairmentText(i impair.Impairment) string {
	var parts []string
	add := func(does bool, format string, args ...any) {
		if does {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(i.Delay > 0, "delay %s%s", i.Delay, jitterText(i))
	add(i.Loss > 0, "loss %s", i.Loss)
	add(i.Burst.Enter > 0, "bursts of loss %s entered with %s, left with %s", i.Burst.Drops(), i.Burst.Enter, i.Burst.Leave)
	add(i.Duplicate > 0, "duplicated %s", i.Duplicate)
	add(i.Corrupt > 0, "corrupted %s", i.Corrupt)
	add(i.Reorder > 0, "reordered %s", i.Reorder)
	add(i.Rate > 0, "rate %s, queue %s", i.Rate, quantity.Size(i.QueueBytes()))
	add(i.Trace != "", "as trace %s", i.Trace)
	return strings.Join(parts, ", ")
}

func jitterText(i impair.Impairment) string {
	if i.Jitter == 0 {
		return ""
	}
	shape := i.Distribution
	if shape == "" {
		shape = impair.Uniform
	}
	text := fmt.Sprintf(" ± %s %s", i.Jitter, shape)
	if i.Unordered {
		text += " in any order"
	}
	return text
}

// linkText is "edge ↔ cloud", or "edge → cloud" for one direction.
func linkText(l experiment.Link) string {
	if len(l.Between) > 0 {
		ends := make([]string, len(l.Between))
		for i, end := range l.Between {
			ends[i] = string(end)
		}
		return strings.Join(ends, " ↔ ")
	}
	return fmt.Sprintf("%s → %s", l.From, l.To)
}

// clustersText is "edge (a, b); cloud (c)".
func clustersText(t topology.Topology) string {
	texts := make([]string, len(t.Clusters))
	for i, c := range t.Clusters {
		texts[i] = fmt.Sprintf("%s (%s)", c.Name, strings.Join(c.Nodes, ", "))
	}
	return strings.Join(texts, "; ")
}
