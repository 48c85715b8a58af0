package dns

import (
	"github.com/miekg/dns"
)

const (
	// headerBytes of a message (RFC 1035 section 4.1.1), and where its flags begin.
	headerBytes = 12
	flagsByte   = 2
	// response is the flag of one, in the first byte of flags.
	response = 0x80
	// sizeMost is the largest answer by UDP, which crosses links whole: what the DNS Flag
	// Day of 2020 recommends.
	sizeMost = 1232
)

// Reply is the answer to a message, nil where it gets none: what is no query, since two
// that answer answers would never end. By a stream it may be as long as it is, else as
// long as who asks can take.
func (z *Zone) Reply(message []byte, stream bool) []byte {
	if len(message) < headerBytes || message[flagsByte]&response != 0 {
		return nil
	}
	query, reply := new(dns.Msg), new(dns.Msg)
	if err := query.Unpack(message); err != nil {
		// Its header can be read, and no more of it is sure.
		query = &dns.Msg{MsgHdr: dns.MsgHdr{Id: query.Id, Opcode: query.Opcode, RecursionDesired: query.RecursionDesired}}
		return pack(reply.SetRcode(query, dns.RcodeFormatError))
	}
	reply.SetReply(query)
	size := dns.MinMsgSize
	if options := query.IsEdns0(); options != nil {
		reply.SetEdns0(sizeMost, options.Do())
		size = min(max(size, int(options.UDPSize())), sizeMost)
	}
	if stream {
		size = dns.MaxMsgSize
	}
	if reply.Rcode = refusal(query); reply.Rcode == dns.RcodeSuccess {
		z.answer(reply, query.Question[0])
	}
	reply.Truncate(size)
	return pack(reply)
}

// refusal says why a query is not looked at, as a code of DNS.
func refusal(query *dns.Msg) int {
	options := 0
	for _, r := range query.Extra {
		if r.Header().Rrtype == dns.TypeOPT {
			options++
		}
	}
	switch {
	case query.Opcode != dns.OpcodeQuery:
		return dns.RcodeNotImplemented
	case len(query.Question) != 1 || options > 1: // RFC 9619, RFC 6891 section 6.1.1
		return dns.RcodeFormatError
	case options == 1 && query.IsEdns0().Version() != 0:
		return dns.RcodeBadVers
	case query.Question[0].Qclass != dns.ClassINET && query.Question[0].Qclass != dns.ClassANY:
		return dns.RcodeRefused
	}
	return dns.RcodeSuccess
}

// pack writes a reply; one that cannot be written, which names from outside might bring
// about, is not given.
func pack(reply *dns.Msg) []byte {
	text, err := reply.Pack()
	if err != nil {
		return nil
	}
	return text
}
