// Package capture has the kernel bring connections for Services to the proxy: rules of
// nftables that give what is sent to a Service's address, or to a node's port, to the
// proxy's own port. It knows no endpoints.
//
// The rules are a table for each family of addresses, owned by this process: the kernel
// removes them when it ends, however it ends, so that none are left behind. No other
// table is touched. Start at Rules.
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/proxy/snapshot"
)

// Table is the name of the tables.
const Table = "skerry-proxy"

// Mark is of what the proxy itself sends, which is not brought: an endpoint may have an address
// that clients call as well, such as a node's of pods on the host network. It has no bit of
// those that Kubernetes and network plugins mark by (0x2000, 0x4000, 0x8000, 0xf00, 0xffff0000).
const Mark = 0x53

// Wanted are what is to be brought, and to which port of this node.
type Wanted struct {
	// Services are the addresses of Services with ports; NodePorts those of every address
	// of this node.
	Services  map[Service]uint16
	NodePorts map[NodePort]uint16
	Inside    Inside
}

// A Service is an address that clients call.
type Service struct {
	Protocol snapshot.Protocol
	At       netip.AddrPort
}

// A NodePort is a port that clients call at a node, at its addresses of a family.
type NodePort struct {
	Protocol snapshot.Protocol
	Port     uint16
	Is6      bool
}

// Rules are those of this process. They are not for concurrent use.
type Rules struct {
	conn     *nftables.Conn
	families []*family
	applied  Wanted
}

// family is the table of one family of addresses.
type family struct {
	table               *nftables.Table
	services, nodePorts *nftables.Set // maps to the proxy's ports
	fronts              *nftables.Set // of these, those of datagrams
	inside              inside
	here                netip.Addr // where the proxy listens
	past                past
}

// ErrUnsupported is of a kernel that lacks what the rules need.
var ErrUnsupported = errors.New("the kernel has no nftables with address translation (nf_tables, nft_nat, nft_fib, nft_ct), which user space capture needs: Linux 5.12 or later")

// New makes empty tables; here are this node's addresses, one a family, that connections
// are brought to.
func New(here []netip.Addr) (*Rules, error) {
	var socket *netlink.Conn
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error {
		socket = c
		return c.SetWriteBuffer(batchMost)
	}))
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	r := &Rules{conn: conn, applied: Wanted{Services: map[Service]uint16{}, NodePorts: map[NodePort]uint16{}}}
	for _, a := range here {
		f := newFamily(a)
		if err := own(socket, f.table); err != nil {
			return nil, errors.Join(unsupported(err), r.Close())
		}
		r.families = append(r.families, f)
		if err := f.fill(conn); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, errors.Join(unsupported(err), r.Close())
	}
	return r, nil
}

// batchMost bounds a batch in bytes: some 200,000 Services at once.
const batchMost = 32 << 20

// unsupported names what a kernel lacks that has not heard of something.
func unsupported(err error) error {
	if errors.Is(err, ErrAnother) {
		return err
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("make rules: %w", err)
}

// Close removes the rules.
func (r *Rules) Close() error { return r.conn.CloseLasting() }

// own makes a table that lives as long as this process: NFT_TABLE_F_OWNER, which the
// library does not know.
func own(c *netlink.Conn, t *nftables.Table) error {
	const ownerFlag = 0x2
	attributes, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_TABLE_NAME, Data: append([]byte(t.Name), 0)},
		{Type: unix.NFTA_TABLE_FLAGS, Data: binary.BigEndian.AppendUint32(nil, ownerFlag)},
	})
	if err != nil {
		return err
	}
	const tables = unix.NFNL_SUBSYS_NFTABLES << 8
	batch := []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES} // struct nfgenmsg: the id in network order
	sent, err := c.SendMessages([]netlink.Message{
		{Header: netlink.Header{Type: unix.NFNL_MSG_BATCH_BEGIN, Flags: netlink.Request}, Data: batch},
		{
			Header: netlink.Header{Type: tables | unix.NFT_MSG_NEWTABLE, Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl},
			Data:   append([]byte{byte(t.Family), 0, 0, 0}, attributes...),
		},
		{Header: netlink.Header{Type: unix.NFNL_MSG_BATCH_END, Flags: netlink.Request}, Data: batch},
	})
	if err != nil {
		return err
	}
	answers, err := c.Receive()
	if err == nil {
		err = netlink.Validate(sent[1], answers)
	}
	if err == nil {
		return nil
	}
	if isThere(t) {
		return ErrAnother
	}
	return err
}

