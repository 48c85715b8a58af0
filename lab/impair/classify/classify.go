// Package classify tells the directions of links apart in the WAN's network
// namespace, by nftables over netlink. It decides nothing about a packet but
// which direction it travels; the back ends of lab/impair do the rest. Packets of
// IPv6 are told apart where a rule says so: then neighbour discovery is of no
// direction where ARP is not. Every call acts on the namespace of the calling thread.
// Start at Open.
package classify

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
)

const table = "skerry"

// BridgeCall has bridged packets pass the IP hooks, the only ones where NFQUEUE exists as
// a target; BridgeCall6 is that of IPv6.
const (
	BridgeCall  = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	BridgeCall6 = "/proc/sys/net/bridge/bridge-nf-call-ip6tables"
)

// Rule gives the packets of a match to a queue or to a qdisc's class, or exempts
// them from the rules behind it.
type Rule struct {
	impair.Match
	// Exempt has routed packets pass as they are, where Queue and Class are 0.
	Exempt bool
	// Queue is the NFQUEUE number, where Class is 0.
	Queue uint16
	// Class is written to skb->priority, as a tc class MAJOR<<16|MINOR.
	Class uint32
}

// Table is the rule set of one namespace. Its base chains are made once:
// deleting a base chain would drop every packet that waits in a queue.
type Table struct {
	conn    *nftables.Conn
	bridged *nftables.Chain
	routed  *nftables.Chain
	// routed6 is made with the first rule that is dual: a kernel need not know IPv6.
	routed6 *nftables.Chain
}

// Open makes empty chains on the forward hooks of this namespace.
func Open() (*Table, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	t := &Table{conn: conn}
	t.bridged = forwardChain(conn, nftables.TableFamilyBridge, -200)
	t.routed = forwardChain(conn, nftables.TableFamilyIPv4, *nftables.ChainPriorityMangle)
	if err := conn.Flush(); err != nil {
		return nil, fmt.Errorf("make nftables chains: %w", err)
	}
	return t, nil
}

func forwardChain(conn *nftables.Conn, family nftables.TableFamily, priority nftables.ChainPriority) *nftables.Chain {
	return conn.AddChain(&nftables.Chain{
		Name:     "forward",
		Table:    conn.AddTable(&nftables.Table{Family: family, Name: table}),
		Type:     nftables.ChainTypeFilter,
		Hooknum:  nftables.ChainHookForward,
		Priority: &priority,
	})
}

// Set replaces all rules at once. Rules that name single nodes win over rules
// that name whole clusters.
func (t *Table) Set(rules []Rule) error {
	t.conn.FlushChain(t.bridged)
	t.conn.FlushChain(t.routed)
	t.begin6(rules)
	for i, r := range specificFirst(rules) {
		mark := uint32(i + 1)
		switch {
		case !r.Bridged:
			t.add(t.routed, append(matchRouted(r.Match), target(r)...))
			t.add6(r, matchRouted6(r.Match))
		case r.Class != 0:
			t.add(t.bridged, append(matchPorts(r.Match), target(r)...))
		default:
			t.add(t.bridged, append(matchPorts(r.Match), setMeta(expr.MetaKeyMARK, mark)...))
			t.add(t.routed, append(matchMark(mark), target(r)...))
			t.add6(r, matchMark(mark))
			if err := passBridged(r.Dual); err != nil {
				return err
			}
		}
	}
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("set nftables rules: %w", err)
	}
	return nil
}

// begin6 empties the chain of IPv6. What nodes ask and tell one another on their own
// wire goes before all rules.
func (t *Table) begin6(rules []Rule) {
	dual := slices.ContainsFunc(rules, func(r Rule) bool { return r.Dual })
	switch {
	case t.routed6 != nil:
		t.conn.FlushChain(t.routed6)
	case dual:
		t.routed6 = forwardChain(t.conn, nftables.TableFamilyIPv6, *nftables.ChainPriorityMangle)
	}
	if dual {
		t.add(t.routed6, exemptOnLink())
	}
}

