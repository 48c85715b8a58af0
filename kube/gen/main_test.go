package main

import (
	"strings"
	"testing"
)

const upstream = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	github.com/spf13/cobra v1.10.0
	k8s.io/api v0.0.0
)

replace (
	example.org/fork => example.org/fork v1.2.3
	k8s.io/api => ./staging/src/k8s.io/api
)
`

// What upstream develops in its tree comes by its release; all else stays.
func TestOutside(t *testing.T) {
	got, err := outside([]byte(upstream), "v1.36.3", pin, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"module skerry.dev/skerry/pins/kubernetes\n", "go 1.26.0\n", "godebug default=go1.26\n",
		"k8s.io/kubernetes v1.36.3\n", "github.com/spf13/cobra v1.10.0\n", "replace k8s.io/api => k8s.io/api v0.36.3\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	for _, not := range []string{"v0.0.0", "staging", "example.org"} {
		if strings.Contains(string(got), not) {
			t.Errorf("has %q:\n%s", not, got)
		}
	}
}

// Packages are kept, and one of a module of upstream's tree has its release.
func TestOutsideOfPackages(t *testing.T) {
	got, err := outside([]byte(upstream), "v1.36.3", "pins/e2e", []string{"k8s.io/kubernetes/test/e2e", "k8s.io/api/core/v1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"module skerry.dev/skerry/pins/e2e\n", "k8s.io/kubernetes/test/e2e\n", "k8s.io/api/core/v1\n", "\tk8s.io/api v0.36.3\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

func TestOutsideRefuses(t *testing.T) {
	for _, version := range []string{"1.36.3", "v2.0.0", "latest", ""} {
		if _, err := outside([]byte(upstream), version, pin, nil); err == nil || !strings.Contains(err.Error(), "write v1.X.Y") {
			t.Errorf("%q: got %v", version, err)
		}
	}
	if _, err := outside([]byte("nonsense"), "v1.36.3", pin, nil); err == nil {
		t.Error("nonsense is a go.mod")
	}
}
