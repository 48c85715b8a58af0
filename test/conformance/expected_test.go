package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/kube"
)

const sample = `# words
pass [sig-a] one [Conformance]

fail [sig-a] two [Conformance] # why
skip [sig-b] three [Conformance] # takes long
`

var sampled = []result{
	{pass, "[sig-a] one [Conformance]", ""},
	{fail, "[sig-a] two [Conformance]", "why"},
	{skip, "[sig-b] three [Conformance]", "takes long"},
}

func TestParseExpected(t *testing.T) {
	got, err := parseExpected(sample)
	if err != nil || !slices.Equal(got, sampled) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"passed x":           "line 1: " + errVerdict.Error(),
		"\npass":             "line 2: " + errVerdict.Error(),
		"fail x":             "line 1: " + errReason.Error(),
		"skip x # ":          "line 1: " + errReason.Error(),
		"pass x # because":   "line 1: " + errReason.Error(),
		"pass x\npass x":     "line 2: x is there twice",
		"fail x #\u00a0 # y": "line 1: " + errName.Error(),
		"pass x #":           "line 1: " + errName.Error(),
	} {
		if _, err := parseExpected(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// What is written is read again as it was, and is in order.
func TestExpectedText(t *testing.T) {
	shuffled := []result{sampled[2], sampled[0], sampled[1]}
	text := expectedText("v1.2.3", shuffled)
	got, err := parseExpected(text)
	if err != nil || !slices.Equal(got, sampled) {
		t.Errorf("%v, %v", got, err)
	}
	if !strings.Contains(text, "Kubernetes v1.2.3 ") {
		t.Errorf("no version in:\n%s", text)
	}
}

func everything(string) bool { return true }

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		what          string
		expected, got string
		want          string
	}{
		{"nothing changed", "pass a\nfail b # r\nskip c # r", "pass a\nfail b # other\nskip c # r", ""},
		{"one fails that passed", "pass a", "fail a # broke", "worse: a passed before"},
		{"one is skipped that passed", "pass a", "skip a # r", "worse: a passed before"},
		{"one is gone", "pass a\npass b", "pass b", "worse: a is gone"},
		{"one that failed is gone", "fail a # r\npass b", "pass b", "worse: a is gone"},
		{"one is new", "pass a", "pass a\nfail b # r", "b is new"},
		{"one got better", "fail a # r", "pass a", "a did not pass before (r)"},
		{"several, in order", "pass c\npass a", "fail a # r\npass b", "worse: a passed before; b is new; worse: c is gone"},
	} {
		var got []string
		for _, d := range compare(parsed(t, c.expected), parsed(t, c.got), everything) {
			line := d.name + " " + d.how
			if d.worse {
				line = "worse: " + line
			}
			got = append(got, line)
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
	// What a selection does not cover is not missed, and not looked at.
	onlyA := func(name string) bool { return name == "a" }
	if got := compare(parsed(t, "pass a\npass b\npass c"), parsed(t, "pass a\nfail c # r"), onlyA); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestUpdate(t *testing.T) {
	got := update(parsed(t, "pass a\nfail b # kept\nfail c # old\npass d\npass x"), parsed(t, "pass a\nfail b # seen\npass c\nfail d # seen\nfail x # not asked for"),
		func(name string) bool { return name != "x" })
	text := expectedText("v1", got)
	if want := "pass a\nfail b # kept\npass c\nfail d # seen\npass x\n"; !strings.HasSuffix(text, want) {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
}

func parsed(t *testing.T, text string) []result {
	t.Helper()
	all, err := parseExpected(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The file beside this one is as -update writes it, of the version that clusters
// run, and says that all of the network's specs pass.
func TestExpectedFile(t *testing.T) {
	const allNetwork, leastOfAll = 47, 300
	text, err := os.ReadFile(expectedFile)
	if err != nil {
		t.Fatal(err)
	}
	all := parsed(t, string(text))
	_, version, _ := kube.Catalogue().Version(kube.Kubernetes)
	if want := expectedText(version, all); string(text) != want {
		t.Errorf("%s is not as -update writes it", expectedFile)
	}
	network, passed := 0, 0
	for _, r := range all {
		if r.verdict == pass {
			passed++
		}
		if !wider.covers(r.name) {
			t.Errorf("%s is none of the wider list", r.name)
		}
		if narrow.covers(r.name) {
			network++
			if r.verdict != pass {
				t.Errorf("%s: %s", r.name, r.reason)
			}
		}
	}
	if network != allNetwork {
		t.Errorf("%d specs of the network, not %d", network, allNetwork)
	}
	if passed < leastOfAll {
		t.Errorf("%d specs pass, of at least %d", passed, leastOfAll)
	}
}

func FuzzExpected(f *testing.F) {
	f.Add(sample)
	f.Add("pass a # b")
	f.Add("fail a #\u00a0 # b")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseExpected(text)
		if err != nil {
			return
		}
		again, err := parseExpected(expectedText("v1", all))
		if err != nil || len(again) != len(all) {
			t.Errorf("%v, %v", again, err)
		}
		if fmt.Sprint(byName(again)) != fmt.Sprint(byName(all)) {
			t.Errorf("%v is then %v", all, again)
		}
	})
}
