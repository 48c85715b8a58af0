package nfqueue

import (
	"errors"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Queue
		err        error
	}{
		{"none", "", nil, nil},
		{
			"two", "    0  40371     3 2    96     4     5    12345  1\n   17  40371     0 2    96     0     0        0  1\n",
			[]Queue{{Number: 0, Packets: 12345, Waiting: 3, Dropped: 9}, {Number: 17}}, nil,
		},
		{
			"as large as they get", "65535 4294967295 4294967295 2 65531 4294967295 4294967295 4294967295  1\n",
			[]Queue{{Number: 65535, Packets: 1<<32 - 1, Waiting: 1<<32 - 1, Dropped: 1<<33 - 2}}, nil,
		},
		{"short", "0 40371 3 2 96 4 5\n", nil, ErrFormat},
		{"empty line", "\n", nil, ErrFormat},
		{"no number", "0 40371 3 2 96 x 5 12345 1\n", nil, ErrFormat},
		{"negative", "0 40371 -3 2 96 4 5 12345 1\n", nil, ErrFormat},
		{"no such queue", "65536 40371 3 2 96 4 5 12345 1\n", nil, ErrFormat},
		{"more than 32 bits", "0 40371 3 2 96 4294967296 5 12345 1\n", nil, ErrFormat},
		{"a broken line behind a good one", "0 1 0 2 96 0 0 0 1\n1 1\n", nil, ErrFormat},
	} {
		got, err := Parse(c.text)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("    0  40371     3 2    96     4     5    12345  1\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text)
		if err != nil && (len(all) > 0 || !errors.Is(err, ErrFormat)) {
			t.Errorf("%q: %d queues beside %v", text, len(all), err)
		}
		for _, q := range all {
			if q.Packets >= 1<<32 || q.Waiting >= 1<<32 || q.Dropped >= 1<<33 {
				t.Errorf("%q: %+v", text, q)
			}
		}
	})
}
