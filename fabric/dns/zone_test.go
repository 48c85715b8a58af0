package dns

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
)

func imported(name, protocol, port string, listen ...string) snapshot.Import {
	i := snapshot.Import{Target: transport.Target{Namespace: "shop", Name: name, Port: 80, Protocol: protocol}, PortName: port}
	for _, at := range listen {
		i.Listen = append(i.Listen, netip.MustParseAddrPort(at))
	}
	return i
}

func shop() *Zone {
	return NewZone([]snapshot.Import{
		imported("web", "tcp", "http", "10.2.0.1:80", "[fd00::1]:80"),
		imported("web", "tcp", "", "10.2.0.1:443", "10.2.0.2:443"),
		imported("log", "udp", "in", "10.2.0.3:514", "10.2.0.4:5514"),
		imported("any", "tcp", "x", "0.0.0.0:80", "[::]:80", "[fe80::1%lo]:80"),
		imported("six", "tcp", "", "[fd00::6]:80", "[::ffff:10.2.0.6]:80"),
	})
}

// ask gives the records of an answer, without what their headers have in common, and
// its code.
func ask(t *testing.T, z *Zone, name string, kind uint16) (answer, extra, code string) {
	t.Helper()
	reply := reply(t, z, new(dns.Msg).SetQuestion(name, kind), true)
	say := func(all []dns.RR) string {
		var said []string
		for _, r := range all {
			text := strings.ReplaceAll(r.String(), "\t", " ")
			said = append(said, strings.Replace(text, fmt.Sprintf(" %d IN ", ttl), " ", 1))
		}
		return strings.Join(said, ", ")
	}
	code = dns.RcodeToString[reply.Rcode]
	if soa := say(reply.Ns); soa != "" {
		code += " " + strings.Fields(soa)[0] + " " + strings.Fields(soa)[1]
	}
	if reply.Authoritative == (reply.Rcode == dns.RcodeRefused) {
		t.Errorf("%s: authoritative is %v for %s", name, reply.Authoritative, code)
	}
	return say(reply.Answer), say(reply.Extra), code
}

func reply(t *testing.T, z *Zone, query *dns.Msg, stream bool) *dns.Msg {
	t.Helper()
	text, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(z.Reply(text, stream)); err != nil {
		t.Fatal(err)
	}
	if reply.Id != query.Id || !reply.Response || reply.RecursionAvailable || !reply.RecursionDesired {
		t.Errorf("header %+v", reply.MsgHdr)
	}
	return reply
}

func TestAnswers(t *testing.T) {
	const (
		web   = "web.shop.svc.clusterset.local."
		none  = "NOERROR clusterset.local. SOA"
		never = "NXDOMAIN clusterset.local. SOA"
	)
	z := shop()
	for _, c := range []struct {
		name                string
		kind                uint16
		answer, extra, code string
	}{
		{web, dns.TypeA, web + " A 10.2.0.1, " + web + " A 10.2.0.2", "", "NOERROR"},
		{web, dns.TypeAAAA, web + " AAAA fd00::1", "", "NOERROR"},
		{web, dns.TypeMX, "", "", none},
		{"wEb.ShOp.sVC.clusterSET.local.", dns.TypeAAAA, "wEb.ShOp.sVC.clusterSET.local. AAAA fd00::1", "", "NOERROR"},
		{"six.shop.svc.clusterset.local.", dns.TypeA, "six.shop.svc.clusterset.local. A 10.2.0.6", "", "NOERROR"},
		{"log.shop.svc.clusterset.local.", dns.TypeAAAA, "", "", none},
		{"any.shop.svc.clusterset.local.", dns.TypeA, "", "", none},
		{"_http._tcp." + web, dns.TypeSRV, "_http._tcp." + web + " SRV 0 0 80 " + web, web + " A 10.2.0.1, " + web + " AAAA fd00::1, " + web + " A 10.2.0.2", "NOERROR"},
		{"_in._udp.log.shop.svc.clusterset.local.", dns.TypeANY, "_in._udp.log.shop.svc.clusterset.local. SRV 0 0 514 log.shop.svc.clusterset.local., _in._udp.log.shop.svc.clusterset.local. SRV 0 0 5514 log.shop.svc.clusterset.local.", "log.shop.svc.clusterset.local. A 10.2.0.3, log.shop.svc.clusterset.local. A 10.2.0.4", "NOERROR"},
		{"_http._tcp." + web, dns.TypeA, "", "", none},
		{"_tcp." + web, dns.TypeSRV, "", "", none},
		{"_https._tcp." + web, dns.TypeSRV, "", "", never},
		{"shop.svc.clusterset.local.", dns.TypeA, "", "", none},
		{"svc.clusterset.local.", dns.TypeA, "", "", none},
		{"clusterset.local.", dns.TypeSOA, "clusterset.local. SOA clusterset.local. hostmaster.clusterset.local. 1 3600 600 86400 5", "", "NOERROR"},
		{"clusterset.local.", dns.TypeA, "", "", none},
		{"dns-version.clusterset.local.", dns.TypeTXT, `dns-version.clusterset.local. TXT "1.0.0"`, "", "NOERROR"},
		{"c1." + web, dns.TypeA, "", "", never},
		{"web.bar.svc.clusterset.local.", dns.TypeA, "", "", never},
		{`web\.shop.svc.clusterset.local.`, dns.TypeA, "", "", never},
		{"clusterset.local.", dns.TypeAXFR, "", "", "REFUSED"},
		{"web.shop.svc.cluster.local.", dns.TypeA, "", "", "REFUSED"},
		{"xclusterset.local.", dns.TypeA, "", "", "REFUSED"},
		{"1.0.2.10.in-addr.arpa.", dns.TypePTR, "", "", "REFUSED"},
		{".", dns.TypeNS, "", "", "REFUSED"},
	} {
		answer, extra, code := ask(t, z, c.name, c.kind)
		if answer != c.answer || extra != c.extra || code != c.code {
			t.Errorf("%s %s:\ngot  %s | %s | %s\nwant %s | %s | %s", c.name, dns.TypeToString[c.kind], answer, extra, code, c.answer, c.extra, c.code)
		}
	}
}

