package capture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/complaint"
)

const (
	// programMax is how many instructions a filter may have: the kernel takes some
	// at a socket, of which a point has up to pointMax.
	programMax = unix.BPF_MAXINSNS - pointMax
	pointMax   = 16
	// compileWait bounds how long tcpdump may take: it may ask for names.
	compileWait = 10 * time.Second
)

// ErrNoCompiler says that there is no tcpdump, which compiles filters.
var ErrNoCompiler = errors.New("there is no tcpdump command on the path, which compiles filters")

// FilterError says why an expression makes no filter.
type FilterError struct {
	Expression string
	// Problem, mostly as tcpdump says it.
	Problem string
}

// Error names the expression, then the problem.
func (e *FilterError) Error() string { return fmt.Sprintf("filter %.80q: %s", e.Expression, e.Problem) }

// What can be wrong with a program that was read.
var (
	errProgram = errors.New("tcpdump printed no program")
	errTooLong = fmt.Errorf("it comes to more than %d instructions", programMax)
)

// everything is the program that all packets pass.
func everything() []bpf.RawInstruction {
	all, err := bpf.RetConstant{Val: packetMax}.Assemble()
	if err != nil {
		panic(err) // a constant can be assembled
	}
	return []bpf.RawInstruction{all}
}

// compile has tcpdump make a program over Ethernet frames of an expression, an
// empty one being that of everything. A name of a host in it is one that is known
// within. The error is ErrNoCompiler, or a *FilterError for a bad expression.
func compile(expression string, within func(f func() error) error) ([]bpf.RawInstruction, error) {
	if expression == "" {
		return everything(), nil
	}
	tcpdump, err := exec.LookPath("tcpdump")
	if err != nil {
		return nil, ErrNoCompiler
	}
	ctx, cancel := context.WithTimeout(context.Background(), compileWait)
	defer cancel()
	var program, said bytes.Buffer
	cmd := exec.CommandContext(ctx, tcpdump, "-ddd", "-y", "EN10MB", "--", expression)
	cmd.Stdout, cmd.Stderr = &program, &said
	err = within(cmd.Run)
	_, refused := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return nil, &FilterError{expression, fmt.Sprintf("tcpdump has not compiled it within %s", compileWait)}
	case refused: // in its last line: warnings come before it
		why := strings.TrimPrefix(complaint.Last(said.String()), "tcpdump: ")
		return nil, &FilterError{expression, cmp.Or(why, err.Error())}
	case err != nil:
		return nil, fmt.Errorf("compile filter %.80q: %w", expression, err)
	}
	filter, err := parseProgram(program.String())
	if err != nil {
		return nil, &FilterError{expression, err.Error()}
	}
	return filter, nil
}

// parseProgram reads what tcpdump -ddd prints: a line with the number of
// instructions, and a line of four numbers for each, which are its code, its jumps
// where true and where false, and its constant. The kernel checks what they mean.
func parseProgram(text string) ([]bpf.RawInstruction, error) {
	count, rest, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseUint(count, 10, 32)
	switch {
	case err != nil || n == 0:
		return nil, errProgram
	case n > programMax:
		return nil, errTooLong
	}
	program := make([]bpf.RawInstruction, 0, n)
	for line := range strings.Lines(rest) {
		bits := []int{16, 8, 8, 32}
		words := strings.Fields(line)
		if len(words) != len(bits) || len(program) == int(n) {
			return nil, errProgram
		}
		var number [4]uint64
		for i, word := range words {
			if number[i], err = strconv.ParseUint(word, 10, bits[i]); err != nil {
				return nil, errProgram
			}
		}
		program = append(program, bpf.RawInstruction{
			Op: uint16(number[0]), Jt: uint8(number[1]), Jf: uint8(number[2]), K: uint32(number[3]),
		})
	}
	if len(program) != int(n) {
		return nil, errProgram
	}
	return program, nil
}
