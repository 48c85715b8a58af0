package quantity_test

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/quantity"
)

// kinds are the five types by name: what reads them, what pattern they match.
var kinds = map[string]struct {
	parse   func(string) (encoding.TextMarshaler, error)
	pattern *regexp.Regexp
}{
	"duration":  {reader(quantity.ParseDuration), regexp.MustCompile(quantity.DurationPattern)},
	"size":      {reader(quantity.ParseSize), regexp.MustCompile(quantity.SizePattern)},
	"rate":      {reader(quantity.ParseRate), regexp.MustCompile(quantity.RatePattern)},
	"frequency": {reader(quantity.ParseFrequency), regexp.MustCompile(quantity.FrequencyPattern)},
	"fraction":  {reader(quantity.ParseFraction), regexp.MustCompile(quantity.FractionPattern)},
}

func reader[T encoding.TextMarshaler](parse func(string) (T, error)) func(string) (encoding.TextMarshaler, error) {
	return func(s string) (encoding.TextMarshaler, error) { return parse(s) }
}

func TestReadAndPrint(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"duration", "5ms", "5ms"},
		{"duration", "1.25ms", "1.25ms"},
		{"duration", "250us", "250µs"},
		{"duration", "1m30s", "1m30s"},
		{"duration", "90s", "1m30s"},
		{"duration", "0", "0s"},
		{"duration", ".5s", "500ms"},
		{"size", "60B", "60B"},
		{"size", "100KB", "100KB"},
		{"size", "100000B", "100KB"},
		{"size", "64KiB", "64KiB"},
		{"size", "65536B", "64KiB"},
		{"size", "1.5KB", "1500B"},
		{"size", "0B", "0B"},
		{"size", "9007199254740993B", "9007199254740993B"},
		{"size", "9223372036854775807B", "9223372036854775807B"},
		{"rate", "1gbit", "1gbit"},
		{"rate", "1000mbit", "1gbit"},
		{"rate", "2.5gbit", "2500mbit"},
		{"rate", "500kbit", "500kbit"},
		{"rate", "7bit", "7bit"},
		{"frequency", "200/s", "200/s"},
		{"frequency", "0.50/s", "0.5/s"},
		{"frequency", "1000000/s", "1000000/s"},
		{"frequency", "0/s", "0/s"},
		{"fraction", "0.08%", "0.08%"},
		{"fraction", "0.0008", "0.08%"},
		{"fraction", "7%", "7%"},
		{"fraction", "100%", "100%"},
		{"fraction", "1", "100%"},
		{"fraction", "0", "0%"},
		{"fraction", "12.5%", "12.5%"},
		{"fraction", "0.0000000001%", "0.0000000001%"},
	} {
		got, err := kinds[c.kind].parse(c.text)
		if err != nil {
			t.Errorf("%s %q: %v", c.kind, c.text, err)
			continue
		}
		if text, _ := got.MarshalText(); string(text) != c.want {
			t.Errorf("%s %q prints %q, want %q", c.kind, c.text, text, c.want)
		}
	}
}

// What cannot be read is printed all the same: in errors, and of differences.
func TestPrintBeyondTheRange(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{quantity.Duration(-5e6), "-5ms"},
		{quantity.Duration(math.MinInt64), "-2562047h47m16.854775808s"},
		{quantity.Size(-100_000), "-100KB"},
		{quantity.Size(-65536), "-64KiB"},
		{quantity.Size(-7), "-7B"},
		{quantity.Size(math.MinInt64), "-8589934592GiB"},
		{quantity.Rate(-2_500_000), "-2500kbit"},
		{quantity.Rate(math.MinInt64), "-9223372036854775808bit"},
		{quantity.Frequency(-0.5), "-0.5/s"},
		{quantity.Frequency(math.Inf(1)), "+Inf/s"},
		{quantity.Fraction(-0.1), "-10%"},
		{quantity.Fraction(-1), "-100%"},
		{quantity.Fraction(-0.001), "-0.1%"},
		{quantity.Fraction(-0.0625), "-6.25%"},
		{quantity.Fraction(-12.5), "-1250%"},
		{quantity.Fraction(2), "200%"},
		{quantity.Fraction(math.Copysign(0, -1)), "0%"},
		{quantity.Fraction(math.NaN()), "NaN%"},
		{quantity.Fraction(math.Inf(-1)), "-Inf%"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%T prints %q, want %q", c.value, got, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	if d, _ := quantity.ParseDuration("1.25ms"); d.Std().Microseconds() != 1250 {
		t.Errorf("1.25ms is %v", d.Std())
	}
	if s, _ := quantity.ParseSize("64KiB"); s != 65536 {
		t.Errorf("64KiB is %d bytes", int64(s))
	}
	if r, _ := quantity.ParseRate("1gbit"); r != 1e9 {
		t.Errorf("1gbit is %d bits per second", int64(r))
	}
	if f, _ := quantity.ParseFraction("0.08%"); f != 0.0008 {
		t.Errorf("0.08%% is %v", float64(f))
	}
}

