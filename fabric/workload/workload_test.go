package workload_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/workload"
)

func of(name string, labels map[string]string, prefixes ...string) snapshot.Workload {
	w := snapshot.Workload{Name: name, Namespace: "shop", Labels: labels}
	for _, p := range prefixes {
		w.Addresses = append(w.Addresses, netip.MustParsePrefix(p))
	}
	return w
}

// The longest prefix says whose an address is, in both families.
func TestLongestPrefix(t *testing.T) {
	table := workload.NewTable([]snapshot.Workload{
		of("cart", map[string]string{"app": "cart", "cluster": "c9"}, "10.2.0.7/32", "fd00:2::7/128"),
		of("node", nil, "10.2.0.0/24", "fd00:2::/64"), of("all", nil, "0.0.0.0/0"),
	})
	for address, want := range map[string]string{
		"10.2.0.7": "cart", "::ffff:10.2.0.7": "cart", "10.2.0.8": "node", "10.3.0.7": "all",
		"fd00:2::7": "cart", "fd00:2::8": "node", "fd00:3::7": "", "fe80::1%eth0": "",
	} {
		if got := table.Of(netip.MustParseAddr(address))[policy.Workload]; got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	// A label says nothing but that it is one.
	want := policy.Attributes{"workload": "cart", "namespace": "shop", "label/app": "cart", "label/cluster": "c9"}
	if got := table.Of(netip.MustParseAddr("10.2.0.7")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := table.Of(netip.Addr{}); got != nil {
		t.Errorf("nobody is %v", got)
	}
}

// ns/op is one lookup, in a table of so many addresses.
func BenchmarkOf(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var all []snapshot.Workload
			addresses := make([]netip.Addr, n)
			for i := range addresses {
				var a [4]byte
				binary.BigEndian.PutUint32(a[:], 10<<24|uint32(i)*257)
				addresses[i] = netip.AddrFrom4(a)
				all = append(all, of(fmt.Sprint("w", i), map[string]string{"app": "x"}, addresses[i].String()+"/32"))
			}
			table := workload.NewTable(all)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if table.Of(addresses[i%n]) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
