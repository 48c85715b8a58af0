// Package experiments embeds the experiment files that Skerry ships, one for
// each table or figure that it reproduces, by the name of the experiment in
// lower case. Reading them is the job of lab/experiment.
package experiments

import "embed"

// FS holds every experiment file beside this one.
//
//go:embed *.yaml
var FS embed.FS
