// Package runs is the verbs of experiments: to check, plan and run one, to follow a
// run, and to show, compare and hand on what it measured. Start at Commands; each verb
// is a file.
package runs

import (
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/verb"
)

// Commands are the verbs.
func Commands(env verb.Env, now func() time.Time) []*cobra.Command {
	c := &commands{env: env, now: now}
	return []*cobra.Command{
		c.run(), c.status(), c.validate(), c.plan(), c.report(), c.compare(), c.export(), c.importSamples(),
		c.systems(), c.reproduce(),
	}
}

// commands makes the verbs.
type commands struct {
	env verb.Env
	now func() time.Time
}

// errObjective says that the run was completed and an objective was missed. It
// has been told in full on stdout.
var errObjective = console.Advised("an objective was missed", "the lines below the table say by how much, and where")

// errClaim says that a claim fails; those that do are named behind it.
var errClaim = console.Advised("a claim fails", "the lines below the table say by how much, and where")
