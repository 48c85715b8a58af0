package tidy_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	fileLinesMax    = 500
	structFieldsMax = 15
	// reasonLines is how far from its top a long file may say why it is long.
	reasonLines = 5
)

// fileLength wants a reason for every long file of Go or C.
func fileLength(t *tree) []string {
	var found []string
	for _, name := range t.files {
		if ext := path.Ext(name); ext != ".c" && ext != ".h" && t.code[name] == nil {
			continue
		}
		lines := strings.Split(t.text[name], "\n")
		n := len(lines) - 1
		reason := slices.ContainsFunc(lines[:min(reasonLines, len(lines))], func(line string) bool {
			return strings.HasPrefix(line, "// long: ")
		})
		if n > fileLinesMax && !reason {
			found = append(found, fmt.Sprintf("%s: %d lines: split it, or say why not in a line '// long: reason' at its top", name, n))
		}
	}
	return found
}

// vague are names that say nothing about what a package is for.
var vague = []string{"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}

// packageName wants packages named by their job.
func packageName(t *tree) []string {
	var found []string
	for _, f := range t.folders() {
		name := strings.TrimSuffix(t.code[slices.Concat(f.code, f.tests)[0]].Name.Name, "_test")
		for _, n := range []string{path.Base(f.path), name} {
			if slices.Contains(vague, n) {
				found = append(found, fmt.Sprintf("%s: a package named %s: name it by its job", f.path, n))
				break
			}
		}
	}
	return found
}

// packageDoc wants one file of each package to say what the package is.
func packageDoc(t *tree) []string {
	var found []string
	for _, f := range t.folders() {
		files := f.code
		if len(files) == 0 {
			files = f.tests
		}
		name := t.code[files[0]].Name.Name
		opening := "Package " + name + " "
		if name == "main" {
			opening = "Command " + path.Base(f.path) + " "
		}
		var documented []string
		for _, file := range files {
			doc := t.code[file].Doc
			if doc == nil {
				continue
			}
			documented = append(documented, file)
			if !strings.HasPrefix(doc.Text(), opening) {
				found = append(found, fmt.Sprintf("%s: the package doc does not begin with %q", t.at(doc.Pos()), opening))
			}
		}
		switch {
		case len(documented) == 0:
			found = append(found, fmt.Sprintf("%s: no file has the package doc", f.path))
		case len(documented) > 1:
			found = append(found, fmt.Sprintf("%s: more than one package doc: %s", f.path, strings.Join(documented, ", ")))
		}
	}
	return found
}

// noInit wants all work to begin at a call that a reader can find.
func noInit(t *tree) []string {
	var found []string
	for fn := range t.functions() {
		if fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, t.at(fn.Pos())+": func init: call it from where it is needed")
		}
	}
	return found
}

// structSize wants large structs split by who writes them.
func structSize(t *tree) []string {
	var found []string
	for _, name := range t.goFiles() {
		ast.Inspect(t.code[name], func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && s.Fields.NumFields() > structFieldsMax {
				found = append(found, fmt.Sprintf("%s: struct %s has %d fields: split it by who writes them",
					t.at(spec.Pos()), spec.Name.Name, s.Fields.NumFields()))
			}
			return true
		})
	}
	return found
}

// hasTest wants a test beside all code but the tests themselves and wiring: that
// of cmd, and of upstream's commands, which is built outside of the module.
func hasTest(t *tree) []string {
	var found []string
	for _, f := range t.folders() {
		wiring := strings.HasPrefix(f.path, "cmd/") || f.path == "kube/kubernetes"
		if len(f.tests) == 0 && !wiring && !strings.HasPrefix(f.path, "test/") {
			found = append(found, f.path+": code without a test")
		}
	}
	return found
}

var parserName = regexp.MustCompile(`^(Parse|Decode|Read|Unmarshal)([A-Z]|$)`)

// hasFuzz wants a fuzz target in each package that exports a parser: a function
// named like one that takes text or bytes from outside.
func hasFuzz(t *tree) []string {
	parsers, fuzzed := map[string]string{}, map[string]bool{}
	for fn, file := range t.functions() {
		dir, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
		switch {
		case test && strings.HasPrefix(fn.Name.Name, "Fuzz"):
			fuzzed[dir] = true
		case !test && parses(fn) && parsers[dir] == "":
			parsers[dir] = fmt.Sprintf("%s: %s reads from outside, and its package has no fuzz target", t.at(fn.Pos()), fn.Name.Name)
		}
	}
	var found []string
	for _, f := range t.folders() {
		if parsers[f.path] != "" && !fuzzed[f.path] {
			found = append(found, parsers[f.path])
		}
	}
	return found
}

func parses(fn *ast.FuncDecl) bool {
	if !parserName.MatchString(fn.Name.Name) {
		return false
	}
	// A string that Read takes is the name of a file, and its bytes are to be filled.
	reads := strings.HasPrefix(fn.Name.Name, "Read")
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		switch typ := p.Type.(type) {
		case *ast.Ident:
			return typ.Name == "string" && !reads
		case *ast.ArrayType:
			elem, ok := typ.Elt.(*ast.Ident)
			return ok && elem.Name == "byte" && !reads
		case *ast.SelectorExpr:
			return typ.Sel.Name == "Reader"
		}
		return false
	})
}

// functions yields every function and method with its file, in order.
func (t *tree) functions() func(yield func(*ast.FuncDecl, string) bool) {
	return func(yield func(*ast.FuncDecl, string) bool) {
		for _, name := range t.goFiles() {
			for _, decl := range t.code[name].Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && !yield(fn, name) {
					return
				}
			}
		}
	}
}
