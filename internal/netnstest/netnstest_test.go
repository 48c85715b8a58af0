package netnstest_test

import (
	"net"
	"os"
	"testing"

	"skerry.dev/skerry/internal/netnstest"
)

func TestMain(m *testing.M) { os.Exit(netnstest.Main(m)) }

// A node has its addresses and no others, and has none afterwards.
func TestNode(t *testing.T) {
	t.Run("while it is one", func(t *testing.T) {
		netnstest.Node(t, []string{"10.1.0.1/24", "fd73::1/64"}, []string{"10.96.0.0/16"})
		for _, a := range []string{"10.1.0.1:0", "[fd73::1]:0"} {
			l, err := net.Listen("tcp", a)
			if err != nil {
				t.Error(err)
				continue
			}
			_ = l.Close()
		}
	})
	if _, err := net.Listen("tcp", "10.1.0.1:0"); err == nil {
		t.Error("its address is there after it")
	}
	if all, err := net.Interfaces(); os.Geteuid() == 0 && (err != nil || len(all) != 1) {
		t.Errorf("there are %d interfaces beside none, %v", len(all), err)
	}
}