// ErrAnother is of a node on which a proxy runs already.
var ErrAnother = errors.New("another proxy runs on this node: its table " + Table + " is there")

// isThere says whether there is a table of the name: a second one is refused by many
// errors.
func isThere(t *nftables.Table) bool {
	all, err := new(nftables.Conn).ListTablesOfFamily(t.Family)
	return err == nil && slices.ContainsFunc(all, func(o *nftables.Table) bool { return o.Name == t.Name })
}

// newFamily is that of an address.
func newFamily(here netip.Addr) *family {
	f := &family{here: here, table: &nftables.Table{Name: Table, Family: nftables.TableFamilyIPv4}}
	address := nftables.TypeIPAddr
	if here.Is6() {
		f.table.Family, address = nftables.TableFamilyIPv6, nftables.TypeIP6Addr
	}
	service := nftables.MustConcatSetType(nftables.TypeInetProto, address, nftables.TypeInetService)
	nodePort := nftables.MustConcatSetType(nftables.TypeInetProto, nftables.TypeInetService)
	f.services = &nftables.Set{Table: f.table, Name: "services", IsMap: true, Concatenation: true, KeyType: service, DataType: nftables.TypeInetService}
	f.nodePorts = &nftables.Set{Table: f.table, Name: "nodeports", IsMap: true, Concatenation: true, KeyType: nodePort, DataType: nftables.TypeInetService}
	f.fronts = &nftables.Set{Table: f.table, Name: "fronts", KeyType: nftables.TypeInetService}
	f.inside = inside{
		services:  &nftables.Set{Table: f.table, Name: "inside-services", Concatenation: true, KeyType: service},
		nodePorts: &nftables.Set{Table: f.table, Name: "inside-nodeports", Concatenation: true, KeyType: nodePort},
		pods:      &nftables.Set{Table: f.table, Name: "pods", Interval: true, KeyType: address},
	}
	return f
}

// fill has the family's table bring what its maps say: what comes from elsewhere, and what
// this node itself sends.
func (f *family) fill(conn *nftables.Conn) error {
	for _, set := range []*nftables.Set{f.services, f.nodePorts, f.fronts, f.inside.services, f.inside.nodePorts, f.inside.pods} {
		if err := conn.AddSet(set, nil); err != nil {
			return fmt.Errorf("make map %s: %w", set.Name, err)
		}
	}
	toService := slices.Concat(f.serviceKey(), find(f.services), f.bring())
	toNodePort := slices.Concat(calledHere(), nodePortKey(), find(f.nodePorts), f.bring())
	for _, hook := range []struct {
		name  string
		at    *nftables.ChainHook
		rules [][]expr.Any
	}{
		{"prerouting", nftables.ChainHookPrerouting, append(f.fromOutside(), toService, toNodePort)},
		{"output", nftables.ChainHookOutput, [][]expr.Any{fromProxy(), toService, toNodePort}},
	} {
		chain := conn.AddChain(&nftables.Chain{
			Name: hook.name, Table: f.table, Type: nftables.ChainTypeNAT, Hooknum: hook.at, Priority: nftables.ChainPriorityNATDest,
		})
		for _, rule := range hook.rules {
			conn.AddRule(&nftables.Rule{Table: f.table, Chain: chain, Exprs: rule})
		}
	}
	guard := conn.AddChain(&nftables.Chain{
		Name: "input", Table: f.table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter,
	})
	conn.AddRule(&nftables.Rule{Table: f.table, Chain: guard, Exprs: f.unbrought()})
	return nil
}

