// Package strict reads one YAML document into Go types and takes nothing for
// granted: unknown, missing and duplicate keys, anchors, aliases, merge keys,
// tags, null, a second document and values of another type are errors, each
// with its place in the file and a hint. It keeps the place of every value, so
// that the caller's own checks can point as well. It knows nothing of what the
// values mean and never writes YAML. Start at Decode.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	bytesMax = 1 << 20
	depthMax = 64
)

// OneOrMany marks a slice type that reads a single value as a list of one.
type OneOrMany interface{ OneOrMany() }

// Document remembers where the values of a file stand. The zero Document
// belongs to values that no file holds.
type Document struct {
	file   string
	places map[string]place
}

// place counts from 1; columns are characters.
type place struct{ line, column int }

// Decode reads the YAML document in data into the struct that into points to.
// The file's name is for errors only; they are of type *Errors, in the order of
// the file. The destination decides what is valid:
//
//   - a struct is a mapping with the keys of its `yaml:"name"` tags; those
//     without omitempty must be there; `yaml:",inline"` embeds a struct;
//   - a slice is a sequence, or where it is OneOrMany also a single value;
//   - a map has strings for keys;
//   - an encoding.TextUnmarshaler reads the text of any scalar; if its error
//     has a method Explain() (message, hint string), that is what is printed;
//   - strings, bools, integers and floats read scalars of their own kind: a
//     string that looks like a number needs quotes.
//
// A destination of any other shape is a mistake of the program and panics.
func Decode(file string, data []byte, into any) (*Document, error) {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("strict: cannot decode into %T", into))
	}
	d := &decoder{
		doc:    &Document{file: file, places: map[string]place{}},
		errors: &Errors{},
	}
	if err := checkText(file, data); err != nil {
		d.errors.Add(err)
		return d.doc, d.errors
	}
	root, err := parse(file, data)
	if err != nil {
		d.errors.Add(err)
		return d.doc, d.errors
	}
	if root == nil {
		d.errors.Add(&Error{
			File: file, Line: 1, Column: 1,
			Message: "the file is empty", Hint: keysHint(fieldsOf(target.Elem().Type())),
		})
		return d.doc, d.errors
	}
	// What the vetting refuses would make the rest of the errors nonsense.
	if d.vet(root, 0); d.errors.Err() == nil {
		d.value("", root, target.Elem())
	}
	return d.doc, d.errors.Err()
}

// At is the place of the value at a path such as "scenarios[0].links[1].delay",
// or where the file has no such value, of what surrounds it; line and column
// count from 1. A key of a map that is not a plain word is written ["quoted"].
func (d *Document) At(path string) (line, column int) {
	for {
		if p, ok := d.places[path]; ok {
			return p.line, p.column
		}
		if path == "" {
			return 1, 1
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Has says whether the file has a value at a path, be it the zero one.
func (d *Document) Has(path string) bool {
	_, has := d.places[path]
	return has
}

// Errorf makes an error about the value at a path; the hint says what to do and
// may be empty.
func (d *Document) Errorf(path, hint, format string, args ...any) *Error {
	line, column := d.At(path)
	return &Error{File: d.file, Line: line, Column: column, Message: printable(fmt.Sprintf(format, args...)), Hint: printable(hint)}
}

// checkText refuses what is too large, or no text, before the parser sees it.
func checkText(file string, data []byte) *Error {
	if len(data) > bytesMax {
		return &Error{
			File: file, Line: 1, Column: 1,
			Message: fmt.Sprintf("the file has %d bytes, the most is %d", len(data), bytesMax),
			Hint:    "is this the right file?",
		}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		invalid := r == utf8.RuneError && size == 1
		if invalid || (unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r)) {
			p := placeOf(data, i)
			return &Error{
				File: file, Line: p.line, Column: p.column,
				Message: fmt.Sprintf("this is no text: byte 0x%02x", data[i]),
				Hint:    "a YAML file is UTF-8 text; save it as such",
			}
		}
		i += size
	}
	return nil
}

func placeOf(data []byte, offset int) place {
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	return place{
		line:   1 + bytes.Count(data[:offset], []byte("\n")),
		column: 1 + utf8.RuneCount(data[start:offset]),
	}
}

// parse gives the root of the only document, nil where there is none.
func parse(file string, data []byte) (*yaml.Node, *Error) {
	first, second, err := documents(data)
	switch {
	case err != nil:
		return nil, syntaxError(file, data, err)
	case first == nil:
		return nil, nil
	case second != nil:
		return nil, &Error{
			File: file, Line: second.Line, Column: second.Column,
			Message: "a second document begins here",
			Hint:    "keep one document in a file: remove the line ---, or move what follows to its own file",
		}
	}
	root := first.Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Anchor == "" {
		return nil, nil
	}
	return root, nil
}

// documents parses up to two documents. It turns the parser's panics ("please
// report") into errors: no file may stop a program.
func documents(data []byte) (first, second *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			first, second, err = nil, nil, fmt.Errorf("%v", p)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for _, into := range []**yaml.Node{&first, &second} {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		*into = &node
	}
	return first, second, nil
}
