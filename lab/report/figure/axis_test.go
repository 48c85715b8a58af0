package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

func labelsOf(all []plot.Tick) string {
	words := make([]string, len(all))
	for i, t := range all {
		words[i] = t.Label
	}
	return strings.Join(words, " ")
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		s    scale
		want string
	}{
		{linear(0, 1, 200), "0.0 0.2 0.4 0.6 0.8 1.0"},
		{linear(0, 1, 60), "0.0 0.5 1.0"},
		{linear(0, 47, 240), "0 5 10 15 20 25 30 35 40 45"},
		{linear(21.3, 22.4, 240), "21.4 21.6 21.8 22.0 22.2 22.4"},
		{linear(-5, 5, 200), "-4 -2 0 2 4"},
		{linear(0, 2e7, 240), "0 5e6 1e7 1.5e7 2e7"},
		{linear(3, 3, 200), "2.99 3.00 3.01"},
		{logarithmic(1, 100, 200), "1 2 5 10 20 50 100"},
		{logarithmic(0.1, 1e4, 200), "0.1 1 10 100 1000 10000"},
		{logarithmic(0.001, 1000, 120), "0.01 1 100"},
		{logarithmic(12, 17, 200), "12 13 14 15 16 17"},
	} {
		if have := labelsOf(c.s.ticks); have != c.want {
			t.Errorf("from %g to %g, log %t: %s, not %s", c.s.min, c.s.max, c.s.log, have, c.want)
		}
	}
}

// TestAnyTicks: on any axis there are at least two labels that do not touch.
func TestAnyTicks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		low := math.Pow(10, rng.Float64()*8-3)
		high := low * (1.01 + rng.ExpFloat64()*30)
		const room = 240
		for _, s := range []scale{linear(0, high, room), linear(low, high, room), logarithmic(low, high, room)} {
			if n := len(s.ticks); n < 2 || n > ticksMax+1 {
				t.Fatalf("from %g to %g there are %d ticks", s.min, s.max, n)
			}
			for i := 1; i < len(s.ticks); i++ {
				a, b := s.ticks[i-1], s.ticks[i]
				if room*(s.along(b.Value)-s.along(a.Value)) < (widthOf(a.Label)+widthOf(b.Label))/2 {
					t.Fatalf("from %g to %g %s and %s touch", s.min, s.max, a.Label, b.Label)
				}
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.5: "0.5", 1.004: "1", 1.25: "1.25", 12.34: "12.3", 99.96: "100", 123.4: "123",
		99999: "99999", 1e6: "1e6", 2.5e12: "2.5e12", 0.00123: "0.00123", 0.0001: "0.0001", 2e-5: "2e-5",
		-3.14159: "-3.14", math.Copysign(0, -1): "0",
	} {
		if have := number(v); have != want {
			t.Errorf("%g is %s, not %s", v, have, want)
		}
	}
}

func TestWestern(t *testing.T) {
	for text, want := range map[string]string{
		"a (b) \\": "a (b) \\", "5 µs ± 1": "5 \xb5s \xb1 1", "B ÷ A": "B \xf7 A", "a → b − c": "a -> b \x96 c",
		"≤ ≥ ≈": "<= >= ~", "€ … –": "\x80 \x85 \x96", "“q” ™ Ÿ": "\x93q\x94 \x99 \x9f", "日\x81": "??",
	} {
		if have := westernOf(text); have != want {
			t.Errorf("%q is %q, not %q", text, have, want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, text := range []string{"", "a", "istio-ambient-waypoint", strings.Repeat("W", 10000), "日本語日本語日本語"} {
		for _, width := range []vg.Length{-1, 0, 14, 60, 1e6} {
			have := fit(text, width)
			if widthOf(have) > max(width, widthOf("…")) {
				t.Errorf("%.20q cut to %g is %q", text, width, have)
			}
			if widthOf(text) <= width && have != text {
				t.Errorf("%.20q fits %g and is cut to %q", text, width, have)
			}
		}
	}
}

// TestSystemsDiffer: no two of thirty systems look the same, and the first six
// differ without colour.
func TestSystemsDiffer(t *testing.T) {
	looks := map[string]int{}
	for i := range 30 {
		look := fmt.Sprint(Hue(i), dashOf(i))
		if j, taken := looks[look]; taken {
			t.Errorf("systems %d and %d look the same", j, i)
		}
		looks[look] = i
	}
	marks := map[string]bool{}
	for i := range 6 {
		marks[fmt.Sprint(markOf(i, vg.Point{}, 3))] = true
	}
	if len(marks) != 6 {
		t.Errorf("six systems have %d markers", len(marks))
	}
	if Hue(-1) != Hue(5) || Hue(7) != Hue(1) {
		t.Error("hues do not repeat")
	}
}

// TestShade: text over a cell has the contrast that WCAG 2.2 asks for, and more
// is always darker.
func TestShade(t *testing.T) {
	before := 2.0
	for i := range 1001 {
		c := shade(float64(i) / 1000)
		l := luminance(c)
		if l > before {
			t.Errorf("%d ‰ is lighter than less", i)
		}
		before = l
		contrast := (l + 0.05) / 0.05
		if r, _, _, _ := over(c).RGBA(); r > 0x8000 {
			contrast = 1.05 / (l + 0.05)
		}
		if contrast < 4.5 {
			t.Errorf("at %d ‰ the contrast is %.2f", i, contrast)
		}
	}
	if shade(-3) != shade(0) || shade(7) != shade(1) {
		t.Error("shares beyond 0 and 1 have other shades")
	}
}