// hasService and hasNodePort say what is of the family.
func (f *family) hasService(s Service) bool   { return s.At.Addr().Is6() == f.here.Is6() }
func (f *family) hasNodePort(n NodePort) bool { return n.Is6 == f.here.Is6() }

// dnat is of a flow whose destination was translated (IPS_DST_NAT, nf_conntrack_common.h).
const dnat = 1 << 5

// unbrought drops datagrams that were sent to a front itself, and not to what it stands for: of a
// connection the proxy asks what was called, of a datagram it believes where it arrives, which is
// for the Service's source ranges, and its kind of address, to allow.
func (f *family) unbrought() []expr.Any {
	none := make([]byte, 4)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: keyRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: keyRegister, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Payload{DestRegister: keyRegister, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: keyRegister, SetName: f.fronts.Name},
		&expr.Ct{Register: keyRegister, Key: expr.CtKeySTATUS},
		&expr.Bitwise{SourceRegister: keyRegister, DestRegister: keyRegister, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(dnat), Xor: none},
		&expr.Cmp{Op: expr.CmpOpEq, Register: keyRegister, Data: none},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}

// frontsOf are the ports of the proxy that take datagrams of a family, as a map of each to itself.
func (f *family) frontsOf(w Wanted) map[uint16]uint16 {
	all := map[uint16]uint16{}
	for s, port := range w.Services {
		if s.Protocol == snapshot.UDP && f.hasService(s) {
			all[port] = port
		}
	}
	for n, port := range w.NodePorts {
		if n.Protocol == snapshot.UDP && f.hasNodePort(n) {
			all[port] = port
		}
	}
	return all
}

// Registers of 32 bits: keys begin at the first, the port that is found is in one beyond
// those that the longest key takes.
const (
	keyRegister     = unix.NFT_REG32_00
	portRegister    = unix.NFT_REG32_08
	addressRegister = unix.NFT_REG32_12
)

// fromProxy leaves what the proxy sends as it is.
func fromProxy() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: keyRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: keyRegister, Data: binaryutil.NativeEndian.PutUint32(Mark)},
		&expr.Verdict{Kind: expr.VerdictReturn},
	}
}

// serviceKey has the address that is called, and its port, be the key.
func (f *family) serviceKey() []expr.Any {
	offset, words := uint32(16), uint32(1) // RFC 791 §3.1: the destination address
	if f.here.Is6() {
		offset, words = 24, 4 // RFC 8200 §3
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: keyRegister},
		&expr.Payload{DestRegister: keyRegister + 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4 * words},
		&expr.Payload{DestRegister: keyRegister + 1 + words, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}
}

// nodePortKey has the port that is called be the key.
func nodePortKey() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: keyRegister},
		&expr.Payload{DestRegister: keyRegister + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}
}

// calledHere is of what is called at an address of this node.
func calledHere() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: keyRegister, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: keyRegister, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

// find is of a key that a map has: its port of the proxy.
func find(in *nftables.Set) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: keyRegister, DestRegister: portRegister, IsDestRegSet: true, SetName: in.Name}}
}

// bring gives the connection to the proxy, at the port that was found.
func (f *family) bring() []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: addressRegister, Data: f.here.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.table.Family), RegAddrMin: addressRegister, RegProtoMin: portRegister},
	}
}

