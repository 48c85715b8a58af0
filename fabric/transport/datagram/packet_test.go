package datagram

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

func TestPackets(t *testing.T) {
	for _, p := range []packet{
		{flow: 0, payload: []byte{}},
		{flow: 63, payload: []byte("x")},
		{flow: 1 << 40, payload: []byte("hello")},
		{flow: 7, number: 513, part: 1, parts: 2, payload: []byte("lo")},
	} {
		got, err := parsePacket(appendPacket(nil, p))
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("got %+v, %v, want %+v", got, err, p)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":                 {},
		"half a number":           {0x40},
		"no context":              {7},
		"a context of the future": {7, 2, 'x'},
		"a part without a header": {7, contextPart, 0, 1, 0},
		"an empty part":           {7, contextPart, 0, 1, 0, 2},
		"one part of one":         {7, contextPart, 0, 1, 0, 1, 'x'},
		"part 2 of 2":             {7, contextPart, 0, 1, 2, 2, 'x'},
		"too many parts":          {7, contextPart, 0, 1, 0, partsMax + 1, 'x'},
	} {
		if p, err := parsePacket(b); !errors.Is(err, transport.ErrProtocol) {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
}

// What is too long for the path is split into as few parts as that takes, and is whole
// again in whatever order they come; on the least path that QUIC can use, too.
func TestParts(t *testing.T) {
	const pathLeast, pathEthernet = 1163, 1415 // of packets of 1200 and 1452 bytes
	now := time.Now()
	for _, c := range []struct{ bytes, room, parts int }{
		{1420, pathEthernet, 2}, {1500, pathLeast, 2}, {4096, pathEthernet, 3}, {8192, pathEthernet, 6},
		{DatagramBytes, pathEthernet, 7}, {DatagramBytes, pathLeast, 9}, {DatagramBytes, 600, 0}, {100, 5, 0},
	} {
		datagram := bytes.Repeat([]byte("0123456789"), c.bytes/10+1)[:c.bytes]
		packets := split(1<<29, 9, datagram, c.room)
		if len(packets) != c.parts {
			t.Errorf("%d bytes with room for %d: %d parts, want %d", c.bytes, c.room, len(packets), c.parts)
		}
		var a assembler
		for i := len(packets) - 1; i >= 0; i-- {
			p, err := parsePacket(packets[i])
			if err != nil || len(packets[i]) > c.room {
				t.Fatalf("a part of %d bytes with room for %d: %v", len(packets[i]), c.room, err)
			}
			whole, dropped := a.add(p, now)
			if dropped != 0 || (i == 0) != bytes.Equal(whole, datagram) {
				t.Errorf("%d bytes: after part %d: %d bytes, %d dropped", c.bytes, i, len(whole), dropped)
			}
		}
		if len(a.waiting) != 0 {
			t.Error("something is left")
		}
	}
}

// Parts of which others are lost wait for a while and in bounds; parts that do not
// belong together never become a datagram.
func TestPartsMissing(t *testing.T) {
	now := time.Now()
	part := func(number uint16, part, parts uint8, text string) packet {
		return packet{flow: 1, number: number, part: part, parts: parts, payload: []byte(text)}
	}
	var a assembler
	want := func(what string, p packet, at time.Time, whole string, dropped int) {
		t.Helper()
		got, n := a.add(p, at)
		if string(got) != whole || n != dropped {
			t.Errorf("%s: got %q and %d dropped, want %q and %d", what, got, n, whole, dropped)
		}
	}
	want("a first part", part(1, 0, 2, "a"), now, "", 0)
	want("it twice", part(1, 0, 2, "x"), now, "", 0)
	want("the first of another flow", packet{flow: 2, number: 1, parts: 2, payload: []byte("b")}, now, "", 0)
	want("the second part", part(1, 1, 2, "b"), now, "ab", 0)
	want("too late for the other flow", part(2, 0, 2, "c"), now.Add(2*partialLasts), "", 1)
	want("of another number of parts", part(2, 1, 3, "c"), now.Add(2*partialLasts), "", 1)
	want("a long one", part(3, 0, 3, string(make([]byte, DatagramBytes))), now.Add(2*partialLasts), "", 0)
	want("longer than allowed", part(3, 1, 3, "c"), now.Add(2*partialLasts), "", 1)
	for i := range uint16(partialsMax) {
		want("many", part(100+i, 0, 2, "m"), now.Add(2*partialLasts), "", 0)
	}
	want("one too many", part(99, 0, 2, "m"), now.Add(2*partialLasts), "", 1)
}

// No sequence of packets of a peer makes a gateway keep more than its bounds.
func FuzzPackets(f *testing.F) {
	f.Add([]byte{4, 7, 0, 'h', 'i', 7, 7, contextPart, 0, 1, 0, 2, 'x', 7, 7, contextPart, 0, 1, 1, 2, 'y'})
	f.Fuzz(func(t *testing.T, b []byte) {
		var a assembler
		now := time.Now()
		for len(b) > 1 {
			n := min(int(b[0]), len(b)-1)
			one := b[1 : 1+n]
			b = b[1+n:]
			p, err := parsePacket(one)
			if err != nil {
				if !errors.Is(err, transport.ErrProtocol) {
					t.Fatalf("%v is no breach", err)
				}
				continue
			}
			if again, err := parsePacket(appendPacket(nil, p)); err != nil || !reflect.DeepEqual(again, p) {
				t.Fatalf("%+v became %+v, %v", p, again, err)
			}
			if p.parts == 0 {
				continue
			}
			whole, _ := a.add(p, now)
			if len(whole) > DatagramBytes || len(a.waiting) > partialsMax {
				t.Fatalf("%d bytes, %d waiting", len(whole), len(a.waiting))
			}
		}
	})
}
