package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		args          []string
		network, node bool
		update        bool
	}{
		{nil, true, false, false},
		{[]string{"-full"}, true, true, false},
		{[]string{"-full", "-focus", "Pods", "-update"}, false, true, true},
		{[]string{"-focus", "DNS"}, true, false, false},
	} {
		got, err := choose(c.args)
		if err != nil {
			t.Fatal(err)
		}
		network, node := got.list.covers("[sig-network] DNS [Conformance]"), got.list.covers("[sig-node] Pods [Conformance]")
		if network != c.network || node != c.node || got.update != c.update {
			t.Errorf("%v: got %+v", c.args, got)
		}
	}
	for _, args := range [][]string{{"-focus", "("}, {"-nonesuch"}, {"full"}} {
		if _, err := choose(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	if _, err := choose([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: got %v", err)
	}
}

// A regression is told and fails; what is new or better is told.
func TestJudge(t *testing.T) {
	var out strings.Builder
	others := []difference{{result{pass, "a", ""}, "is new", false}}
	if err := judge(&out, others); err != nil {
		t.Error(err)
	}
	err := judge(&out, append(others, difference{result{fail, "b", "timed out"}, "passed before", true}))
	if !errors.Is(err, errRegression) {
		t.Errorf("got %v", err)
	}
	if want := "other  a is new\nother  a is new\nWORSE  b passed before: fail, timed out\n"; out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	if err := judge(&out, nil); err != nil {
		t.Error(err)
	}
}