func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		want       error
		says       string
	}{
		{"duration", "5", quantity.ErrUnit, `"5" is not a duration; write for example 5ms`},
		{"duration", "", quantity.ErrUnit, "not a duration"},
		{"duration", "5 ms", quantity.ErrUnit, "not a duration"},
		{"duration", "+5ms", quantity.ErrUnit, "not a duration"},
		{"duration", "-5ms", quantity.ErrRange, `"-5ms" is negative; a duration is 0 or more`},
		{"duration", "-0s", quantity.ErrRange, "negative"},
		{"duration", "3000000h", quantity.ErrRange, "too long"},
		{"size", "100", quantity.ErrUnit, `"100" is not a size; write for example 60B, 100KB or 64KiB`},
		{"size", "100kB", quantity.ErrUnit, "not a size"},
		{"size", "-1KB", quantity.ErrUnit, "not a size"},
		{"size", "NaNB", quantity.ErrUnit, "not a size"},
		{"size", "1e3B", quantity.ErrUnit, "not a size"},
		{"size", "0x1p4KB", quantity.ErrUnit, "not a size"},
		{"size", "InfGB", quantity.ErrUnit, "not a size"},
		{"size", "9223372036854775807KB", quantity.ErrRange, "too large"},
		{"size", "99999999999.5GB", quantity.ErrRange, "too large"},
		{"size", "0.4B", quantity.ErrRange, "less than one byte"},
		{"rate", "1g", quantity.ErrUnit, `"1g" is not a rate; write for example 100mbit or 1gbit`},
		{"rate", "1Gbit", quantity.ErrUnit, "not a rate"},
		{"rate", "0.1bit", quantity.ErrRange, "less than one bit"},
		{"frequency", "200", quantity.ErrUnit, `"200" is not a frequency; write for example 200/s or 0.5/s`},
		{"frequency", "200 /s", quantity.ErrUnit, "not a frequency"},
		{"frequency", "1e3/s", quantity.ErrUnit, "not a frequency"},
		{"frequency", "-1/s", quantity.ErrRange, `"-1/s" is negative; a frequency is 0 or more`},
		{"frequency", strings.Repeat("9", 400) + "/s", quantity.ErrRange, "too large"},
		{"fraction", "200%", quantity.ErrRange, `"200%" is more than 100%; a probability lies in 0% to 100%`},
		{"fraction", "2", quantity.ErrRange, "more than 100%"},
		{"fraction", "-1%", quantity.ErrRange, "negative"},
		{"fraction", "NaN", quantity.ErrUnit, "not a probability"},
		{"fraction", "%", quantity.ErrUnit, "not a probability"},
		{"fraction", "1e-3", quantity.ErrUnit, "not a probability"},
	} {
		_, err := kinds[c.kind].parse(c.text)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: got error %v, want %v that says %s", c.kind, c.text, err, c.want, c.says)
		}
	}
}

func TestErrorRepeatsLittleOfALongText(t *testing.T) {
	_, err := quantity.ParseSize(strings.Repeat("9", 1<<20))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("a megabyte of digits gives an error of %d bytes", len(err.Error()))
	}
}

func TestFlagKeepsItsValueWhenRefused(t *testing.T) {
	d := quantity.Duration(7)
	if err := d.Set("soon"); err == nil || d != 7 {
		t.Errorf("got %v and error %v, want 7ns and an error", d, err)
	}
	if err := d.Set("2s"); err != nil || d.String() != "2s" {
		t.Errorf("got %v and error %v, want 2s", d, err)
	}
}

// FuzzQuantity holds that what parses matches its pattern and survives its own
// text unchanged, and that a text that matches is refused for its range alone.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{
		"5ms", "1.25ms", "1m30s", "0", "-5ms", "3000000h", "9.5µs", "1h.5s", "60B", "100KB", "64KiB", "1.1GiB",
		"9007199254740993B", "1gbit", "0.4bit", "200/s", ".5/s", "0.08%", "0.0008", "100%", "7.1%", "1e-3%", "NaN%", "0x1p4B", "٣ms",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, kind := range kinds {
			v, err := kind.parse(s)
			matches := kind.pattern.MatchString(s)
			switch {
			case err == nil && !matches:
				t.Errorf("%s %q parses and does not match its pattern", name, s)
			case err != nil && matches && !errors.Is(err, quantity.ErrRange):
				t.Errorf("%s %q matches its pattern: %v", name, s, err)
			case err != nil && !errors.Is(err, quantity.ErrUnit) && !errors.Is(err, quantity.ErrRange):
				t.Errorf("%s %q: error of no kind: %v", name, s, err)
			}
			if err != nil {
				continue
			}
			text, _ := v.MarshalText()
			if again, err := kind.parse(string(text)); err != nil || again != v {
				t.Errorf("%s %q prints %q, which reads %v, %v", name, s, text, again, err)
			}
			if fraction, ok := v.(quantity.Fraction); ok && (fraction < 0 || fraction > 1 || math.Signbit(float64(fraction))) {
				t.Errorf("%q lies outside the probabilities: %v", s, float64(fraction))
			}
		}
	})
}
