package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

const module = "skerry.dev/skerry"

// refPattern is CLUSTER or CLUSTER/NODE; see topology.IsName.
const refPattern = `^[a-z]([a-z0-9-]{0,13}[a-z0-9])?(/[a-z]([a-z0-9-]{0,13}[a-z0-9])?)?$`

// Schema is the JSON Schema (2020-12) of the experiment file, made from the
// types of this package and the comments on them. It needs the sources:
// sourceDir is the root of the module.
func Schema(sourceDir string) ([]byte, error) {
	comments, err := readComments(sourceDir)
	if err != nil {
		return nil, fmt.Errorf("read comments: %w", err)
	}
	r := jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, FieldNameTag: "yaml",
		CommentMap: comments, Mapper: mapType,
	}
	schema := r.Reflect(Experiment{})
	schema.ID = "https://" + module + "/experiment.schema.json"
	schema.Title = "Skerry experiment"
	if err := restrict(schema); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return out.Bytes(), nil
}

// readComments gives the comments by import path, type and field, each on one
// line.
func readComments(sourceDir string) (map[string]string, error) {
	var r jsonschema.Reflector
	for _, pkg := range []string{"lab/experiment", "lab/topology", "lab/impair"} {
		if err := r.AddGoComments("", filepath.Join(sourceDir, pkg)); err != nil {
			return nil, err
		}
	}
	comments := map[string]string{}
	root := filepath.Clean(sourceDir)
	for name, text := range r.CommentMap {
		comments[path.Join(module, strings.TrimPrefix(name, root))] = strings.Join(strings.Fields(text), " ")
	}
	return comments, nil
}

// mapType gives the schema of the types that read themselves from text, and of
// lists that may be one value; nil leaves a type to reflection.
func mapType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[quantity.Duration]():
		return oneOf(text(quantity.DurationPattern, "5ms", "1m30s"), &jsonschema.Schema{Const: json.Number("0")})
	case reflect.TypeFor[quantity.Size]():
		return text(quantity.SizePattern, "100KB", "64KiB")
	case reflect.TypeFor[quantity.Rate]():
		return text(quantity.RatePattern, "100mbit", "1gbit")
	case reflect.TypeFor[quantity.Frequency]():
		return text(quantity.FrequencyPattern, "200/s")
	case reflect.TypeFor[quantity.Fraction]():
		return oneOf(text(quantity.FractionPattern, "0.08%"), &jsonschema.Schema{Type: "number", Minimum: "0", Maximum: "1"})
	case reflect.TypeFor[Bound]():
		return oneOf(&jsonschema.Schema{Type: "string", Examples: []any{"1.5ms", "-500us", "2%", "200/s"}}, &jsonschema.Schema{Type: "number"})
	case reflect.TypeFor[impair.Distribution]():
		return oneOf(
			&jsonschema.Schema{Type: "string", Enum: []any{impair.Uniform, impair.Normal, impair.Pareto}},
			text("[./]", "delays.csv"),
		)
	case reflect.TypeFor[CIDR]():
		return text(cidrPattern, "10.96.0.0/16")
	case reflect.TypeFor[topology.Ref]():
		return text(refPattern, "c1", "c1/worker")
	}
	if t.Implements(reflect.TypeFor[strict.OneOrMany]()) {
		least := uint64(1)
		return oneOf(element(t.Elem()), &jsonschema.Schema{Type: "array", Items: element(t.Elem()), MinItems: &least, UniqueItems: true})
	}
	return nil
}

func element(t reflect.Type) *jsonschema.Schema {
	if s := mapType(t); s != nil {
		return s
	}
	s := (&jsonschema.Reflector{Anonymous: true, DoNotReference: true}).ReflectFromType(t)
	s.Version = "" // the root alone has one
	return s
}

func text(pattern string, examples ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Examples: examples}
}

func oneOf(schemas ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: schemas}
}

// restrict adds what the tags of a field cannot say.
func restrict(schema *jsonschema.Schema) error {
	load, link := schema.Definitions["Load"], schema.Definitions["Link"]
	if load == nil || link == nil {
		return fmt.Errorf("the schema lacks the definition of Load or Link")
	}
	link.DependentRequired = map[string][]string{"from": {"to"}, "to": {"from"}}
	for name, limit := range map[string]func(*jsonschema.Schema){
		"threads": func(s *jsonschema.Schema) { s.Minimum, s.Maximum = "1", json.Number(fmt.Sprint(threadsMax)) },
		"ratio":   func(s *jsonschema.Schema) { s.Pattern, s.Examples = ratioPattern, []any{"8:4:4:4"} },
		"protocol": func(s *jsonschema.Schema) {
			for _, p := range Protocols() {
				s.Enum = append(s.Enum, p)
			}
		},
		"connection": func(s *jsonschema.Schema) { s.Enum = []any{ConnectionKept, ConnectionNew} },
	} {
		property, ok := load.Properties.Get(name)
		if !ok || len(property.OneOf) != 2 {
			return fmt.Errorf("the schema has no list %s of one or many", name)
		}
		limit(property.OneOf[0])
		limit(property.OneOf[1].Items)
	}
	return nil
}
