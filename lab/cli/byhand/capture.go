package byhand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/capture"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

func (c *commands) capture() *cobra.Command {
	var out, filter string
	var keep quantity.Size
	var last quantity.Duration
	cmd := &cobra.Command{
		Use:   "capture LAB NODE | LAB FROM TO",
		Short: "Capture the packets of a link or of a node as pcapng",
		Long: `Capture writes every packet of a link, or of a node's data interface, to a file
that Wireshark and tshark read, until Ctrl-C or for a time. FROM and TO are two
clusters (c1 c2) or two nodes (c1/worker c2/worker).

Of a link the file has each packet twice, with the kernel's time to the nanosecond:
at the interface "c1>c2 sent" before the emulator and at "c1>c2 received" behind it,
and "c2>c1" likewise. The time between the two is what the link did; a packet that
is sent and not received was lost. Packets are as the kernel hands them on, so a
super-packet is one of up to 64 KB, and checksums that a network card would fill in
are not there yet.

A filter is an expression of tcpdump (man pcap-filter), in which the lab's nodes have
their names: 'host c1-worker and tcp port 8080'. Only packets that it fits are copied
and counted. It needs the program tcpdump.

The file is complete up to the last packets whatever ends the command. An existing
file is overwritten. Packets that came faster than they could be written are counted
as dropped.`,
		Example: `  skerry capture quickstart c1 c2 --out c1-c2.pcapng --for 10s
  skerry capture quickstart c1 c2 --out http.pcapng --filter 'tcp port 8080'
  skerry capture quickstart c1/worker --out - --keep 128B | wireshark -k -i -`,
		Args: console.Within(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.checkCaptureOut(out); err != nil {
				return err
			}
			lab, err := host.Open(args[0])
			if err != nil {
				return err
			}
			ends, err := captureEnds(lab, args[1:])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if last > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, last.Std())
				defer cancel()
			}
			listener, err := lab.Capture(ends, capture.Options{Keep: int(keep), Filter: filter, Application: "skerry " + c.env.Version})
			if err != nil {
				return wrongFilter(wrongEnds(err))
			}
			return errors.Join(c.captureTo(ctx, cmd, listener, out), listener.Close())
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write, - for stdout")
	cmd.Flags().StringVar(&filter, "filter", "", "packets to capture, as tcpdump's expression (default: all)")
	cmd.Flags().Var(&keep, "keep", "bytes of each packet to keep, such as 128B (default: all)")
	cmd.Flags().Var(&last, "for", "end after this time, such as 10s (default: at Ctrl-C)")
	console.WithoutDefault(cmd, "keep", "for")
	return cmd
}

// wrongFilter has an expression that makes no filter be a wrong command line.
func wrongFilter(err error) error {
	if wrong, ok := errors.AsType[*capture.FilterError](err); ok {
		return console.Usage(wrong, "write it as for tcpdump, such as 'tcp port 8080'; 'man pcap-filter' has all words")
	}
	return err
}

func (c *commands) checkCaptureOut(out string) error {
	switch {
	case out == "":
		return console.Usage(errors.New("capture needs a place to write to"), "add --out FILE, or --out - for a program that reads from a pipe")
	case out != "-":
		return console.CheckPlace(out)
	case console.IsTerminal(c.env.Stdout):
		return console.Usage(errors.New("a capture is not for a terminal"), "add --out FILE, or pipe it into a program such as 'wireshark -k -i -'")
	}
	return nil
}

// captureEnds are a node, or the two ends of a link.
func captureEnds(lab *host.Lab, args []string) ([]topology.Ref, error) {
	if len(args) == 1 {
		ref, err := nodeOf(lab, args[0])
		return []topology.Ref{ref}, err
	}
	directions, err := between(lab, args[0], args[1], false)
	if err != nil {
		return nil, err
	}
	return []topology.Ref{directions[0].From, directions[0].To}, nil
}

// captureTo captures until ctx ends and says what came of it.
func (c *commands) captureTo(ctx context.Context, cmd *cobra.Command, listener *capture.Capture, out string) (err error) {
	file, talk := c.env.Stdout, cmd.ErrOrStderr()
	if out != "-" {
		if file, err = os.Create(out); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		talk = cmd.OutOrStdout()
	}
	cmd.PrintErrln("capturing; Ctrl-C ends it")
	totals, err := listener.Record(ctx, file)
	return errors.Join(err, printCaptured(talk, totals))
}

func printCaptured(w io.Writer, totals []capture.Total) error {
	if len(totals) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, strings.Join([]string{"INTERFACE", "PACKETS", "DROPPED"}, "\t"))
	for _, t := range totals {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\n", t.Name, t.Packets, t.Dropped)
	}
	return table.Flush()
}
