package linkflag

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/impair"
)

func TestStages(t *testing.T) {
	for _, c := range []struct {
		text string
		want impair.Impairment
		err  string
	}{
		{text: "delay=5ms", want: impair.Impairment{Delay: 5e6}},
		{text: "delay=5ms,loss=1%", want: impair.Impairment{Delay: 5e6, Loss: 0.01}},
		{
			text: "burst=1%,25%,90%,delay=5ms", want: impair.Impairment{Delay: 5e6, Burst: impair.Burst{Enter: 0.01, Leave: 0.25, Loss: 0.9}},
		},
		{text: "delay=5ms,burst=1%,25%", want: impair.Impairment{Delay: 5e6, Burst: impair.Burst{Enter: 0.01, Leave: 0.25}}},
		{
			text: "delay=5ms,jitter=1ms,distribution=pareto,unordered=true,reorder=2%,duplicate=3%,corrupt=4%,rate=1mbit,queue=2KB",
			want: impair.Impairment{
				Delay: 5e6, Jitter: 1e6, Distribution: impair.Pareto, Unordered: true,
				Reorder: 0.02, Duplicate: 0.03, Corrupt: 0.04, Rate: 1e6, Queue: 2000,
			},
		},
		{text: "", err: `"" is no stage; write for example delay=5ms,loss=1%`},
		{text: "5ms", err: `"5ms" is no stage`},
		{text: "delay=5", err: `delay: "5" is not a duration; write for example 5ms`},
		{text: "dealy=5ms", err: `a stage has no key "dealy"; did you mean delay?`},
		{text: "delay=5ms,delay=6ms", err: `"delay=5ms,delay=6ms" names delay twice`},
		{text: "burst=1%", err: `burst: "1%" is no burst; write for example 1%,25%`},
		{text: "burst=1%,2%,3%,4%", err: `"1%,2%,3%,4%" is no burst`},
		{text: "burst=1%,25%,0%", err: "burst: a burst with loss 0% loses nothing; leave the loss out"},
		{text: "burst=1%,200%", err: `burst: "200%" is more than 100%`},
		{text: "unordered=perhaps", err: "unordered: "},
		{text: "loss=1%,", err: `loss: "1%," is not a probability`},
	} {
		got, err := parseStage(c.text)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		case c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err) && !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got error %v, want %q", c.text, err, c.err)
		}
	}
}

// What a file can say of a link the flags can, and by the same words.
func TestFlagsAreTheKeysOfAFile(t *testing.T) {
	var cmd cobra.Command
	Add(&cmd, new(impair.Impairment))
	described := reflect.TypeFor[impair.Impairment]()
	var keys []string
	for i := range described.NumField() {
		key, _, _ := strings.Cut(described.Field(i).Tag.Get("yaml"), ",")
		if key == "-" { // what a file of its own says
			continue
		}
		keys = append(keys, key)
		if cmd.Flags().Lookup(key) == nil {
			t.Errorf("no flag --%s", key)
		}
	}
	if !reflect.DeepEqual(keys, stageKeys()) {
		t.Errorf("keys %v, of a stage %v", keys, stageKeys())
	}
}

// format writes a stage as parseStage reads it.
func format(stage impair.Impairment) string {
	var cmd cobra.Command
	Add(&cmd, &stage)
	var zero cobra.Command
	Add(&zero, new(impair.Impairment))
	var items []string
	for _, key := range stageKeys() {
		if value := cmd.Flags().Lookup(key).Value.String(); value != zero.Flags().Lookup(key).Value.String() {
			items = append(items, key+"="+value)
		}
	}
	return strings.Join(items, ",")
}

// No value changes on the way through text.
func FuzzStage(f *testing.F) {
	for _, seed := range []string{"delay=5ms,loss=1%", "burst=1%,25%,90%,delay=5ms", "burst=0,0", "unordered=1", "unordered=1,distribution=a,b=", "loss=,", "=,="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stage, err := parseStage(text)
		if err != nil {
			return
		}
		written := format(stage)
		if written == "" {
			if stage != (impair.Impairment{}) {
				t.Errorf("%q: nothing is written of %+v", text, stage)
			}
			return
		}
		again, err := parseStage(written)
		if err != nil || again != stage {
			t.Errorf("%q is %+v, written %q, which is %+v, %v", text, stage, written, again, err)
		}
	})
}
