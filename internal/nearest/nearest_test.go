package nearest_test

import (
	"strings"
	"testing"

	"skerry.dev/skerry/internal/nearest"
)

func TestHint(t *testing.T) {
	nodes := []string{"c1/head", "c1/worker", "c2/head"}
	many := strings.Split("a1 b2 c3 d4 e5 f6 g7 h8 i9 j10 k11 l12 m13", " ")
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"c1/wroker", nodes, "did you mean c1/worker?"},
		{"C1/HEAD", nodes, "did you mean c1/head?"},
		{"c1/heaf", nodes, "did you mean c1/head?"},
		{"mars", nodes, "there are c1/head, c1/worker, c2/head"},
		{"x", []string{"c1"}, "there is only c1"},
		{"c1", nil, "there are none"},
		{"", []string{"a", "b"}, "there are a, b"},
		{"zzzz", many, "there are a1, b2, c3, d4, e5, f6, g7, h8, i9, j10, k11, l12 and others"},
		{strings.Repeat("c1/head", 1000), nodes, "there are c1/head, c1/worker, c2/head"},
	} {
		if got := nearest.Hint(c.word, c.known); got != c.want {
			t.Errorf("%.20s among %v: got %q, want %q", c.word, c.known, got, c.want)
		}
	}
}
