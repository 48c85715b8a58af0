package userspace

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// bridgedPing is a message of Linux 6.18 for a bridged ping: with mark, bridge
// ports and hardware address, of which the emulator needs none.
const bridgedPing = "c0000000000300000000000000000000020000010b000100000000010800020008000500000000040800070000" +
	"00000b08000600000000040800080000000009080003000000000210000900000600002ebb748d6b5800001400040000000000" +
	"6b010371000000000006899408000d000000005444000a00450000546e6240004001b8400a0200020a020001080001765cbf00" +
	"017103016b000000006288060000000000101112131415161718191a1b1c1d1e1f20212223"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParsePacket(t *testing.T) {
	b := unhex(t, bridgedPing)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	q, err := parsePacket(b)
	if err != nil {
		t.Fatal(err)
	}
	const arrival = 0x6b010371*int64(1e9) + 0x68994*int64(1e3)
	if q.queue != 1 || q.id != 1 || q.length != 84 || q.arrival != arrival {
		t.Errorf("got queue %d, id %d, length %d, arrival %d", q.queue, q.id, q.length, q.arrival)
	}
	if len(q.head) != copyRange || q.head[0] != 0x45 {
		t.Errorf("head is %x", q.head)
	}
}

func TestVerdictMessage(t *testing.T) {
	// struct nlmsghdr{32, 0x301, 1}, nfgenmsg{queue 5}, NFQA_VERDICT_HDR{1, 0x01020304}
	want := unhex(t, "20000000010301000000000000000000"+"00000005"+"0c000200"+"00000001"+"01020304")
	if got := appendVerdict(nil, 5, 0x01020304, verdictAccept); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestAlteredVerdictMessage(t *testing.T) {
	// As above, and NFQA_PAYLOAD with 5 bytes, padded; the next message begins
	// aligned.
	want := unhex(t, "29000000010301000000000000000000"+"00000005"+"0c000200"+"00000001"+"01020304"+"09000a00"+"0a0b0c0d0e"+"000000")
	got := appendAltered([]byte("1234"), 5, 0x01020304, []byte{10, 11, 12, 13, 14})
	if !bytes.Equal(got[4:], want) {
		t.Errorf("got  %x\nwant %x", got[4:], want)
	}
}

func TestParseAck(t *testing.T) {
	b := unhex(t, "240000000200000107000000b55c0000"+"ffffffff"+"1c000000020305000700000000000000")
	if a, ok := parseAck(b); !ok || a != (ack{number: 7, code: -1}) {
		t.Errorf("got %+v, %v; want -1 (EPERM) to request 7", a, ok)
	}
	if _, ok := parseAck(b[:18]); ok {
		t.Error("a cut answer is taken for one")
	}
}

// FuzzParsePacket: whatever the kernel's message holds, parsing ends, and what
// it accepts stays inside the message.
func FuzzParsePacket(f *testing.F) {
	f.Add(unhex(f, bridgedPing))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parsePacket(b)
		if err == nil && (len(q.head) > len(b) || q.length < len(q.head)) {
			t.Errorf("head of %d, length %d from a message of %d", len(q.head), q.length, len(b))
		}
		frameBytes(q.length, q.head)
		parseAck(b)
	})
}
