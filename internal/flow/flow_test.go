package flow

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/thread"
)

// arrived makes arrivals of sequence numbers; the delay is the number in ns.
func arrived(sequences ...int) Arrivals {
	var all Arrivals
	for _, s := range sequences {
		all = append(all, Arrival{Sequence: s, Delay: time.Duration(s)})
	}
	return all
}

func TestArrivals(t *testing.T) {
	for _, c := range []struct {
		name                          string
		all                           Arrivals
		overtaken, overtaking, copies int
		gaps                          []int
	}{
		{"none", nil, 0, 0, 0, []int{8}},
		{"all", arrived(0, 1, 2, 3, 4, 5, 6, 7), 0, 0, 0, nil},
		{"one ran ahead", arrived(5, 0, 1, 2, 3, 4, 6, 7), 5, 1, 0, nil},
		{"two ran ahead", arrived(1, 0, 2, 6, 3, 4, 5, 7), 4, 2, 0, nil},
		{"one was held up", arrived(1, 2, 3, 0, 4, 5, 6, 7), 1, 3, 0, nil},
		{"copies at once and later", arrived(0, 0, 1, 2, 3, 1, 1, 4, 5, 6, 7), 2, 2, 3, nil},
		{"gaps at both ends and within", arrived(1, 2, 5, 6), 0, 0, 0, []int{1, 2, 1}},
		{"damage is no arrival", arrived(0, Damaged, 2, Damaged, Damaged, 5, 6, 7), 0, 0, 0, []int{1, 2}},
	} {
		if got := c.all.Overtaken(); got != c.overtaken {
			t.Errorf("%s: %d overtaken, want %d", c.name, got, c.overtaken)
		}
		if got := c.all.Overtaking(); got != c.overtaking {
			t.Errorf("%s: %d overtaking, want %d", c.name, got, c.overtaking)
		}
		if got := c.all.Copies(); got != c.copies {
			t.Errorf("%s: %d copies, want %d", c.name, got, c.copies)
		}
		if got := c.all.Gaps(8); !slices.Equal(got, c.gaps) {
			t.Errorf("%s: gaps %v, want %v", c.name, got, c.gaps)
		}
	}
	all := arrived(9, 3, Damaged, 6)
	if got := all.Delays(); !slices.Equal(got, []time.Duration{3, 6, 9}) || all.Quantile(0) != 3 || all.Quantile(0.5) != 6 || all.Quantile(1) != 9 {
		t.Errorf("delays %v", got)
	}
}

func TestSequenceSeesEveryFlippedBit(t *testing.T) {
	const size = 8
	f := Flow{Count: 6, Size: size}
	whole := make([]byte, size)
	fill(whole, 5)
	if got := f.sequence(whole); got != 5 {
		t.Fatalf("sequence %d, want 5", got)
	}
	for bit := range size * 8 {
		damaged := slices.Clone(whole)
		damaged[bit/8] ^= 1 << (bit % 8)
		if got := f.sequence(damaged); got != Damaged {
			t.Errorf("bit %d flipped: sequence %d", bit, got)
		}
	}
	for name, other := range map[string][]byte{
		"short": payload(5), "long": payload(5, 5, 5), "beyond the last": payload(6, 6), "empty": nil,
	} {
		if got := f.sequence(other); got != Damaged {
			t.Errorf("%s: sequence %d", name, got)
		}
	}
}

func payload(words ...uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

// A network without a link: every packet arrives, whole, in order and soon.
func TestRunOverAPlainNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces")
	}
	err := thread.InFreshNet(func() error {
		n, err := Make()
		if err != nil {
			return err
		}
		for _, f := range []Flow{
			{From: n.C1N1, To: n.C2N1, Count: 100, Gap: 100 * time.Microsecond},
			{From: n.C1N1, To: n.C1N2, Count: 100, Size: 1400, Bare: true},
			{From: n.C2N1, To: n.C1N2, Count: 100, Size: 1000, Segments: 10, Gap: time.Millisecond, Urgent: true},
		} {
			all, err := f.Run()
			if err != nil {
				return err
			}
			if len(all) != f.Count || all.Overtaken() != 0 || all.Copies() != 0 || all.Gaps(f.Count) != nil {
				t.Errorf("%s to %s: %d of %d arrived, gaps %v", f.From.Port, f.To.Port, len(all), f.Count, all.Gaps(f.Count))
			}
			if least := all.Quantile(0); least <= 0 || least > 10*time.Millisecond {
				t.Errorf("%s to %s: least delay %s", f.From.Port, f.To.Port, least)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
