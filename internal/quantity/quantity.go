// Package quantity holds the units that people write in Skerry's files and
// flags: durations, sizes, rates, frequencies and probabilities. Every type reads itself
// from text (encoding.TextUnmarshaler) and prints what it would read: no value
// changes on the way through text. It does no arithmetic beyond conversion;
// start reading at the Parse functions.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// What can be wrong with a quantity.
var (
	// ErrUnit is wrapped for a text that is no number with a known unit.
	ErrUnit = errors.New("bad unit")
	// ErrRange is wrapped for a quantity that is negative, too large or too small.
	ErrRange = errors.New("out of range")
)

// Error says what is wrong with a text and what to write instead.
type Error struct {
	// Kind is ErrUnit or ErrRange.
	Kind error
	// Message holds the text; Hint shows good ones.
	Message, Hint string
}

// Error prints the message and the hint on one line.
func (e *Error) Error() string { return e.Message + "; " + e.Hint }

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Explain gives the message and the hint apart.
func (e *Error) Explain() (message, hint string) { return e.Message, e.Hint }

// Patterns that the texts match, as ECMA 262 regular expressions for JSON
// Schema. What matches and does not parse is out of range.
const (
	DurationPattern  = `^(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	SizePattern      = `^([0-9]+\.?[0-9]*|\.[0-9]+)(B|KB|MB|GB|KiB|MiB|GiB)$`
	RatePattern      = `^([0-9]+\.?[0-9]*|\.[0-9]+)(bit|kbit|mbit|gbit)$`
	FrequencyPattern = `^([0-9]+\.?[0-9]*|\.[0-9]+)/s$`
	FractionPattern  = `^([0-9]+\.?[0-9]*|\.[0-9]+)%?$`
)

// Duration is a time.Duration that reads "5ms", "1.25ms", "1m30s"; never negative.
type Duration time.Duration

// Size is a number of bytes that reads "60B", "100KB" (1000), "64KiB" (1024).
type Size int64

// Rate is bits per second that reads "100mbit", "1gbit", "500kbit", as tc(8)
// writes them: decimal prefixes.
type Rate int64

// Frequency is events per second that reads "200/s" or "0.5/s"; never negative.
type Frequency float64

// Fraction is a probability in [0, 1] that reads "0.08%" or "0.0008".
type Fraction float64

var sizeUnits = []unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

var rateUnits = []unit{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}

type unit struct {
	name   string
	factor int64
}

const (
	hintDuration  = "write for example 5ms, 250us or 1m30s"
	hintSize      = "write for example 60B, 100KB or 64KiB"
	hintRate      = "write for example 100mbit or 1gbit"
	hintFrequency = "write for example 200/s or 0.5/s"
	hintFraction  = "write for example 0.1% or 0.001"
)

// ParseDuration reads a duration such as "5ms".
func ParseDuration(s string) (Duration, error) {
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	switch {
	case strings.HasPrefix(s, "-") && err == nil:
		return 0, wrong(ErrRange, s, "is negative", "a duration is 0 or more")
	case err != nil && matchesDuration(s):
		return 0, wrong(ErrRange, s, "is too long", "a duration is at most 290 years")
	case err != nil || strings.HasPrefix(s, "+"):
		return 0, wrong(ErrUnit, s, "is not a duration", hintDuration)
	}
	return Duration(d), nil
}

// ParseSize reads a number of bytes such as "100KB".
func ParseSize(s string) (Size, error) {
	v, err := parse(s, sizeUnits)
	switch {
	case errors.Is(err, ErrRange):
		return 0, wrong(ErrRange, s, "is too large, or less than one byte", hintSize)
	case err != nil:
		return 0, wrong(ErrUnit, s, "is not a size", hintSize)
	}
	return Size(v), nil
}

// ParseRate reads bits per second such as "1gbit".
func ParseRate(s string) (Rate, error) {
	v, err := parse(s, rateUnits)
	switch {
	case errors.Is(err, ErrRange):
		return 0, wrong(ErrRange, s, "is too large, or less than one bit per second", hintRate)
	case err != nil:
		return 0, wrong(ErrUnit, s, "is not a rate", hintRate)
	}
	return Rate(v), nil
}

// ParseFrequency reads events per second such as "200/s".
func ParseFrequency(s string) (Frequency, error) {
	text, ok := strings.CutSuffix(s, "/s")
	if number, negative := strings.CutPrefix(text, "-"); ok && negative && isDecimal(number) {
		return 0, wrong(ErrRange, s, "is negative", "a frequency is 0 or more")
	}
	if !ok || !isDecimal(text) {
		return 0, wrong(ErrUnit, s, "is not a frequency", hintFrequency)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, wrong(ErrRange, s, "is too large", hintFrequency)
	}
	return Frequency(v), nil
}

// ParseFraction reads a probability such as "0.08%".
func ParseFraction(s string) (Fraction, error) {
	text, percent := strings.CutSuffix(s, "%")
	if number, negative := strings.CutPrefix(text, "-"); negative && isDecimal(number) {
		return 0, wrong(ErrRange, s, "is negative", "a probability lies in 0% to 100%")
	}
	if !isDecimal(text) {
		return 0, wrong(ErrUnit, s, "is not a probability", hintFraction)
	}
	if percent {
		text += "e-2" // exact, where a division by 100 would round once more
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > 1 {
		return 0, wrong(ErrRange, s, "is more than 100%", "a probability lies in 0% to 100%")
	}
	return Fraction(v), nil
}

// quotedMax bounds how much of a bad text an error repeats, in bytes.
const quotedMax = 60

func wrong(kind error, text, problem, hint string) error {
	if len(text) > quotedMax {
		text = text[:quotedMax] + "..."
	}
	return &Error{Kind: kind, Message: fmt.Sprintf("%q %s", text, problem), Hint: hint}
}

// matchesDuration reports the syntax of a duration that time.ParseDuration
// refused: only its range can be wrong then.
func matchesDuration(s string) bool {
	parts := 0
	for s != "" {
		digits := strings.TrimLeft(s, "0123456789.")
		word := strings.TrimLeft(digits, "nuµμmsh")
		switch digits[:len(digits)-len(word)] {
		case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
		default:
			return false
		}
		if !isDecimal(s[:len(s)-len(digits)]) {
			return false
		}
		s, parts = word, parts+1
	}
	return parts > 0
}

// isDecimal reports digits with at most one point among them: no sign, no
// exponent, no hexadecimal, no infinity, which strconv would read as well.
func isDecimal(s string) bool {
	whole, part, _ := strings.Cut(s, ".")
	digits := whole + part
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// parse reads a decimal and its unit. Whole numbers never pass through floating
// point; others round to the nearest whole unit.
func parse(s string, units []unit) (int64, error) {
	for _, u := range units {
		text, ok := strings.CutSuffix(s, u.name)
		if !ok || !isDecimal(text) {
			continue
		}
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			if v > math.MaxInt64/u.factor {
				return 0, ErrRange
			}
			return v * u.factor, nil
		}
		v, err := strconv.ParseFloat(text, 64)
		rounded := math.Round(v * float64(u.factor))
		if err != nil || rounded >= math.MaxInt64 || (v > 0 && rounded == 0) {
			return 0, ErrRange
		}
		return int64(rounded), nil
	}
	return 0, ErrUnit
}

// format prints v in the largest unit that keeps it whole.
func format(v int64, units []unit) string {
	best := units[len(units)-1]
	for _, u := range units {
		if v != 0 && v%u.factor == 0 && u.factor > best.factor {
			best = u
		}
	}
	return strconv.FormatInt(v/best.factor, 10) + best.name
}

// Std is the same span of time as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String prints the duration as it would be read.
func (d Duration) String() string { return time.Duration(d).String() }

// String prints the size as it would be read.
func (s Size) String() string { return format(int64(s), sizeUnits) }

// String prints the rate as it would be read.
func (r Rate) String() string { return format(int64(r), rateUnits) }

// String prints the frequency as it would be read, every digit of it.
func (f Frequency) String() string { return strconv.FormatFloat(float64(f), 'f', -1, 64) + "/s" }

// String prints the probability as a percentage, every digit of it. What is none,
// such as the difference of two, prints as well.
func (f Fraction) String() string {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v) + "%"
	}
	text := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
	// The point moves in the text: times 100 would round, and read back as
	// another value.
	whole, part, _ := strings.Cut(text, ".")
	part += strings.Repeat("0", max(0, 2-len(part)))
	percent := strings.TrimLeft(whole+part[:2], "0")
	if percent == "" {
		percent = "0"
	}
	if part[2:] != "" {
		percent += "." + part[2:]
	}
	if v < 0 {
		percent = "-" + percent
	}
	return percent + "%"
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error { return set(d, ParseDuration, b) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error { return set(s, ParseSize, b) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(b []byte) error { return set(r, ParseRate, b) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Frequency) UnmarshalText(b []byte) error { return set(f, ParseFrequency, b) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Fraction) UnmarshalText(b []byte) error { return set(f, ParseFraction, b) }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (f Frequency) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (f Fraction) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Set implements pflag.Value, so that flags read what files read.
func (d *Duration) Set(s string) error { return d.UnmarshalText([]byte(s)) }

// Set implements pflag.Value.
func (s *Size) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// Set implements pflag.Value.
func (r *Rate) Set(s string) error { return r.UnmarshalText([]byte(s)) }

// Set implements pflag.Value.
func (f *Frequency) Set(s string) error { return f.UnmarshalText([]byte(s)) }

// Set implements pflag.Value.
func (f *Fraction) Set(s string) error { return f.UnmarshalText([]byte(s)) }

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

// Type implements pflag.Value.
func (s *Size) Type() string { return "size" }

// Type implements pflag.Value.
func (r *Rate) Type() string { return "rate" }

// Type implements pflag.Value.
func (f *Frequency) Type() string { return "frequency" }

// Type implements pflag.Value.
func (f *Fraction) Type() string { return "percent" }

func set[T any](dst *T, read func(string) (T, error), b []byte) error {
	v, err := read(string(b))
	if err != nil {
		return err
	}
	*dst = v
	return nil
}
