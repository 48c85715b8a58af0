package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ran is a spec as the suite reports it.
type ran struct {
	result
	// took is how long it ran, of which several do at a time.
	took time.Duration
}

// report is the part of ginkgo's JSON that is read (its types.Report).
type report struct {
	SpecialSuiteFailureReasons []string
	SpecReports                []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
}

// Words of ginkgo's reports.
const (
	statePassed, statePending, stateSkipped = "passed", "pending", "skipped"
	leafSpec                                = "It"
)

var errNoSpecs = errors.New("the report has none of the specs")

// readReport gives what became of the specs that a list covers: one that the list
// leaves out has the list's reason, one that did not pass the beginning of its
// failure.
func readReport(r io.Reader, l list) ([]ran, error) {
	var suites []report
	if err := json.NewDecoder(r).Decode(&suites); err != nil {
		return nil, fmt.Errorf("read the suite's report: %w", err)
	}
	var all []ran
	for _, s := range suites {
		for _, spec := range s.SpecReports {
			if spec.LeafNodeType != leafSpec {
				if !slices.Contains([]string{statePassed, statePending, stateSkipped}, spec.State) {
					return nil, fmt.Errorf("the suite itself failed at %s: %s", spec.LeafNodeType, oneLine(spec.Failure.Message))
				}
				continue
			}
			name := specName(spec.ContainerHierarchyTexts, spec.LeafNodeText)
			if !l.covers(name) {
				continue
			}
			one := ran{result{pass, name, ""}, spec.RunTime}
			if reason := l.leavesOut(name); reason != "" {
				one.verdict, one.reason = skip, reason
			} else if spec.State != statePassed {
				one.verdict, one.reason = fail, cmp.Or(oneLine(spec.Failure.Message), "it was "+spec.State)
			}
			all = append(all, one)
		}
		if len(s.SpecialSuiteFailureReasons) > 0 && len(all) == 0 {
			return nil, fmt.Errorf("the suite itself failed: %s", strings.Join(s.SpecialSuiteFailureReasons, "; "))
		}
	}
	if len(all) == 0 {
		return nil, errNoSpecs
	}
	return all, nil
}

// specName is the name that expected.txt has, on one line.
func specName(containers []string, leaf string) string {
	return strings.Join(strings.Fields(strings.Join(append(slices.Clone(containers), leaf), " ")), " ")
}

// oneLine is the beginning of a failure, which can have pages.
func oneLine(message string) string {
	const most = 160
	words := []rune(strings.Join(strings.Fields(message), " "))
	if len(words) > most {
		words = append(words[:most], '…')
	}
	return string(words)
}

// results without their times.
func results(all []ran) []result {
	plain := make([]result, len(all))
	for i, r := range all {
		plain[i] = r.result
	}
	return plain
}

// area of a spec is the group of Kubernetes' developers that keeps it, such as
// sig-network.
func area(name string) string {
	before, _, found := strings.Cut(strings.TrimPrefix(name, "["), "]")
	if !found {
		return "other"
	}
	return before
}

// printTable writes counts and times of each area.
func printTable(w io.Writer, all []ran) error {
	type count struct {
		of   map[verdict]int
		took time.Duration
	}
	const total = "all"
	counts := map[string]*count{total: {of: map[verdict]int{}}}
	areas := []string{}
	for _, r := range all {
		a := area(r.name)
		if counts[a] == nil {
			counts[a] = &count{of: map[verdict]int{}}
			areas = append(areas, a)
		}
		for _, c := range []*count{counts[a], counts[total]} {
			c.of[r.verdict]++
			c.took += r.took
		}
	}
	slices.Sort(areas)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "AREA\tPASS\tFAIL\tNOT RUN\tTIME OF ITS SPECS")
	for _, a := range append(areas, total) {
		c := counts[a]
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", a, c.of[pass], c.of[fail], c.of[skip], c.took.Round(time.Second))
	}
	return t.Flush()
}
