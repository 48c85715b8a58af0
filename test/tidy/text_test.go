package tidy_test

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// markers are put together here so that this file does not hold them.
var markers = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}

var marker = regexp.MustCompile(`\b(` + strings.Join(markers, "|") + `)\b`)

// noMarker wants an issue, not a note in the code that nobody reads.
func noMarker(t *tree) []string {
	var found []string
	for place, line := range t.lines(isOurs) {
		if m := marker.FindString(line); m != "" {
			found = append(found, fmt.Sprintf("%s: %s: do it or file an issue", place, m))
		}
	}
	return found
}

// registries are the hosts that no file may name: a build goes by the client's
// own setting, so that a mirror works. Put together for the same reason.
var registries = []string{
	"proxy." + "golang.org", "registry." + "npmjs.org", "pypi" + ".org",
	"crates" + ".io", "deb." + "debian.org", "repo1." + "maven.org",
}

// noRegistry wants packages named, not the hosts that serve them.
func noRegistry(t *tree) []string {
	var found []string
	for place, line := range t.lines(isOurs) {
		for _, host := range registries {
			if strings.Contains(line, host) {
				found = append(found, fmt.Sprintf("%s: names the registry %s: name the package alone", place, host))
			}
		}
	}
	return found
}

// isOurs leaves out what the go command writes.
func isOurs(name string) bool { return path.Base(name) != "go.sum" }

// pages are read to the end only if they are short.
var pages = map[string]int{
	"README.md":            120,
	"CONTRIBUTING.md":      60,
	"Makefile":             60,
	"docs/architecture.md": 200,
}

// pageLength wants the pages that everybody reads to stay short.
func pageLength(t *tree) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if n := strings.Count(t.text[name], "\n"); n > pages[name] {
			found = append(found, fmt.Sprintf("%s: %d lines, at most %d", name, n, pages[name]))
		}
	}
	return found
}

var (
	// link is the target of [text](target) or of a [label]: target line.
	link    = regexp.MustCompile(`\]\(<?([^()\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)`)
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	inline  = regexp.MustCompile("`[^`]*`")
	unslug  = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// links wants every relative link of a page to lead to a file that is in the
// repository, and its fragment to a heading.
func links(t *tree) []string {
	var found []string
	for _, page := range t.files {
		if path.Ext(page) != ".md" {
			continue
		}
		for n, line := range prose(t.text[page]) {
			for _, m := range link.FindAllStringSubmatch(inline.ReplaceAllString(line, ""), -1) {
				target := m[1] + m[2]
				if problem := t.follow(page, target); problem != "" {
					found = append(found, fmt.Sprintf("%s:%d: link %s: %s", page, n, target, problem))
				}
			}
		}
	}
	return found
}

// follow says why a link of a page leads nowhere, or nothing.
func (t *tree) follow(page, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "not a URL"
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	file := page
	if u.Path != "" {
		file = path.Join(path.Dir(page), u.Path)
	}
	isFolder := slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, file+"/") })
	if _, ok := t.text[file]; !ok && !isFolder && file != "." {
		return "no such file in the repository"
	}
	if u.Fragment == "" || path.Ext(file) != ".md" {
		return ""
	}
	for _, line := range prose(t.text[file]) {
		if m := heading.FindStringSubmatch(line); m != nil && slug(m[1]) == u.Fragment {
			return ""
		}
	}
	return "no such heading"
}

// slug is the fragment that forges give a heading.
func slug(heading string) string {
	plain := unslug.ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(plain, " ", "-")
}

// prose yields the lines of a page, from 1, without its fenced blocks.
func prose(page string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fenced := false
		for i, line := range strings.Split(page, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			if !fenced && !yield(i+1, line) {
				return
			}
		}
	}
}

const decisions = "docs/adr/0002-dependencies.md"

// reason is the first cell of a line of the table, a module path.
var reason = regexp.MustCompile("^\\| `([^`]+)` \\|")

// dependencies wants one line for each direct dependency and for each tool, and
// none for a module that has gone.
func dependencies(t *tree) []string {
	var found []string
	reasons := map[string]int{}
	for i, line := range strings.Split(t.text[decisions], "\n") {
		if m := reason.FindStringSubmatch(line); m != nil {
			reasons[m[1]] = i + 1
		}
	}
	required := map[string]bool{}
	for _, name := range t.files {
		if path.Base(name) != "go.mod" {
			continue
		}
		for module, direct := range requirements(t.text[name]) {
			required[module] = true
			if direct && reasons[module] == 0 {
				found = append(found, fmt.Sprintf("%s: %s has no line in %s", name, module, decisions))
			}
		}
	}
	for _, module := range slices.Sorted(maps.Keys(reasons)) {
		if !required[module] {
			found = append(found, fmt.Sprintf("%s:%d: no go.mod requires %s: take the line out", decisions, reasons[module], module))
		}
	}
	return found
}

// requirements yields the modules that a go.mod requires, in order, and whether
// directly. A tool is named by its package, and is as direct as an import.
func requirements(goMod string) func(yield func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		var tools []string
		for line := range strings.Lines(goMod) {
			fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
			if len(fields) == 2 && fields[0] == "tool" {
				tools = append(tools, fields[1])
			}
			if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") {
				continue
			}
			module := fields[0]
			isTool := slices.ContainsFunc(tools, func(tool string) bool { return strings.HasPrefix(tool+"/", module+"/") })
			if !yield(module, isTool || !strings.HasSuffix(line, "// indirect\n")) {
				return
			}
		}
	}
}

// lines yields FILE:LINE and the line, of each text file that is wanted.
func (t *tree) lines(want func(name string) bool) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, name := range t.files {
			if !want(name) || strings.Contains(t.text[name], "\x00") {
				continue
			}
			for i, line := range strings.Split(t.text[name], "\n") {
				if !yield(fmt.Sprintf("%s:%d", name, i+1), line) {
					return
				}
			}
		}
	}
}
