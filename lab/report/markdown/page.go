// Package markdown is the tables of runs in a Markdown page, each between the comments
// "table NAME" and "end NAME": test/tables puts them there, test/show counts what one of
// them says. Start at Put.
package markdown

import (
	"fmt"
	"strings"
)

// Put puts a table of a name where the page has room for it.
func Put(page, name, table string) (string, error) {
	head, _, tail, err := around(page, name)
	return head + table + tail, err
}

// Table is what stands in the page by that name.
func Table(page, name string) (string, error) {
	_, table, _, err := around(page, name)
	return table, err
}

// around are the page's parts, the comments with what is outside them.
func around(page, name string) (head, table, tail string, err error) {
	begin, end := "<!-- table "+name+" -->\n", "<!-- end "+name+" -->"
	head, rest, ok := strings.Cut(page, begin)
	table, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("there is no place for %s: write %q and %q, a line each", name, strings.TrimSpace(begin), end)
	}
	return head + begin, table, end + tail, nil
}
