package host

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"testing"
)

func TestAnnouncement(t *testing.T) {
	got := announcement(net.HardwareAddr{2, 0, 0, 0, 0, 9}, netip.MustParseAddr("10.1.0.2"))
	// Ethernet, IPv4, their lengths, a request; who says it, and of whom.
	want, err := hex.DecodeString("0001" + "0800" + "06" + "04" + "0001" + "020000000009" + "0a010002" + "000000000000" + "0a010002")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}
