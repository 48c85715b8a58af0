package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/loopback"
	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/proxy/agent"
)

// dumped is what a dump has of a proxy: the names of files, and where it tells them.
func dumped() []struct{ file, path string } {
	return []struct{ file, path string }{
		{"about.json", agent.AboutPath},
		{"explain.json", agent.ExplainPath},
		{"metrics.txt", "/metrics"},
		{"ready.txt", "/readyz"},
		{"goroutines.txt", "/debug/pprof/goroutine?debug=2"},
		{"heap.pb.gz", "/debug/pprof/heap"},
		{"cpu-5s.pb.gz", "/debug/pprof/profile?seconds=5"},
	}
}

// lackingFile names in a dump what could not be had.
const lackingFile = "lacking.txt"

func dumpCommand() *cobra.Command {
	var address, out string
	c := &cobra.Command{
		Use:   "dump --admin ADDRESS:PORT --out FILE",
		Short: "Write all that a proxy can say of itself to a file, for whoever looks into it",
		Long: `Dump asks a proxy that runs with --admin on this machine, and writes a gzipped tar file:
version, options and kernel, what its next choices rest on, metrics, and profiles of five
seconds. No key and no traffic is in it; names and addresses of Services, endpoints and
nodes are. What cannot be had is named in lacking.txt.`,
		Example: "  skerry proxy dump --admin 127.0.0.1:4482 --out proxy.tar.gz\n" +
			"  kubectl -n kube-system exec skerry-proxy-x7k2p -- /skerry-proxy dump --admin 127.0.0.1:4482 --out - >proxy.tar.gz",
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := loopback.Read(cmd.Context(), address, agent.AboutPath, "proxy"); err != nil {
				return console.Advised("no proxy answers: "+err.Error(), "name the address that it was given as --admin")
			}
			if out == "-" {
				return dump(cmd.Context(), cmd.OutOrStdout(), address)
			}
			const ownerOnly = 0o600
			return whole.Write(out, ownerOnly, func(w io.Writer) error { return dump(cmd.Context(), w, address) })
		},
	}
	c.Flags().StringVar(&address, "admin", "", "ADDRESS:PORT that the proxy was given as --admin")
	c.Flags().StringVar(&out, "out", "", "file to write, or - for the standard output")
	console.Require(c, "admin", "out")
	return c
}

// dump writes the archive.
func dump(ctx context.Context, w io.Writer, address string) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	var lacking strings.Builder
	for _, d := range dumped() {
		text, err := loopback.Read(ctx, address, d.path, "proxy")
		if err != nil {
			_, _ = fmt.Fprintf(&lacking, "%s: %v\n", d.file, err)
			continue
		}
		if err := add(archive, d.file, text); err != nil {
			return err
		}
	}
	if err := add(archive, lackingFile, []byte(lacking.String())); err != nil {
		return err
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// add adds a file to the archive.
func add(archive *tar.Writer, name string, text []byte) error {
	err := archive.WriteHeader(&tar.Header{Name: "skerry-proxy/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now()})
	if err != nil {
		return err
	}
	_, err = archive.Write(text)
	return err
}
