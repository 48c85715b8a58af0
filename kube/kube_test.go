package kube_test

import (
	"testing"

	"skerry.dev/skerry/internal/gobuild/gobuildtest"
	"skerry.dev/skerry/kube"
)

func TestPins(t *testing.T) { gobuildtest.Check(t, *kube.Catalogue()) }
