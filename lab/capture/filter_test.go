package capture

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
)

// icmp is what tcpdump -ddd prints for "icmp".
const icmp = "6\n40 0 0 12\n21 0 3 2048\n48 0 0 23\n21 0 1 1\n6 0 0 262144\n6 0 0 0\n"

// printed is a program as tcpdump -ddd prints it.
func printed(program []bpf.RawInstruction) string {
	text := fmt.Sprintln(len(program))
	for _, r := range program {
		text += fmt.Sprintln(r.Op, r.Jt, r.Jf, r.K)
	}
	return text
}

func TestParseProgram(t *testing.T) {
	program, err := parseProgram(icmp)
	if err != nil || printed(program) != icmp {
		t.Fatalf("got %v, %v", program, err)
	}
	decoded, all := bpf.Disassemble(program)
	if !all {
		t.Fatalf("some of %v cannot be decoded", decoded)
	}
	vm, err := bpf.NewVM(decoded)
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 64)
	frame[12], frame[13] = 8, 0
	for protocol, want := range map[byte]int{1: packetMax, 6: 0, 17: 0} {
		frame[23] = protocol
		if got, err := vm.Run(frame); got != want || err != nil {
			t.Errorf("of protocol %d %d bytes pass, %v, want %d", protocol, got, err, want)
		}
	}
}

func TestParseProgramRefuses(t *testing.T) {
	long := fmt.Sprintln(programMax+1) + strings.Repeat("6 0 0 0\n", programMax+1)
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":           {"", errProgram},
		"no instruction":    {"0\n", errProgram},
		"words":             {"tcpdump: no\n", errProgram},
		"fewer than told":   {"3\n6 0 0 0\n6 0 0 0\n", errProgram},
		"more than told":    {"1\n6 0 0 0\n6 0 0 0\n", errProgram},
		"three numbers":     {"1\n6 0 0\n", errProgram},
		"a negative one":    {"1\n6 0 0 -1\n", errProgram},
		"too long a jump":   {"1\n21 256 0 0\n", errProgram},
		"too large a code":  {"1\n65536 0 0 0\n", errProgram},
		"too large a value": {"1\n6 0 0 4294967296\n", errProgram},
		"an endless count":  {strings.Repeat("9", 100) + "\n", errProgram},
		"too long":          {long, errTooLong},
	} {
		if _, err := parseProgram(c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// What is parsed is as it was printed.
func FuzzParseProgram(f *testing.F) {
	f.Add(icmp)
	f.Add("1\n6 0 0 262144\n")
	f.Add("2\n6 0 0 0\n\n6 0 0 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		program, err := parseProgram(text)
		if err != nil {
			return
		}
		if len(program) == 0 || len(program) > programMax {
			t.Fatalf("%d instructions", len(program))
		}
		again, err := parseProgram(printed(program))
		if err != nil || printed(again) != printed(program) {
			t.Errorf("%v is %v, %v, when it is read again", program, again, err)
		}
	})
}

// The longest program that is parsed is one that a kernel can take at any point.
func TestPointsLeaveRoom(t *testing.T) {
	p := Point{Outgoing: true}
	for _, network := range []bool{false, true} {
		if network {
			p.Source, p.Destination = netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")
		}
		filter, err := p.filter(nil)
		if err != nil || len(filter) > pointMax {
			t.Errorf("the point has %d instructions, %v, want %d at most", len(filter), err, pointMax)
		}
	}
}
