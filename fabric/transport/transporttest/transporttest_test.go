package transporttest_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"skerry.dev/skerry/fabric/transport/transporttest"
)

// What is said is heard at the other end, and comes back from who echoes.
func TestLoopback(t *testing.T) {
	one, other := transporttest.Pair(t)
	udp, err := net.Dial("udp", transporttest.Datagrams(t, func(said []byte, _ net.Addr) []byte { return said }))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp := transporttest.Dial(t, transporttest.Listen(t, transporttest.Echo))
	for _, c := range []struct{ say, hear net.Conn }{{one, other}, {other, one}, {tcp, tcp}, {udp, udp}} {
		said, heard := []byte("hello"), make([]byte, 5)
		if _, err := c.say.Write(said); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.hear, heard); err != nil || !bytes.Equal(heard, said) {
			t.Errorf("%s: %q, %v", c.say.LocalAddr(), heard, err)
		}
	}
}

// What becomes so is waited for, and no longer.
func TestAwait(t *testing.T) {
	n := 0
	transporttest.Await(t, "the third try", func() bool { n++; return n == 3 })
	if n != 3 {
		t.Errorf("%d tries", n)
	}
}
