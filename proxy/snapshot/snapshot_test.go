package snapshot_test

import (
	"testing"

	"skerry.dev/skerry/proxy/snapshot"
)

func TestKey(t *testing.T) {
	if got := (snapshot.Key{Namespace: "default", Name: "web"}).String(); got != "default/web" {
		t.Error(got)
	}
}
