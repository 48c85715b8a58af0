package host

import (
	"errors"
	"slices"
	"testing"
)

func TestParseNFQueues(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Queue
		err        error
	}{
		{"none", "", nil, nil},
		{
			"two", "    0  40371     3 2    96     4     5    12345  1\n   17  40371     0 2    96     0     0        0  1\n",
			[]Queue{{Name: "0", Kind: "nfqueue", Packets: 12345, Waiting: 3, Dropped: 9}, {Name: "17", Kind: "nfqueue"}}, nil,
		},
		{"short", "0 40371 3 2 96 4 5\n", nil, errNFQueue},
		{"empty line", "\n", nil, errNFQueue},
		{"no number", "0 40371 3 2 96 x 5 12345 1\n", nil, errNFQueue},
		{"negative", "0 40371 -3 2 96 4 5 12345 1\n", nil, errNFQueue},
	} {
		got, err := parseNFQueues(c.text)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func FuzzParseNFQueues(f *testing.F) {
	f.Add("    0  40371     3 2    96     4     5    12345  1\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseNFQueues(text)
		if err != nil && len(all) > 0 {
			t.Errorf("%q: %d queues beside %v", text, len(all), err)
		}
		for _, q := range all {
			if q.Name == "" || q.Kind != kindNFQueue {
				t.Errorf("%q: %+v", text, q)
			}
		}
	})
}
