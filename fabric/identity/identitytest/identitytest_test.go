package identitytest_test

import (
	"testing"

	"skerry.dev/skerry/fabric/identity/identitytest"
)

func TestStores(t *testing.T) {
	all := identitytest.Stores(t, "c1", "c2")
	if n := all["c2"].Current().Name; len(all) != 2 || n.String() != "c2/g1" {
		t.Errorf("%d, the second of %s", len(all), n)
	}
}
