// Package classify tells the directions of links apart in the WAN's network
// namespace, by nftables over netlink. It decides nothing about a packet but
// which direction it travels; the back ends of lab/impair do the rest. Every
// call acts on the namespace of the calling thread. Start at Open.
package classify

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
)

const table = "skerry"

// BridgeCall has bridged packets pass the IP hooks, the only ones where
// NFQUEUE exists as a target.
const BridgeCall = "/proc/sys/net/bridge/bridge-nf-call-iptables"

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
	queuesBridged := false
	for i, r := range specificFirst(rules) {
		mark := uint32(i + 1)
		switch {
		case !r.Bridged:
			t.add(t.routed, append(matchRouted(r.Match), target(r)...))
		case r.Class != 0:
			t.add(t.bridged, append(matchPorts(r.Match), target(r)...))
		default:
			queuesBridged = true
			t.add(t.bridged, append(matchPorts(r.Match), setMeta(expr.MetaKeyMARK, mark)...))
			t.add(t.routed, append(matchMark(mark), target(r)...))
		}
	}
	if queuesBridged {
		if err := os.WriteFile(BridgeCall, []byte("1"), 0); err != nil {
			return fmt.Errorf("pass bridged packets to the emulator (kernel module br_netfilter): %w", err)
		}
	}
	if err := t.conn.Flush(); err != nil {
		return fmt.Errorf("set nftables rules: %w", err)
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
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
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
