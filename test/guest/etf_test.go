package guest_test

import (
	"os"
	"regexp"
	"testing"

	"skerry.dev/skerry/internal/guest"
)

// talkerProgram sends timed packets; meson builds it.
const talkerProgram = "../../bin/ktsn-talker"

// TestETF measures timed packets by the kernel's ETF, which few machines' kernels have.
func TestETF(t *testing.T) {
	if guest.Inside() {
		testETF(t)
		return
	}
	machine := newMachine(t)
	if _, err := os.Stat(talkerProgram); err != nil {
		t.Skipf("%v: make build builds it", err)
	}
	machine.Programs, machine.Modules = []string{"sh", "tc", talkerProgram}, []string{"overlay", "sch_prio", "sch_etf", "cls_u32"}
	machine.Files = map[string]string{experimentFile: "testdata/etf.yaml", "/etc/passwd": "/etc/passwd"}
	addSkerry(t, &machine)
	boot(t, machine)
}

// testETF has each packet of both systems arrive, of which the first is not among the others.
func testETF(t *testing.T) {
	prepare(t)
	table := tell(t, "skerry", "run", experimentFile, "--out", "/tmp/out")
	for _, name := range []string{"bare-metal", "bare-metal-etf"} {
		if !regexp.MustCompile(`(?m)^local +` + name + ` .* 0 +99$`).MatchString(table) {
			t.Errorf("a packet of %s was lost, or none was sent", name)
		}
	}
}
