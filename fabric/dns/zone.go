// Package dns answers questions about services that are imported: by which addresses of
// this gateway they are called, as the Multi-Cluster Services API has it (KEP-1645,
// version 1.0.0 of its DNS schema). It knows the zone clusterset.local alone, resolves
// nothing for anybody, and says nothing of reverse names. Answers are pure: they follow
// from the question and the snapshot. Start at NewZone, and at Listen for the sockets.
package dns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"skerry.dev/skerry/fabric/snapshot"
)

const (
	// apex is the zone; that of a service is below svc in it.
	apex     = "clusterset.local."
	services = "svc." + apex
	// version of the schema of names, and where it is told.
	version     = "1.0.0"
	versionName = "dns-version." + apex
	// ttl of all records in seconds, also of an answer that there is none.
	ttl = 5
	// retry, refresh and expire are for secondary servers, of which there are none.
	refresh, retry, expire = 3600, 600, 86400
)

// Zone is the names of a snapshot. It does not change and is safe for concurrent use.
type Zone struct {
	// names in lower case; also those that have no records and lead to some.
	names map[string]*node
}

// node is the records of a name.
type node struct {
	addresses []netip.Addr
	// ports are where target is called, of a name of SRV.
	ports  []uint16
	target string
	text   string
}

// NewZone makes the names of imports.
func NewZone(imports []snapshot.Import) *Zone {
	z := &Zone{names: map[string]*node{}}
	z.add(services)
	z.add(versionName).text = version
	for _, i := range imports {
		name := strings.Join([]string{i.Name, i.Namespace, services}, ".")
		service := z.add(name)
		for _, at := range i.Listen {
			// What is listened at everywhere, or on one link alone, has no address to tell.
			a := at.Addr().Unmap()
			if !a.IsUnspecified() && a.Zone() == "" && !slices.Contains(service.addresses, a) {
				service.addresses = append(service.addresses, a)
			}
		}
		if i.PortName == "" {
			continue
		}
		port := z.add("_" + i.PortName + "._" + i.Protocol + "." + name)
		port.target = name
		for _, at := range i.Listen {
			if !slices.Contains(port.ports, at.Port()) {
				port.ports = append(port.ports, at.Port())
			}
		}
	}
	return z
}

// add gives the node of a name, which with all that it is below exists from now on.
func (z *Zone) add(name string) *node {
	if n := z.names[name]; n != nil {
		return n
	}
	if name != apex {
		_, above, _ := strings.Cut(name, ".")
		z.add(above)
	}
	n := &node{}
	z.names[name] = n
	return n
}

// answer puts into a reply what the zone has for a question of its class.
func (z *Zone) answer(reply *dns.Msg, q dns.Question) {
	if !dns.IsSubDomain(apex, q.Name) || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR {
		reply.Rcode = dns.RcodeRefused
		return
	}
	reply.Authoritative = true
	name := dns.CanonicalName(q.Name)
	n := z.names[name]
	if n == nil {
		reply.Rcode, reply.Ns = dns.RcodeNameError, []dns.RR{soa(apex)}
		return
	}
	all := n.records(q.Name)
	if name == apex {
		all = append(all, soa(q.Name))
	}
	for _, r := range all {
		if q.Qtype == r.Header().Rrtype || q.Qtype == dns.TypeANY {
			reply.Answer = append(reply.Answer, r)
		}
	}
	switch {
	case len(reply.Answer) == 0: // it exists, with other records (RFC 2308 section 2.2)
		reply.Ns = []dns.RR{soa(apex)}
	case n.target != "":
		reply.Extra = append(z.names[n.target].records(n.target), reply.Extra...)
	}
}

// records of a node, under the name by which it was asked for.
func (n *node) records(name string) (all []dns.RR) {
	header := func(kind uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
	}
	for _, a := range n.addresses {
		if a.Is4() {
			all = append(all, &dns.A{Hdr: header(dns.TypeA), A: a.AsSlice()})
		} else {
			all = append(all, &dns.AAAA{Hdr: header(dns.TypeAAAA), AAAA: a.AsSlice()})
		}
	}
	for _, port := range n.ports {
		all = append(all, &dns.SRV{Hdr: header(dns.TypeSRV), Port: port, Target: n.target})
	}
	if n.text != "" {
		all = append(all, &dns.TXT{Hdr: header(dns.TypeTXT), Txt: []string{n.text}})
	}
	return all
}

// soa is the zone's own record, under the name by which it was asked for. Nobody asks
// for its serial, which is for secondary servers.
func soa(name string) dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns:  apex, Mbox: "hostmaster." + apex, Serial: 1, Refresh: refresh, Retry: retry, Expire: expire, Minttl: ttl,
	}
}
