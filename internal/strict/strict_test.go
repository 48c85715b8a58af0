package strict_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/strict"
)

// ship has every shape that Decode knows.
type ship struct {
	Name   string            `yaml:"name"`
	Masts  uint8             `yaml:"masts,omitempty"`
	Draft  float32           `yaml:"draft,omitempty"`
	Afloat bool              `yaml:"afloat,omitempty"`
	Home   port              `yaml:"home,omitempty"`
	Crew   []sailor          `yaml:"crew,omitempty"`
	Flags  many[string]      `yaml:"flags,omitempty"`
	Cargo  map[string]int    `yaml:"cargo,omitempty"`
	Sister *ship             `yaml:"sister,omitempty"`
	Log    map[string]sailor `yaml:"log,omitempty"`
	hidden string            `yaml:"hidden"` //nolint:unused // it must stay unknown

	rigging `yaml:",inline"`
}

type rigging struct {
	Sails int `yaml:"sails,omitempty"`
}

type sailor struct {
	Name string `yaml:"name"`
	Age  int8   `yaml:"age,omitempty"`
}

type many[T any] []T

func (many[T]) OneOrMany() {}

// port reads upper case alone.
type port string

func (p *port) UnmarshalText(b []byte) error {
	if s := string(b); s != strings.ToUpper(s) {
		return explained{s}
	}
	*p = port(b)
	return nil
}

type explained struct{ text string }

func (e explained) Error() string { return "bad port" }

func (e explained) Explain() (message, hint string) {
	return fmt.Sprintf("port %q is not in capitals", e.text), "write " + strings.ToUpper(e.text)
}

const fleet = `# a ship
name: Erebus
masts: 3
draft: 4.5
afloat: true
home: CHATHAM
sails: 12
flags: ensign
cargo: {coal: 200, "lime juice": 9}
crew:
  - name: Franklin
    age: 59
  - {name: Crozier}
sister:
  name: "Terror"
  flags: [ensign, jack]
`

