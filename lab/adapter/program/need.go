package program

import (
	"os/exec"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/jmeter"
	"skerry.dev/skerry/lab/experiment"
)

// Need is a program that a tool is, or that starts, fetches or builds it.
type Need struct {
	Program string
	// Package of Debian that has it; empty for go.
	Package string
}

// Needs of a tool on the machine; none for Skerry's own load.
func Needs(tool string) []Need {
	switch tool {
	case experiment.ToolAB:
		return []Need{{"ab", "apache2-utils"}}
	case experiment.ToolWrk:
		return []Need{{"wrk", "wrk"}}
	case experiment.ToolHey, experiment.ToolK6:
		return []Need{{"go", ""}}
	case experiment.ToolJMeter:
		return []Need{{"java", "default-jre-headless"}, {"mvn", "maven"}}
	}
	return nil
}

// Missing says what a tool needs and this machine lacks, as a *MissingError; nil
// where the tool is here or can be made ready. It starts nothing, so whether a
// network is there is not known.
func Missing(tool string) error {
	lacks := &MissingError{Tool: tool}
	for _, n := range Needs(tool) {
		_, err := exec.LookPath(n.Program)
		_, fetched := jmeter.Cache{}.Find()
		switch {
		case err == nil, n.Program == "mvn" && fetched:
		case n.Package == "":
			lacks.Err = gobuild.ErrNoGo
		default:
			lacks.Packages = append(lacks.Packages, n.Package)
		}
	}
	if lacks.Err == nil && len(lacks.Packages) == 0 {
		return nil
	}
	return lacks
}
