package host

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"testing"
)

func TestAnnouncement(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	for _, c := range []struct{ address, want, to string }{
		// Ethernet, IPv4, their lengths, a request; who says it, and of whom.
		{"10.1.0.2", "0001" + "0800" + "06" + "04" + "0001" + "020000000009" + "0a010002" + "000000000000" + "0a010002", "ffffffffffff"},
		// IPv6 of 32 bytes of ICMPv6, hop limit 255, to all nodes; an advertisement that
		// overrides, of which address, and at which MAC address.
		{"fd00::9", "60000000" + "0020" + "3a" + "ff" + "fd000000000000000000000000000009" + "ff020000000000000000000000000001" +
			"8800" + "5a83" + "20000000" + "fd000000000000000000000000000009" + "0201" + "020000000009", "333300000001"},
	} {
		want, err := hex.DecodeString(c.want)
		if err != nil {
			t.Fatal(err)
		}
		got, to, err := announcement(mac, netip.MustParseAddr(c.address))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got  %x, %v\nwant %x", c.address, got, err, want)
		}
		if at := hex.EncodeToString(to.Addr[:to.Halen]); at != c.to {
			t.Errorf("%s is told to %s, want %s", c.address, at, c.to)
		}
	}
}
