package cli

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/experiment"
)

// gen writes what is generated from the code: the schema of the experiment file
// and the man pages. It is for Skerry's own repository, hence hidden.
func gen() *cobra.Command {
	return &cobra.Command{
		Use: "gen DOCS", Short: "Write the schema and the man pages below a folder", Hidden: true,
		Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := experiment.Schema(".")
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(args[0], "experiment.schema.json"), schema, 0o644); err != nil {
				return err
			}
			return writeManPages(cmd.Root(), filepath.Join(args[0], "man"))
		},
	}
}

func writeManPages(root *cobra.Command, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	// A page does not change from day to day.
	date := time.Unix(0, 0).UTC()
	header := &doc.GenManHeader{Section: "1", Source: "Skerry", Manual: "Skerry", Date: &date}
	return doc.GenManTree(root, header, dir)
}
