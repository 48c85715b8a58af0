package classify

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/lab/impair"
)

// inFreshNet runs f in a network namespace of its own, which ends with f.
func inFreshNet(t *testing.T, f func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace is made")
	}
	if err := thread.InFreshNet(f); err != nil {
		t.Fatal(err)
	}
}

// rulesOf counts the rules of a chain, in the order of the kernel.
func rulesOf(family nftables.TableFamily) ([]*nftables.Rule, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, err
	}
	t := &nftables.Table{Family: family, Name: table}
	return conn.GetRules(t, &nftables.Chain{Name: "forward", Table: t})
}

var (
	clusters = Rule{Match: impair.Match{In: "c1", Out: "c2"}, Class: 0x10002}
	nodes    = Rule{Match: impair.Match{
		In: "c1", Out: "c2", Source: netip.MustParseAddr("10.1.0.1"), Destination: netip.MustParseAddr("10.2.0.2"),
	}, Class: 0x10003}
	exempt = Rule{Match: impair.Match{
		In: "c1", Out: "c2", Source: netip.MustParseAddr("10.1.0.2"), Destination: netip.MustParseAddr("10.2.0.2"),
	}, Exempt: true}
	ports = Rule{Match: impair.Match{In: "c1n1", Out: "c1n2", Bridged: true}, Class: 0x10004}
)

func TestSetReplacesAllRules(t *testing.T) {
	inFreshNet(t, func() error {
		tbl, err := Open()
		if err != nil {
			return err
		}
		for _, c := range []struct {
			rules           []Rule
			routed, bridged int
		}{
			{nil, 0, 0},
			{[]Rule{clusters, nodes, ports}, 2, 1},
			{[]Rule{clusters}, 1, 0},
			{[]Rule{clusters, exempt}, 2, 0},
			{nil, 0, 0},
		} {
			if err := tbl.Set(c.rules); err != nil {
				return err
			}
			routed, err := rulesOf(nftables.TableFamilyIPv4)
			if err != nil {
				return err
			}
			bridged, err := rulesOf(nftables.TableFamilyBridge)
			if err != nil {
				return err
			}
			if len(routed) != c.routed || len(bridged) != c.bridged {
				t.Errorf("%d rules: %d routed and %d bridged in the kernel, want %d and %d",
					len(c.rules), len(routed), len(bridged), c.routed, c.bridged)
			}
		}
		return tbl.Close()
	})
}

// TestNodesStandBeforeClusters: a packet takes the first rule that matches.
func TestNodesStandBeforeClusters(t *testing.T) {
	inFreshNet(t, func() error {
		tbl, err := Open()
		if err != nil {
			return err
		}
		if err := errors.Join(tbl.Set([]Rule{clusters, nodes}), tbl.Close()); err != nil {
			return err
		}
		rules, err := rulesOf(nftables.TableFamilyIPv4)
		if err != nil {
			return err
		}
		addresses := func(r *nftables.Rule) (n int) {
			for _, e := range r.Exprs {
				if _, ok := e.(*expr.Payload); ok {
					n++
				}
			}
			return n
		}
		if len(rules) != 2 || addresses(rules[0]) != 2 || addresses(rules[1]) != 0 {
			t.Errorf("the rule of the two nodes does not stand first: %d rules", len(rules))
		}
		return nil
	})
}

// An exempt packet is let pass before it is given to a class.
func TestExemptPacketsTakeNoClass(t *testing.T) {
	inFreshNet(t, func() error {
		tbl, err := Open()
		if err != nil {
			return err
		}
		if err := errors.Join(tbl.Set([]Rule{clusters, exempt}), tbl.Close()); err != nil {
			return err
		}
		rules, err := rulesOf(nftables.TableFamilyIPv4)
		if err != nil || len(rules) != 2 {
			return fmt.Errorf("%d rules: %w", len(rules), err)
		}
		for _, e := range rules[0].Exprs {
			if meta, ok := e.(*expr.Meta); ok && meta.SourceRegister {
				t.Error("the rule of the exempt nodes writes a class")
			}
		}
		last := rules[0].Exprs[len(rules[0].Exprs)-1]
		if v, ok := last.(*expr.Verdict); !ok || v.Kind != expr.VerdictAccept {
			t.Errorf("the rule of the exempt nodes ends in %+v", last)
		}
		return nil
	})
}