func TestDecode(t *testing.T) {
	var got ship
	doc, err := strict.Decode("fleet.yaml", []byte(fleet), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := ship{
		Name: "Erebus", Masts: 3, Draft: 4.5, Afloat: true, Home: "CHATHAM", Flags: many[string]{"ensign"},
		Cargo: map[string]int{"coal": 200, "lime juice": 9}, rigging: rigging{Sails: 12},
		Crew:   []sailor{{Name: "Franklin", Age: 59}, {Name: "Crozier"}},
		Sister: &ship{Name: "Terror", Flags: many[string]{"ensign", "jack"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for path, want := range map[string]string{
		"name":                  "2:7",
		"flags":                 "8:8",
		"flags[0]":              "8:8",
		"cargo.coal":            "9:15",
		`cargo["lime juice"]`:   "9:34",
		"crew":                  "10:1",
		"crew[0].age":           "12:10",
		"crew[1]":               "13:5",
		"crew[1].age":           "13:5", // absent: what surrounds it
		"sister":                "14:1",
		"sister.flags[1]":       "16:19",
		"sister.crew[3].name":   "14:1",
		"nothing.of.the[1].way": "2:1",
	} {
		if line, column := doc.At(path); fmt.Sprintf("%d:%d", line, column) != want {
			t.Errorf("%s stands at %d:%d, want %s", path, line, column, want)
		}
	}
	if !doc.Has("crew[0].age") || doc.Has("crew[1].age") {
		t.Error("the second of the crew has an age, or the first has none")
	}
	if got, want := doc.Errorf("crew[0].age", "retire", "%d is old", 59).Error(), "fleet.yaml:12:10: 59 is old\nhint: retire"; got != want {
		t.Errorf("got error %q, want %q", got, want)
	}
}

func TestRefuse(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"unknown key", "name: a\nmats: 3\n", "f:2:1: unknown key \"mats\"\nhint: did you mean masts?"},
		{"unexported field", "name: a\nhidden: b\n", "f:2:1: unknown key \"hidden\"\nhint: there are name, masts, draft, afloat, home, crew, flags, cargo, sister, log, sails"},
		{"missing key", "masts: 3\n", "f:1:1: the key \"name\" is missing\nhint: add name: to it"},
		{"misspelt required key", "nane: a\n", "f:1:1: unknown key \"nane\"\nhint: did you mean name?"},
		{"missing key below", "name: a\ncrew:\n  - age: 3\n", "f:3:5: the key \"name\" is missing in crew[0]\nhint: add name: to it"},
		{"duplicate key", "name: a\nname: b\n", "f:2:1: duplicate key \"name\"\nhint: it stands on line 1 already; keep one of the two"},
		{"duplicate map key", "name: a\ncargo: {tea: 1, tea: 2}\n", "f:2:17: duplicate key \"tea\"\nhint: it stands on line 2 already; keep one of the two"},
		{"no value", "name:\n", "f:1:1: there is no value\nhint: write a value, or remove the key"},
		{"number for text", "name: 10\n", "f:1:7: text is wanted here, not \"10\"\nhint: put it in quotes: \"10\""},
		{"text for number", "name: a\nmasts: three\n", "f:2:8: a whole number is wanted here, not \"three\"\nhint: write digits, for example 3"},
		{"quoted number", "name: a\nmasts: \"3\"\n", "f:2:8: a whole number is wanted here, not \"3\"\nhint: remove the quotes"},
		{"octal or not", "name: a\nmasts: 010\n", "f:2:8: a whole number is wanted here, not \"010\"\nhint: write digits, for example 3"},
		{"too many", "name: a\nmasts: 256\n", "f:2:8: \"256\" is out of range\nhint: 0 to 255 are possible"},
		{"negative", "name: a\nmasts: -1\n", "f:2:8: \"-1\" is out of range\nhint: 0 to 255 are possible"},
		{"too old", "name: a\ncrew: [{name: b, age: -129}]\n", "f:2:23: \"-129\" is out of range\nhint: -128 to 127 are possible"},
		{"beyond 64 bits", "name: a\nsails: 9223372036854775808\n", "f:2:8: \"9223372036854775808\" is out of range\nhint: -9223372036854775808 to 9223372036854775807 are possible"},
		{"infinite", "name: a\ndraft: .inf\n", "f:2:8: \".inf\" is no finite number\nhint: write digits, for example 0.5"},
		{"yes", "name: a\nafloat: yes\n", "f:2:9: true or false is wanted here, not \"yes\"\nhint: write true or false"},
		{"unmarshaler", "name: a\nhome: hull\n", "f:2:7: port \"hull\" is not in capitals\nhint: write HULL"},
		{"long text", "name: a\nhome: " + strings.Repeat("A", 257) + "\n", "f:2:7: the text is too long\nhint: 256 bytes are the most here"},
		{"list for one", "name: [a, b]\n", "f:1:7: text is wanted here, not a list\nhint: write one value, without brackets or lines below"},
		{"one for list", "name: a\ncrew: Franklin\n", "f:2:7: a list is wanted here, not \"Franklin\"\nhint: write [VALUE, VALUE], or one value a line after -"},
		{"word for mapping", "name: a\nlog: wet\n", "f:2:6: a mapping is wanted here, not \"wet\"\nhint: write KEY: VALUE"},
		{"list for struct", "- name\n", "f:1:1: a mapping is wanted here, not a list\nhint: the keys are name, masts, draft, afloat, home, crew, flags, cargo, sister, log, sails"},
		{"key that is a list", "name: a\n? [b]\n: c\n", "f:2:3: a key is a word, not a list\nhint: write KEY: VALUE"},
		{"anchor", "name: &a b\n", "f:1:7: anchors and aliases are not supported\nhint: write the value out, or put the text in quotes"},
		{"unknown alias", "name: a\nhome: *b\n", "f:2:7: anchors and aliases are not supported\nhint: write the value out, or put the text in quotes"},
		{"merge key", "name: a\n<<: {masts: 3}\n", "f:2:1: merge keys are not supported\nhint: write the keys out"},
		{"tag", "name: !!binary a\n", "f:1:7: tags such as \"!!binary\" are not supported\nhint: remove the tag"},
		{"second document", "name: a\n---\nname: b\n", "f:2:1: a second document begins here\nhint: keep one document in a file: remove the line ---, or move what follows to its own file"},
		{"tab", "name: a\nhome:\n\tA\n", "f:3:2: a tab indents this line\nhint: indent with spaces; YAML has no tabs"},
		{"open bracket", "name: a\nflags: [b\n", "f:2:1: a list that opens with [ is not closed\nhint: write ] at its end, and commas between its values"},
		{"misplaced line", "name: a\n\nhome: A\nlog:\n    b:\n      name: c\n   d: e\nsails: 3\n", "f:7:4: this line fits neither the list nor the mapping before it\nhint: check the indentation of this line and the next"},
		{"key in a list", "name: a\ncrew:\n  - name: b\n  age: 3\n", "f:4:3: a key stands among the values of a list\nhint: begin the line with - or check the indentation"},
		{"colon in text", "name: a\nhome: A: B\n", "f:2:1: a key is not expected here\nhint: check the indentation; put text that holds \": \" in quotes"},
		{"open brace", "name: a\ncargo: {tea: 1\n", "f:2:1: a mapping that opens with { is not closed\nhint: write } at its end, and commas between its keys"},
		{"at sign", "name: @a\n", "f:1:1: a value cannot begin with this character\nhint: put the text in quotes"},
		{"key without colon", "name: a\nhome\nsails: 3\n", "f:2:1: a key has no colon\nhint: write KEY: VALUE"},
		{"odd directive", "%YAML 9\n---\nname: a\n", "f:1:1: this is not YAML: did not find expected digit or '.' character\nhint: check the indentation, the quotes and the brackets of this line"},
		{"open quotes", "name: \"a\n", "f:1:1: the file ends inside a quoted text\nhint: close the quotes"},
		{"NUL", "name: a\x00b\n", "f:1:8: this is no text: byte 0x00\nhint: a YAML file is UTF-8 text; save it as such"},
		{"Latin-1", "name: a\nhome: K\xd8BENHAVN\n", "f:2:8: this is no text: byte 0xd8\nhint: a YAML file is UTF-8 text; save it as such"},
		{"empty", "\n# nothing\n", "f:1:1: the file is empty\nhint: the keys are name, masts, draft, afloat, home, crew, flags, cargo, sister, log, sails"},
		{"empty document", "---\n", "f:1:1: the file is empty\nhint: the keys are name, masts, draft, afloat, home, crew, flags, cargo, sister, log, sails"},
		{"too large", strings.Repeat("#", 1<<20+1), "f:1:1: the file has 1048577 bytes, the most is 1048576\nhint: is this the right file?"},
		{"two at once, in order", "mats: 3\nname: 7\n", "f:1:1: unknown key \"mats\"\nhint: did you mean masts?\nf:2:7: text is wanted here, not \"7\"\nhint: put it in quotes: \"7\""},
	} {
		_, err := strict.Decode("f", []byte(c.yaml), new(ship))
		if err == nil {
			t.Errorf("%s: no error", c.name)
		} else if err.Error() != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, c.want)
		}
	}
}

