// Package systems embeds the systems under test that Skerry ships: one folder
// each, with system.yaml and the files that it renders. Reading them is the
// job of lab/system.
package systems

import "embed"

// FS holds every folder beside this file.
//
//go:embed */*
var FS embed.FS
