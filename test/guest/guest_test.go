// Package guest_test holds the link back ends against the function that is
// asked of them, on a kernel that surely has sch_netem: Debian's cloud kernel in
// QEMU, whose only process is this test binary. Time in the guest counts
// instructions, so that a busy host does not show. It says nothing about how
// fast anything is. It does the same for control groups of version 2 and a
// whole lab. Start at TestGuest; the cases are in links_test.go, groups_test.go
// and lab_test.go.
package guest_test

import (
	"fmt"
	"os"
	"testing"
)

// inGuest reports that this process is the guest's init.
func inGuest() bool { return os.Getpid() == 1 }

func TestMain(m *testing.M) {
	if os.Getenv(busyEnv) != "" {
		computeForever()
	}
	if !inGuest() {
		actAsAgent(os.Args)
		os.Exit(m.Run())
	}
	code := 1
	if err := prepareGuest(); err != nil {
		fmt.Println("prepare guest:", err)
	} else {
		code = m.Run()
	}
	fmt.Printf("%s%d\n", exitMark, code)
	powerOff()
}

// TestGuest boots the guest, where it runs the cases.
func TestGuest(t *testing.T) {
	if inGuest() {
		testLinks(t)
		t.Run("control groups", testGroups)
		t.Run("lab", testLab)
		return
	}
	bootGuest(t)
}
