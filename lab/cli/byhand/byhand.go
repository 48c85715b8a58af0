// Package byhand is the verbs of labs by hand: up and down, what runs in a lab, its
// links, faults and captures. Start at Commands; each verb is a file.
package byhand

import (
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/lab/cli/verb"
)

// Commands are the verbs.
func Commands(env verb.Env, now func() time.Time) []*cobra.Command {
	c := &commands{env: env, now: now}
	return []*cobra.Command{
		c.up(), c.ps(), c.exec(), c.shell(), c.logs(), c.link(), c.fault(), c.capture(), c.down(),
		c.kubeconfig(), c.loadImage(),
	}
}

// commands makes the verbs.
type commands struct {
	env verb.Env
	now func() time.Time
}
