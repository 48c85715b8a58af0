package strict

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"skerry.dev/skerry/internal/nearest"
)

// Bounds of what one scalar may hold and an error may repeat, in bytes.
const (
	textMax  = 256 // for a TextUnmarshaler: a quantity, a name
	quoteMax = 60
)

// oneHint is where several values stand for one.
const oneHint = "write one value, without brackets or lines below"

// decoder walks the nodes of a document beside the type that they go to.
type decoder struct {
	doc    *Document
	errors *Errors
}

func (d *decoder) failAt(n *yaml.Node, hint, format string, args ...any) {
	d.errors.Add(&Error{
		File: d.doc.file, Line: max(n.Line, 1), Column: max(n.Column, 1),
		Message: printable(fmt.Sprintf(format, args...)), Hint: printable(hint),
	})
}

// vet refuses the parts of YAML that make a file mean more than it shows.
func (d *decoder) vet(n *yaml.Node, depth int) {
	switch {
	case depth > depthMax:
		d.failAt(n, fmt.Sprintf("%d levels are the most", depthMax), "the values are nested too deeply")
		return
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.failAt(n, "write the value out, or put the text in quotes", "anchors and aliases are not supported")
		return
	case n.Style&yaml.TaggedStyle != 0:
		d.failAt(n, "remove the tag", "tags such as %s are not supported", quote(n.Tag))
		return
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Tag == "!!merge" {
			d.failAt(child, "write the keys out", "merge keys are not supported")
		}
		d.vet(child, depth+1)
	}
}

// value decodes a node into v, which is settable. Where it cannot, v keeps its
// zero value and an error is collected.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	if _, ok := d.doc.places[path]; !ok {
		d.doc.places[path] = place{line: n.Line, column: n.Column}
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.failAt(d.keyOf(path, n), "write a value, or remove the key", "there is no value")
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, u)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.Slice:
		d.sequence(path, n, v)
	default:
		d.scalar(n, v)
	}
}

// keyOf is a node at the recorded place of a path: of the key, where a block
// stands below one.
func (d *decoder) keyOf(path string, n *yaml.Node) *yaml.Node {
	p := d.doc.places[path]
	return &yaml.Node{Line: max(p.line, 1), Column: max(p.column, 1), Kind: n.Kind}
}

func (d *decoder) structure(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.failAt(n, keysHint(fieldsOf(v.Type())), "a mapping is wanted here, not %s", kindOf(n))
		return
	}
	fields := fieldsOf(v.Type())
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	meant := map[string]bool{} // by an unknown key: one error is enough
	seen := d.entries(path, n, func(key, value *yaml.Node) {
		i := slices.Index(known, key.Value)
		if i < 0 {
			if word, ok := nearest.Word(key.Value, known); ok {
				meant[word] = true
			}
			d.failAt(key, nearest.Hint(key.Value, known), "unknown key %s", quote(key.Value))
			return
		}
		d.value(join(path, key.Value), value, v.FieldByIndex(fields[i].index))
	})
	for _, f := range fields {
		if f.required && seen[f.name] == 0 && !meant[f.name] {
			d.failAt(d.keyOf(path, n), fmt.Sprintf("add %s: to it", f.name), "the key %q is missing%s", f.name, inside(path))
		}
	}
}

func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		panic("strict: cannot decode into " + t.String())
	}
	if n.Kind != yaml.MappingNode {
		d.failAt(n, "write KEY: VALUE", "a mapping is wanted here, not %s", kindOf(n))
		return
	}
	v.Set(reflect.MakeMap(t))
	d.entries(path, n, func(key, value *yaml.Node) {
		element := reflect.New(t.Elem()).Elem()
		d.value(join(path, key.Value), value, element)
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(t.Key()), element)
	})
}

// entries calls each for the first of every key and records the key's place
// where its value is a block below it. It returns the keys and their lines.
func (d *decoder) entries(path string, n *yaml.Node, each func(key, value *yaml.Node)) map[string]int {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.failAt(key, "write KEY: VALUE", "a key is a word, not %s", kindOf(key))
			continue
		}
		if line, twice := lines[key.Value]; twice {
			d.failAt(key, fmt.Sprintf("it stands on line %d already; keep one of the two", line), "duplicate key %s", quote(key.Value))
			continue
		}
		lines[key.Value] = key.Line
		if block(value) {
			d.doc.places[join(path, key.Value)] = place{line: key.Line, column: key.Column}
		}
		each(key, value)
	}
	return lines
}

