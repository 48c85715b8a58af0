package tidy_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// noState wants no package variable that changes: what stays are errors and
// tables. It knows a change by its form: a variable made to be changed (sync,
// atomic, make), or x = …, x[k] = …, x.f = …, x++, &x, delete(x, …), clear(x).
// A change through a method or a copy of a map escapes it.
func noState(t *tree) []string {
	var found []string
	for _, f := range t.folders() {
		var files []*ast.File
		for _, name := range f.code {
			files = append(files, t.code[name])
		}
		scope := packageScope(t.fset, files)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok && scope.holds(spec.Names[0]) && changeable(spec) {
					found = append(found, fmt.Sprintf("%s: package variable %s is made to be changed: keep it in a struct",
						t.at(spec.Pos()), spec.Names[0].Name))
				}
				for _, target := range written(n) {
					if id := root(target); id != nil && scope.holds(id) {
						found = append(found, fmt.Sprintf("%s: writes to package variable %s: keep it in a struct",
							t.at(id.Pos()), id.Name))
					}
				}
				return true
			})
		}
	}
	return found
}

// scope tells package variables from local ones of the same name.
type scope struct {
	pkg  *types.Package
	info types.Info
}

// packageScope resolves names within one package. It imports nothing, so most
// types stay unknown; names do not.
func packageScope(fset *token.FileSet, files []*ast.File) scope {
	info := types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImporter{}, Error: func(error) {}}
	// The error is that imports are unknown.
	pkg, _ := config.Check("package", fset, files, &info)
	return scope{pkg, info}
}

func (s scope) holds(id *ast.Ident) bool {
	v, ok := s.info.ObjectOf(id).(*types.Var)
	return ok && v.Parent() == s.pkg.Scope()
}

type noImporter struct{}

func (noImporter) Import(string) (*types.Package, error) { return nil, errors.ErrUnsupported }

// changeable reports a variable of package sync or atomic, or one from make.
func changeable(spec *ast.ValueSpec) bool {
	exprs := slices.Clone(spec.Values)
	if spec.Type != nil {
		exprs = append(exprs, spec.Type)
	}
	return slices.ContainsFunc(exprs, func(e ast.Expr) bool {
		switch x := e.(type) {
		case *ast.CompositeLit:
			e = x.Type
		case *ast.CallExpr:
			e = x.Fun
		}
		text := types.ExprString(e)
		return text == "make" || strings.HasPrefix(text, "sync.") || strings.HasPrefix(text, "atomic.")
	})
}

// written lists what a node writes to, or could let others write to.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") {
			return n.Args[:min(1, len(n.Args))]
		}
	}
	return nil
}

// root is the variable at the left end of x.f, x[i] and *x.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