// Apply has the kernel bring what is wanted, all of it or, on an error but ErrPast, what was
// before. After ErrPast the next Apply, of the same too, tries to forget again.
func (r *Rules) Apply(want Wanted) error {
	news := make([]past, len(r.families))
	for i, f := range r.families {
		gone, come := difference(r.applied.Services, want.Services, f.hasService)
		if err := f.change(r.conn, f.services, elements(gone, keyOfService), elements(come, keyOfService)); err != nil {
			return err
		}
		goneNode, comeNode := difference(r.applied.NodePorts, want.NodePorts, f.hasNodePort)
		news[i] = past{come: Wanted{Services: come, NodePorts: comeNode}, gone: Wanted{Services: gone, NodePorts: goneNode}}
		if err := f.change(r.conn, f.nodePorts, elements(goneNode, keyOfNodePort), elements(comeNode, keyOfNodePort)); err != nil {
			return err
		}
		goneFront, comeFront := difference(f.frontsOf(r.applied), f.frontsOf(want), func(uint16) bool { return true })
		if err := f.change(r.conn, f.fronts, members(goneFront, keyOfPort), members(comeFront, keyOfPort)); err != nil {
			return err
		}
		if err := f.changeInside(r.conn, r.applied.Inside, want.Inside); err != nil {
			return err
		}
	}
	if err := r.conn.Flush(); err != nil {
		return fmt.Errorf("change rules: %w", err)
	}
	r.applied = Wanted{maps.Clone(want.Services), maps.Clone(want.NodePorts), want.Inside.clone()}
	var err error
	for i, f := range r.families {
		f.past.add(news[i])
		err = errors.Join(err, f.forget())
	}
	return err
}

// elementsMost is how many elements go in one message, which the kernel bounds.
const elementsMost = 500

// change takes elements out of a map and puts others in.
func (f *family) change(conn *nftables.Conn, set *nftables.Set, gone, come []nftables.SetElement) error {
	for len(gone) > 0 {
		n := min(elementsMost, len(gone))
		if err := conn.SetDeleteElements(set, gone[:n]); err != nil {
			return fmt.Errorf("change map %s: %w", set.Name, err)
		}
		gone = gone[n:]
	}
	for len(come) > 0 {
		n := min(elementsMost, len(come))
		if err := conn.SetAddElements(set, come[:n]); err != nil {
			return fmt.Errorf("change map %s: %w", set.Name, err)
		}
		come = come[n:]
	}
	return nil
}

// difference is what is no longer wanted as it is, and what is wanted and is not.
func difference[K, V comparable](is, want map[K]V, of func(K) bool) (gone, come map[K]V) {
	gone, come = map[K]V{}, map[K]V{}
	for k, v := range is {
		if now, ok := want[k]; of(k) && (!ok || now != v) {
			gone[k] = v
		}
	}
	for k, v := range want {
		if was, ok := is[k]; of(k) && (!ok || was != v) {
			come[k] = v
		}
	}
	return gone, come
}

// members are elements that are keys alone, of a set.
func members[K comparable, V any](of map[K]V, key func(K) []byte) []nftables.SetElement {
	var all []nftables.SetElement
	for k := range of {
		all = append(all, nftables.SetElement{Key: key(k)})
	}
	return all
}

// elements are keys with the proxy's ports, of a map.
func elements[K comparable](of map[K]uint16, key func(K) []byte) []nftables.SetElement {
	var all []nftables.SetElement
	for k, port := range of {
		all = append(all, nftables.SetElement{Key: key(k), Val: binary.BigEndian.AppendUint16(nil, port)})
	}
	return all
}

// keyOfService and keyOfNodePort are as the kernel concatenates: each part padded to 4 bytes.
func keyOfService(s Service) []byte {
	key := append([]byte{protocolNumber(s.Protocol), 0, 0, 0}, s.At.Addr().AsSlice()...)
	return append(binary.BigEndian.AppendUint16(key, s.At.Port()), 0, 0)
}

func keyOfNodePort(n NodePort) []byte {
	key := []byte{protocolNumber(n.Protocol), 0, 0, 0}
	return append(binary.BigEndian.AppendUint16(key, n.Port), 0, 0)
}

func keyOfPort(port uint16) []byte { return binary.BigEndian.AppendUint16(nil, port) }

func protocolNumber(p snapshot.Protocol) byte {
	if p == snapshot.UDP {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}