func TestNestingBound(t *testing.T) {
	for _, depth := range []int{65, 9_000, 200_000} {
		_, err := strict.Decode("f", []byte("name: a\nflags: "+strings.Repeat("[", depth)+strings.Repeat("]", depth)), new(ship))
		if err == nil || !strings.Contains(err.Error(), "the values are nested too deeply\nhint: 64 levels are the most") {
			t.Errorf("%d levels: got error %v", depth, err)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := strict.Decode("f", []byte("name: a\n"+strings.Repeat("? []\n: b\n", 50_000)), new(ship))
	var all *strict.Errors
	if !errors.As(err, &all) || len(all.List) != 20 || all.Dropped != 49_980 {
		t.Fatalf("got %d errors and %d dropped, want 20 and 49980", len(all.List), all.Dropped)
	}
	if !strings.HasSuffix(err.Error(), "\nand 49980 more errors") {
		t.Errorf("the last line is not the count of the rest: %q", err.Error()[len(err.Error())-40:])
	}
	var first *strict.Error
	if !errors.As(err, &first) || first.Line != 2 {
		t.Errorf("the first error is %v, want one of line 2", first)
	}
}

func TestDecodeIntoTheWrongTypePanics(t *testing.T) {
	for _, into := range []any{nil, ship{}, new(int), (*ship)(nil)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("decoding into %T did not panic", into)
				}
			}()
			_, _ = strict.Decode("f", []byte("name: a\n"), into)
		}()
	}
}

func TestErrorsKeepEscapeCodesFromTheTerminal(t *testing.T) {
	var s ship
	doc, err := strict.Decode("f", []byte(`name: "a\e[31m\nb"`), &s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := doc.Errorf("name", s.Name, "%s is a bad name", s.Name).Error(), "f:1:7: a\ufffd[31m\ufffdb is a bad name\nhint: a\ufffd[31m\ufffdb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestZeroDocument(t *testing.T) {
	var doc strict.Document
	if got := doc.Errorf("a[0].b", "", "bad").Error(); got != ":1:1: bad" {
		t.Errorf("got %q", got)
	}
}

// FuzzDecode holds that no file panics, that every error has a place inside the
// file and is one line with at most one hint, and that decoding is repeatable.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		fleet, "", "name: a", "a: &a [*a, *a]", "<<: {}", "name: a\n---\n", "\tname: a", "name: !!str a", "? {a: b}\n: c",
		"name: |\n  a\n  b\n", "{name: a, crew: [{name: b}, {age: 300}]}", strings.Repeat("[", 100), "%YAML 1.1\n---\nname: 'x'", "name: \"\\x41\\u263a\"",
		"cargo: {~: 1}", "name: a\r\nmasts: 3\r\n", "\ufeffname: a", "# c\n\n# d\n- e # f\n\n# g\n", "a:\n- b\n  # c\n-\n", "log: {a: {name: b}, a: {}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again ship
		_, err := strict.Decode("f", data, &got)
		_, err2 := strict.Decode("f", data, &again)
		if !reflect.DeepEqual(got, again) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("two readings differ: %v, %v", err, err2)
		}
		if err == nil {
			return
		}
		var all *strict.Errors
		if !errors.As(err, &all) || len(all.List) > 20 {
			t.Fatalf("not at most 20 errors: %v", err)
		}
		lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r") +
			strings.Count(string(data), "\u0085") + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029")
		for _, e := range all.List {
			if e.Line < 1 || e.Line > lines || e.Column < 1 || strings.ContainsAny(e.Message+e.Hint, "\n\r") || e.Message == "" {
				t.Errorf("bad error in a file of %d lines: %q", lines, e)
			}
		}
	})
}
