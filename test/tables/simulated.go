package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/report/markdown"
)

// simulatedCase is one that `skerry proxy simulate --json` has played.
type simulatedCase struct {
	Case     string        `json:"case"`
	DelayNs  time.Duration `json:"delayNs"`
	Policies map[string]struct {
		GoodputPerSecond float64       `json:"goodputPerSecond"`
		P99Ns            time.Duration `json:"p99Ns"`
	} `json:"policies"`
}

// simulatedColumns are the policies that the table has, in its order.
var simulatedColumns = []string{"random", "rap", "rap-100ms", "ewma", "cost", "oracle"}

// fillSimulated puts what was simulated into the page.
func fillSimulated(old, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var all []simulatedCase
	if err := json.Unmarshal(text, &all); err != nil {
		return "", fmt.Errorf("%s is not of skerry proxy simulate --json: %w", path, err)
	}
	return markdown.Put(old, "simulated", simulated(all))
}

// simulated is a line for each case, with the requests a second at each delay.
func simulated(all []simulatedCase) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "| W1:W2:W3:W4 | %s |\n|---|%s\n", strings.Join(simulatedColumns, " | "), strings.Repeat("---|", len(simulatedColumns)))
	var names []string
	for _, c := range all {
		if !slices.Contains(names, c.Case) {
			names = append(names, c.Case)
		}
	}
	for _, name := range names {
		line := []string{name}
		for _, policy := range simulatedColumns {
			var each []string
			for _, c := range all {
				if c.Case == name {
					each = append(each, fmt.Sprintf("%.0f", c.Policies[policy].GoodputPerSecond))
				}
			}
			line = append(line, strings.Join(each, " / "))
		}
		_, _ = fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
	}
	return b.String()
}
