package capture

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Inside is what of Wanted is for clients from inside, this node and its own pods, alone. The pods
// have addresses of Pods. What others send is dropped, as kube-proxy drops it, so that a load
// balancer that tries to connect knows to go to another node.
type Inside struct {
	Services  map[Service]bool
	NodePorts map[NodePort]bool
	Pods      []netip.Prefix
}

func (i Inside) clone() Inside {
	return Inside{maps.Clone(i.Services), maps.Clone(i.NodePorts), slices.Clone(i.Pods)}
}

// inside is that of one family of addresses.
type inside struct{ services, nodePorts, pods *nftables.Set }

// fromOutside drops what others than this node and its pods send to what is for these alone.
func (f *family) fromOutside() [][]expr.Any {
	offset, length := uint32(12), uint32(4) // RFC 791 §3.1: the source address
	if f.here.Is6() {
		offset, length = 8, 16 // RFC 8200 §3
	}
	outside := []expr.Any{
		&expr.Fib{Register: keyRegister, FlagSADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: keyRegister, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
		&expr.Payload{DestRegister: keyRegister, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Lookup{SourceRegister: keyRegister, SetName: f.inside.pods.Name, Invert: true},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
	has := func(set *nftables.Set) []expr.Any {
		return []expr.Any{&expr.Lookup{SourceRegister: keyRegister, SetName: set.Name}}
	}
	return [][]expr.Any{
		slices.Concat(f.serviceKey(), has(f.inside.services), outside),
		slices.Concat(nodePortKey(), has(f.inside.nodePorts), calledHere(), outside),
	}
}

// changeInside has what is wanted inside be so.
func (f *family) changeInside(conn *nftables.Conn, is, want Inside) error {
	gone, come := difference(is.Services, want.Services, f.hasService)
	if err := f.change(conn, f.inside.services, members(gone, keyOfService), members(come, keyOfService)); err != nil {
		return err
	}
	goneNode, comeNode := difference(is.NodePorts, want.NodePorts, f.hasNodePort)
	if err := f.change(conn, f.inside.nodePorts, members(goneNode, keyOfNodePort), members(comeNode, keyOfNodePort)); err != nil {
		return err
	}
	return f.change(conn, f.inside.pods, intervals(f.lacking(is.Pods, want.Pods)), intervals(f.lacking(want.Pods, is.Pods)))
}

// lacking are the ranges of the family that others lack.
func (f *family) lacking(all, others []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(all), func(p netip.Prefix) bool {
		return p.Addr().Is6() != f.here.Is6() || slices.Contains(others, p)
	})
}

// intervals are elements that are ranges of addresses: of each the first, and, but for the range
// that has the last address there is, the first behind it.
func intervals(of []netip.Prefix) []nftables.SetElement {
	var all []nftables.SetElement
	for _, p := range of {
		all = append(all, nftables.SetElement{Key: p.Masked().Addr().AsSlice()})
		if next := last(p).Next(); next.IsValid() {
			all = append(all, nftables.SetElement{Key: next.AsSlice(), IntervalEnd: true})
		}
	}
	return all
}

// last is the last address of a range.
func last(p netip.Prefix) netip.Addr {
	all := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(all); bit++ {
		all[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(all)
	return a
}