// What is no question that can be answered gets a code, or nothing.
func TestMalformed(t *testing.T) {
	z := shop()
	query := func(change func(*dns.Msg)) []byte {
		m := new(dns.Msg).SetQuestion("web.shop.svc.clusterset.local.", dns.TypeA)
		change(m)
		text, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := query(func(*dns.Msg) {})
	options := func(version uint8) *dns.OPT {
		o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
		o.SetVersion(version)
		return o
	}
	for name, c := range map[string]struct {
		said []byte
		code int // of DNS, or -1 for none
	}{
		"nothing":          {nil, -1},
		"half a header":    {good[:11], -1},
		"an answer":        {query(func(m *dns.Msg) { m.Response = true }), -1},
		"half a question":  {good[:20], dns.RcodeFormatError},
		"no question":      {query(func(m *dns.Msg) { m.Question = nil }), dns.RcodeFormatError},
		"two questions":    {query(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), dns.RcodeFormatError},
		"options twice":    {query(func(m *dns.Msg) { m.Extra = []dns.RR{options(0), options(0)} }), dns.RcodeFormatError},
		"options too new":  {query(func(m *dns.Msg) { m.Extra = []dns.RR{options(1)} }), dns.RcodeBadVers},
		"an update":        {query(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), dns.RcodeNotImplemented},
		"another class":    {query(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), dns.RcodeRefused},
		"a name in a loop": {append(append([]byte{}, good[:12]...), 0xc0, 12, 0, 1, 0, 1), dns.RcodeFormatError},
	} {
		got := z.Reply(c.said, false)
		if got == nil {
			if c.code >= 0 {
				t.Errorf("%s: no answer, want %s", name, dns.RcodeToString[c.code])
			}
			continue
		}
		reply := new(dns.Msg)
		if err := reply.Unpack(got); err != nil || reply.Rcode != c.code || reply.Id != (uint16(c.said[0])<<8|uint16(c.said[1])) {
			t.Errorf("%s: got %s, %v", name, reply, err)
		}
	}
}

// An answer is as long as who asks can take, and says so where it is not whole.
func TestSizes(t *testing.T) {
	var listen []string
	for i := range 100 {
		listen = append(listen, fmt.Sprintf("10.2.1.%d:80", i))
	}
	z := NewZone([]snapshot.Import{imported("big", "tcp", "", listen...), imported("small", "tcp", "", "10.2.0.1:80")})
	for _, c := range []struct {
		name   string
		size   uint16 // of EDNS0, or 0
		stream bool
		most   int
		whole  bool
	}{
		{"small", 0, false, 512, true},
		{"big", 0, false, 512, false},
		{"big", 100, false, 512, false},
		{"big", 1000, false, 1000, false},
		{"big", 65535, false, 1232, false},
		{"big", 0, true, 65535, true},
	} {
		query := new(dns.Msg).SetQuestion(c.name+".shop.svc.clusterset.local.", dns.TypeA)
		if c.size > 0 {
			query.SetEdns0(c.size, true)
		}
		text, _ := query.Pack()
		got := z.Reply(text, c.stream)
		reply := reply(t, z, query, c.stream)
		if len(got) > c.most || reply.Truncated == c.whole || len(reply.Answer) == 0 {
			t.Errorf("%+v: %d bytes, %d records, truncated %v", c, len(got), len(reply.Answer), reply.Truncated)
		}
		if options := reply.IsEdns0(); (options != nil) != (c.size > 0) || options != nil && (!options.Do() || options.UDPSize() != 1232) {
			t.Errorf("%+v: options %v", c, options)
		}
	}
}

// Whatever is asked, the answer is one, and to what was asked.
func FuzzReply(f *testing.F) {
	z := shop()
	for _, kind := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypeANY} {
		m := new(dns.Msg).SetQuestion("_http._tcp.web.shop.svc.clusterset.local.", kind)
		text, err := m.SetEdns0(4096, true).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, message []byte, stream bool) {
		got := z.Reply(message, stream)
		if got == nil {
			return
		}
		reply := new(dns.Msg)
		if err := reply.Unpack(got); err != nil {
			t.Fatal(err)
		}
		if !reply.Response || message[0] != got[0] || message[1] != got[1] || !stream && len(got) > sizeMost {
			t.Errorf("to %x: %s", message, reply)
		}
	})
}

// ns/op is one answer to a query of a hundred services.
func BenchmarkReply(b *testing.B) {
	var all []snapshot.Import
	for i := range 100 {
		all = append(all, imported(fmt.Sprint("s", i), "tcp", "http", "10.2.0.1:80"))
	}
	z := NewZone(all)
	query, err := new(dns.Msg).SetQuestion("s50.shop.svc.clusterset.local.", dns.TypeA).Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if z.Reply(query, false) == nil {
			b.Fatal("no answer")
		}
	}
}
