package gateway_test

import (
	"io"
	"net"
	"testing"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/snapshot"
)

// BenchmarkNew asks on a connection of its own each time, through a pair of gateways and
// without, and BenchmarkKept on one that is kept.
func BenchmarkNew(b *testing.B) {
	front, straight := benchPair(b)
	for name, address := range map[string]string{"gateways": front, "direct": straight} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				conn := dialed(b, address)
				echo60(b, conn)
				conn.Close()
			}
		})
	}
}

func BenchmarkKept(b *testing.B) {
	front, straight := benchPair(b)
	for name, address := range map[string]string{"gateways": front, "direct": straight} {
		b.Run(name, func(b *testing.B) {
			conn := dialed(b, address)
			defer conn.Close()
			for b.Loop() {
				echo60(b, conn)
			}
		})
	}
}

// benchPair is a pair of gateways before a service, and where each is called.
func benchPair(b *testing.B) (front, straight string) {
	folders := identitytest.New(b, "c1", "c2")
	peers := port(b)
	front, straight = port(b), echo(b)
	begin := func(config gateway.Config, s *snapshot.Snapshot) {
		config.Connections = gateway.Connections{Ahead: 4, Most: 64}
		said, end := start(b, config, s, nil)
		b.Cleanup(end)
		said.await(b, "msg=ready")
	}
	begin(gateway.Config{Identity: folders["c1"], Listen: peers}, exports(straight))
	begin(gateway.Config{Identity: folders["c2"]}, imports(front, peers))
	return front, straight
}

func dialed(b *testing.B, address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

func echo60(b *testing.B, conn net.Conn) {
	data := make([]byte, 60)
	if _, err := conn.Write(data); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(conn, data); err != nil {
		b.Fatal(err)
	}
}
