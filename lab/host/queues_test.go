package host

import (
	"errors"
	"slices"
	"testing"

	"skerry.dev/skerry/internal/nfqueue"
)

// What a run records of the emulator's queues: each by its number, with the packets
// that were dropped because it was full and because its reader was.
func TestNFQueues(t *testing.T) {
	got, err := nfqueues("    0  40371     3 2    96     4     5    12345  1\n   17  40371     0 2    96     0     0        0  1\n")
	want := []Queue{{Name: "0", Kind: "nfqueue", Packets: 12345, Waiting: 3, Dropped: 9}, {Name: "17", Kind: "nfqueue"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got, err := nfqueues("0 40371 3 2 96 4 5\n"); got != nil || !errors.Is(err, nfqueue.ErrFormat) {
		t.Errorf("a line that is cut: %+v, %v", got, err)
	}
}
