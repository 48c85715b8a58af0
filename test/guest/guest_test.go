// Package guest_test holds the link back ends against the function that is
// asked of them, on a kernel that surely has sch_netem: a guest of internal/guest,
// whose only process is this test binary. It does the same for control groups of
// version 2 and for a whole lab: its links, faults and captures, and the kernel's
// own WireGuard. Start at TestGuest; the cases are in links_test.go,
// chances_test.go, orders_test.go, groups_test.go, and from lab_test.go on. The long
// form, with intervals, is make show AREA=netem.
package guest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/internal/guest"
)

// bootTimeout bounds the guest's whole life.
const bootTimeout = 3 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(busyEnv) != "" {
		computeForever()
	}
	if !guest.Inside() {
		actAsAgent(os.Args)
		os.Exit(m.Run())
	}
	code := 1
	if err := guest.Prepare(); err != nil {
		fmt.Println("prepare guest:", err)
	} else {
		code = m.Run()
	}
	guest.End(os.Stdout, code)
}

// TestGuest boots the guest, where it runs the cases.
func TestGuest(t *testing.T) {
	if guest.Inside() {
		testLinks(t)
		t.Run("control groups", testGroups)
		t.Run("lab", testLab)
		return
	}
	machine := newMachine(t)
	for _, name := range underlayPrograms {
		if _, err := exec.LookPath(name); err != nil {
			t.Log("without WireGuard, which needs it:", err)
			continue
		}
		machine.Programs = append(machine.Programs, name)
	}
	boot(t, machine)
}

// newMachine is a guest that runs the test that asks for it.
func newMachine(t *testing.T) guest.Machine {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a virtual machine, which takes half a minute")
	}
	missing := new(guest.MissingError)
	if err := guest.Needs(); errors.As(err, &missing) {
		t.Skip(missing)
	}
	machine := guest.Machine{Init: filepath.Join(t.TempDir(), "init"), Args: []string{"-test.v", "-test.run=^" + t.Name() + "$"}}
	must(t, guest.Build(t.Context(), machine.Init, ".", "test", "-c"))
	return machine
}

// addSkerry builds the programs that run experiments, for a guest.
func addSkerry(t *testing.T, machine *guest.Machine) {
	t.Helper()
	for _, name := range []string{"skerry", "skerry-agent"} {
		file := filepath.Join(t.TempDir(), name)
		must(t, guest.Build(t.Context(), file, "skerry.dev/skerry/cmd/"+name, "build"))
		machine.Programs = append(machine.Programs, file)
	}
}

// boot has the guest run its test.
func boot(t *testing.T, machine guest.Machine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	var said bytes.Buffer
	if err := machine.Run(ctx, &said); err != nil {
		t.Fatalf("%v:\n%s", err, &said)
	}
	t.Logf("the guest's tests:\n%s", &said)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
