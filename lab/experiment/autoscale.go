package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Autoscale has as many pods serve the workload as their use of CPU time asks for, by
// a HorizontalPodAutoscaler (autoscaling/v2) of its Deployment.
type Autoscale struct {
	// Min is how many pods there are at least (minReplicas), and as a repetition begins;
	// 1 by default.
	Min int `yaml:"min,omitempty" json:"min,omitempty" jsonschema:"minimum=1,maximum=100"`
	// Max is how many there are at most (maxReplicas), over all nodes that serve.
	Max int `yaml:"max" json:"max" jsonschema:"minimum=1,maximum=100"`
	// CPU is the use that is aimed at, the mean of all pods, in per cent of what each
	// requests (averageUtilization).
	CPU int `yaml:"cpu" json:"cpu" jsonschema:"minimum=1,maximum=1000"`
	// Request is the CPU time that each pod requests, in cores; 0.1 by default.
	Request float64 `yaml:"request,omitempty" json:"request,omitempty" jsonschema:"exclusiveMinimum=0"`
	// Systems in whose cells it acts; absent means all.
	Systems []string `yaml:"systems,omitempty" json:"systems,omitempty" jsonschema:"minItems=1"`
}

// Bounds of an Autoscale.
const (
	podsMax       = 100
	utilisationTo = 1000 // per cent
	requestMost   = 64   // cores
	// requestDefault is small, since all nodes share the machine's cores: pods that
	// request whole ones would never be seen to use half of what they request.
	requestDefault = 0.1
)

// Least is how many pods there are at least.
func (a Autoscale) Least() int { return cmp.Or(a.Min, 1) }

// MilliCPU is what each pod requests, in thousandths of a core.
func (a Autoscale) MilliCPU() int64 {
	return int64(math.Round(cmp.Or(a.Request, requestDefault) * milliPerCore))
}

// Autoscaled is how the workload is scaled in a cell; nil where nobody does.
func (e *Experiment) Autoscaled(c Cell) *Autoscale {
	if e.Substrate != SubstrateKubernetes || e.Kubernetes == nil || e.Kubernetes.Autoscale == nil {
		return nil
	}
	a := e.Kubernetes.Autoscale
	if len(a.Systems) > 0 && !slices.Contains(a.Systems, c.System) {
		return nil
	}
	return a
}

// autoscale checks how pods are scaled.
func (c *checker) autoscale(a *Autoscale) {
	if a == nil {
		return
	}
	const path = "kubernetes.autoscale"
	if a.Min < 0 || a.Min > podsMax || a.Min == 0 && c.e.document.Has(path+".min") {
		c.add(path+".min", fmt.Sprintf("write 1 to %d", podsMax), "%d pods are not possible", a.Min)
	}
	switch {
	case a.Max < 1 || a.Max > podsMax:
		c.add(path+".max", fmt.Sprintf("write 1 to %d", podsMax), "%d pods are not possible", a.Max)
	case a.Max < a.Least():
		c.add(path+".max", fmt.Sprintf("write %d or more", a.Least()), "at most %d pods are fewer than at least %d", a.Max, a.Least())
	}
	if a.CPU < 1 || a.CPU > utilisationTo {
		c.add(path+".cpu", fmt.Sprintf("write 1 to %d, in per cent of request, for example 50", utilisationTo), "a use of %d%% cannot be aimed at", a.CPU)
	}
	if a.Request == 0 && c.e.document.Has(path+".request") || a.MilliCPU() < 1 || a.Request > requestMost {
		c.add(path+".request", fmt.Sprintf("write 0.001 to %d", requestMost), "a pod cannot request %g cores", a.Request)
	}
	c.selected(path+".systems", "system", a.Systems, c.e.Systems)
}
