// Package workload tells clients apart by the addresses that they call from: which
// workload one is, and what policies can know of it. It does not say who has an address;
// snapshots do. Start at NewTable.
package workload

import (
	"net/netip"

	"github.com/gaissmai/bart"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
)

// Table finds workloads by address. It does not change and is safe for concurrent use.
type Table struct{ by bart.Table[policy.Attributes] }

// NewTable makes one.
func NewTable(all []snapshot.Workload) *Table {
	t := &Table{}
	for _, w := range all {
		a := attributes(w)
		for _, p := range w.Addresses {
			t.by.Insert(p, a)
		}
	}
	return t
}

func attributes(w snapshot.Workload) policy.Attributes {
	a := policy.Attributes{policy.Workload: w.Name, policy.Namespace: w.Namespace}
	for key, value := range w.Labels {
		a[policy.Label+key] = value
	}
	return a
}

// Of is what is known of the client at an address: by the longest prefix that it is in,
// and nothing where it is in none. It is not to be changed.
func (t *Table) Of(a netip.Addr) policy.Attributes {
	if !a.IsValid() {
		return nil
	}
	found, _ := t.by.Lookup(a.Unmap().WithZone(""))
	return found
}