// block reports a value that begins on a line below its key, or not at all.
func block(n *yaml.Node) bool {
	return n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 || n.Tag == "!!null"
}

func (d *decoder) sequence(path string, n *yaml.Node, v reflect.Value) {
	items := n.Content
	if n.Kind != yaml.SequenceNode {
		if _, ok := v.Interface().(OneOrMany); !ok {
			d.failAt(n, "write [VALUE, VALUE], or one value a line after -", "a list is wanted here, not %s", kindOf(n))
			return
		}
		items = []*yaml.Node{n}
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		d.value(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
	}
}

func (d *decoder) text(n *yaml.Node, into encoding.TextUnmarshaler) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.failAt(n, oneHint, "a single value is wanted here, not %s", kindOf(n))
		return
	case len(n.Value) > textMax:
		d.failAt(n, fmt.Sprintf("%d bytes are the most here", textMax), "the text is too long")
		return
	}
	err := into.UnmarshalText([]byte(n.Value))
	if err == nil {
		return
	}
	var explained interface{ Explain() (message, hint string) }
	if errors.As(err, &explained) {
		message, hint := explained.Explain()
		d.failAt(n, hint, "%s", message)
		return
	}
	d.failAt(n, "", "%s", strings.ReplaceAll(err.Error(), "\n", " "))
}

// integer is a whole number in the only spelling that every YAML reads alike:
// 010 is 8 to some and 10 to others.
var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (d *decoder) scalar(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.failAt(n, oneHint, "%s is wanted here, not %s", nameOf(v.Kind()), kindOf(n))
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.String && n.Tag == "!!str":
		v.SetString(n.Value)
	case kind == reflect.Bool && n.Tag == "!!bool":
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case v.CanInt() && n.Tag == "!!int" && integer.MatchString(n.Value):
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || v.OverflowInt(i) {
			most := int64(math.MaxInt64) >> (64 - v.Type().Bits())
			d.failAt(n, fmt.Sprintf("%d to %d are possible", -most-1, most), "%s is out of range", quote(n.Value))
			return
		}
		v.SetInt(i)
	case v.CanUint() && n.Tag == "!!int" && integer.MatchString(n.Value):
		i, err := strconv.ParseUint(n.Value, 10, 64)
		if err != nil || v.OverflowUint(i) {
			d.failAt(n, fmt.Sprintf("0 to %d are possible", uint64(math.MaxUint64)>>(64-v.Type().Bits())), "%s is out of range", quote(n.Value))
			return
		}
		v.SetUint(i)
	case v.CanFloat() && (n.Tag == "!!float" || n.Tag == "!!int"):
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || v.OverflowFloat(f) {
			d.failAt(n, "write digits, for example 0.5", "%s is no finite number", quote(n.Value))
			return
		}
		v.SetFloat(f)
	default:
		d.mismatch(n, v.Kind())
	}
}

// mismatch says that a scalar is of another type than the one wanted.
func (d *decoder) mismatch(n *yaml.Node, want reflect.Kind) {
	hint := "write digits, for example 3"
	switch {
	case want == reflect.String:
		hint = fmt.Sprintf("put it in quotes: %q", clip(n.Value))
	case want == reflect.Bool:
		hint = "write true or false"
	case n.Tag == "!!str" && integer.MatchString(n.Value):
		hint = "remove the quotes"
	}
	d.failAt(n, hint, "%s is wanted here, not %s", nameOf(want), quote(n.Value))
}

// nameOf words the kind of a scalar destination.
func nameOf(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	}
	panic("strict: cannot decode into a " + k.String())
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return quote(n.Value)
}

// field is one key of a struct; index leads to it through inlined structs.
type field struct {
	name     string
	index    []int
	required bool
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case name != "" && name != "-" && f.IsExported():
			fields = append(fields, field{name: name, index: []int{i}, required: options != "omitempty"})
		}
	}
	return fields
}

func keysHint(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return "the keys are " + strings.Join(names, ", ")
}

func join(path, key string) string {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || key == "" {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func inside(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// printable keeps a file's escape codes from the terminal that shows the error.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func quote(text string) string { return strconv.Quote(clip(text)) }

func clip(text string) string {
	if len(text) > quoteMax {
		return text[:quoteMax] + "..."
	}
	return text
}