// add6 adds a rule for packets of IPv6, where it is dual.
func (t *Table) add6(r Rule, match []expr.Any) {
	if r.Dual {
		t.add(t.routed6, append(match, target(r)...))
	}
}

// passBridged has packets that a bridge forwards pass the hooks of IP.
func passBridged(dual bool) error {
	calls := []string{BridgeCall}
	if dual {
		calls = append(calls, BridgeCall6)
	}
	for _, call := range calls {
		if err := os.WriteFile(call, []byte("1"), 0); err != nil {
			return fmt.Errorf("pass bridged packets to the emulator (kernel module br_netfilter): %w", err)
		}
	}
	return nil
}

func specificFirst(rules []Rule) []Rule {
	var nodes, clusters []Rule
	for _, r := range rules {
		if r.Source.IsValid() {
			nodes = append(nodes, r)
		} else {
			clusters = append(clusters, r)
		}
	}
	return append(nodes, clusters...)
}

func (t *Table) add(chain *nftables.Chain, exprs []expr.Any) {
	t.conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: exprs})
}

func matchPorts(m impair.Match) []expr.Any {
	return append(equalName(expr.MetaKeyIIFNAME, m.In), equalName(expr.MetaKeyOIFNAME, m.Out)...)
}

func matchRouted(m impair.Match) []expr.Any {
	const sourceOffset, destinationOffset = 12, 16
	exprs := matchPorts(m)
	exprs = append(exprs, equalAddr(m.Source, sourceOffset)...)
	return append(exprs, equalAddr(m.Destination, destinationOffset)...)
}

func matchRouted6(m impair.Match) []expr.Any {
	const sourceOffset, destinationOffset = 8, 24
	exprs := matchPorts(m)
	exprs = append(exprs, equalAddr(m.Source6, sourceOffset)...)
	return append(exprs, equalAddr(m.Destination6, destinationOffset)...)
}

// exemptOnLink lets messages of ICMPv6 pass that never leave a wire: of the listeners
// of multicasts (RFC 2710, RFC 3810) and of neighbour discovery (RFC 4861, RFC 3122);
// nobody here sends the three kinds between. A bridge forwards them as it does ARP,
// which no rule of IP sees.
func exemptOnLink() []expr.Any {
	const first, last = 130, 143
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_ICMPV6}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: []byte{first}},
		&expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: []byte{last}},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}
}

func matchMark(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.NativeEndian.AppendUint32(nil, mark)},
	}
}

func equalName(key expr.MetaKey, name string) []expr.Any {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}}
}

func equalAddr(a netip.Addr, offset uint32) []expr.Any {
	if !a.IsValid() {
		return nil
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(a.BitLen() / 8)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: a.AsSlice()},
	}
}

func setMeta(key expr.MetaKey, value uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint32(nil, value)},
		&expr.Meta{Key: key, Register: 1, SourceRegister: true},
	}
}

// target ends a rule. NFQUEUE goes through the xtables target (revision 3:
// queue, number of queues, flags), since kernels without CONFIG_NFT_QUEUE have
// that one. Without the bypass flag a dead emulator drops packets: a link is
// never measured unimpaired by mistake.
func target(r Rule) []expr.Any {
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	switch {
	case r.Exempt:
		return []expr.Any{accept}
	case r.Class != 0:
		return append(setMeta(expr.MetaKeyPRIORITY, r.Class), accept)
	}
	const queues, flags = 1, 0
	info := binary.NativeEndian.AppendUint16(nil, r.Queue)
	info = binary.NativeEndian.AppendUint16(info, queues)
	info = binary.NativeEndian.AppendUint16(info, flags)
	unknown := xt.Unknown(append(info, 0, 0))
	return []expr.Any{&expr.Target{Name: "NFQUEUE", Rev: 3, Info: &unknown}}
}

// Close gives the netlink socket back; the rules stay until the namespace ends.
func (t *Table) Close() error { return t.conn.CloseLasting() }
