package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// verdict is what became of a spec, or is to.
type verdict string

const (
	pass verdict = "pass"
	fail verdict = "fail"
	skip verdict = "skip" // it is not run
)

// result is a spec with its verdict, and the reason for one that does not pass.
type result struct {
	verdict verdict
	name    string
	reason  string
}

// reasonMark stands between a spec and its reason. No spec has it in its name.
const reasonMark = " # "

// parseExpected reads lines "VERDICT NAME", with " # REASON" where a spec does not
// pass.
func parseExpected(text string) ([]result, error) {
	var all []result
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r, err := parseLine(line)
		if err == nil && seen[r.name] {
			err = fmt.Errorf("%s is there twice", r.name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		seen[r.name] = true
		all = append(all, r)
	}
	return all, nil
}

var (
	errVerdict = errors.New("it begins with none of pass, fail and skip")
	errName    = errors.New("the name of a spec does not end in ' #': it would be read as the mark of a reason")
	errReason  = errors.New("a spec that does not pass has its reason behind '" + reasonMark + "', one that passes has none")
)

func parseLine(line string) (result, error) {
	word, rest, _ := strings.Cut(line, " ")
	name, reason, _ := strings.Cut(rest, reasonMark)
	r := result{verdict(word), strings.TrimSpace(name), strings.TrimSpace(reason)}
	switch {
	case !slices.Contains([]verdict{pass, fail, skip}, r.verdict) || r.name == "":
		return result{}, errVerdict
	case (r.verdict == pass) != (r.reason == ""):
		return result{}, errReason
	case strings.HasSuffix(r.name, strings.TrimRight(reasonMark, " ")):
		return result{}, errName
	}
	return r, nil
}

// expectedText is the file of results, in order of their names.
func expectedText(version string, all []result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# What each spec of the conformance suite of Kubernetes %s does on a lab's cluster of two nodes\n", version)
	text.WriteString("# with kube-proxy by nftables: FULL=1 make conformance. One that fails or is not run has its reason.\n")
	text.WriteString("# 'go run ./test/conformance -update', or with -full, writes what it has seen and keeps the reasons.\n")
	all = slices.SortedFunc(slices.Values(all), func(a, b result) int { return cmp.Compare(a.name, b.name) })
	for _, r := range all {
		fmt.Fprintf(&text, "%s %s", r.verdict, r.name)
		if r.verdict != pass {
			text.WriteString(reasonMark + r.reason)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// difference is a spec that did otherwise than expected.
type difference struct {
	result
	// how it differs; worse where it is a regression.
	how   string
	worse bool
}

// compare tells how results differ from those expected, of the specs that a
// selection covers, in order of their names. One that passed and does so no longer
// is a regression, and so is one that is gone; whatever else changed is not.
func compare(expected, got []result, covers func(name string) bool) []difference {
	before, now := byName(expected), byName(got)
	var all []difference
	for name, r := range now {
		was, known := before[name]
		switch {
		case !covers(name):
		case !known:
			all = append(all, difference{r, "is new", false})
		case was.verdict == pass && r.verdict != pass:
			all = append(all, difference{r, "passed before", true})
		case was.verdict != pass && r.verdict == pass:
			all = append(all, difference{r, "did not pass before (" + was.reason + ")", false})
		}
	}
	for name, was := range before {
		if _, there := now[name]; !there && covers(name) {
			all = append(all, difference{was, "is gone", true})
		}
	}
	slices.SortFunc(all, func(a, b difference) int { return cmp.Compare(a.name, b.name) })
	return all
}

// update is what is expected from now on: what was seen of the specs that a
// selection covers, with the reasons given before, and all others as they were.
func update(expected, got []result, covers func(name string) bool) []result {
	before := byName(expected)
	all := slices.DeleteFunc(slices.Clone(expected), func(r result) bool { return covers(r.name) })
	for _, r := range got {
		if was := before[r.name]; was.verdict == r.verdict && was.reason != "" {
			r.reason = was.reason
		}
		if covers(r.name) {
			all = append(all, r)
		}
	}
	return all
}

func byName(all []result) map[string]result {
	names := make(map[string]result, len(all))
	for _, r := range all {
		names[r.name] = r
	}
	return names
}
