package verb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
)

// An error has one line, or one for each of several, and one hint: its own before
// that of what it wraps.
func TestExplain(t *testing.T) {
	advised := console.Advised("three cells are slower", "look at the rows")
	lacking := func(name, program, pack string) error {
		return &system.MissingError{System: name, Need: system.Need{Program: program, Package: pack}}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("it rained"), "skerry: error: it rained\n"},
		{fmt.Errorf("run: %w", advised), "skerry: error: run: three cells are slower\nskerry: hint: look at the rows\n"},
		{errors.Join(advised, errors.New("and it rained")), "skerry: error: three cells are slower\nskerry: error: and it rained\nskerry: hint: look at the rows\n"},
		{errors.New("f:1:1: no key\nhint: add it"), "skerry: error: f:1:1: no key\nskerry: hint: add it\n"},
		{
			errors.Join(lacking("b", "haproxy", "haproxy"), lacking("a", "haproxy", "haproxy"), lacking("b", "openssl", "openssl")),
			"skerry: error: system b needs the program haproxy, which is not installed\n" +
				"skerry: error: system a needs the program haproxy, which is not installed\n" +
				"skerry: error: system b needs the program openssl, which is not installed\n" +
				"skerry: hint: apt-get install haproxy openssl, or leave the systems a and b out\n",
		},
		{console.Usage(host.ErrNoLab, "name another"), "skerry: error: " + host.ErrNoLab.Error() + "\nskerry: hint: name another\n"},
		{console.Usage(host.ErrNoLab, ""), "skerry: error: " + host.ErrNoLab.Error() + "\nskerry: hint: 'skerry ps' lists the labs, 'skerry up FILE' makes one\n"},
	} {
		var out strings.Builder
		if verb.Explain(&out, c.err); out.String() != c.want {
			t.Errorf("got\n%swant\n%s", out.String(), c.want)
		}
	}
}
