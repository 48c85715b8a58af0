package main

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/load/oneway"
	"skerry.dev/skerry/lab/sample"
)

func talkerCommand() *cobra.Command {
	var s oneway.TalkSpec
	c := &cobra.Command{
		Use:   "talker",
		Short: "Send timed UDP packets at a fixed cycle",
		Args:  none,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.Target == "" {
				return usage("talker needs --target HOST:PORT")
			}
			talked, err := oneway.Talk(c.Context(), s)
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(talked)
		},
	}
	c.Flags().StringVar(&s.Target, "target", "", "the listener, as HOST:PORT")
	c.Flags().IntVar(&s.Rate, "rate", 1000, "packets per second")
	c.Flags().IntVar(&s.Count, "count", 1000, "packets to send")
	c.Flags().IntVar(&s.Size, "size", 64, "UDP payload in bytes")
	c.Flags().StringVar(&s.Sends, "sends", oneway.Now, "how: now (as soon as it is time, stamped with when that was), or stamped with when it was planned, at the end of a spin or a sleep, or with its txtime")
	c.Flags().DurationVar(&s.Lead, "lead", 20*time.Millisecond, "how long before its txtime a packet is handed over")
	c.Flags().IntVar(&s.Flow, "flow", 0, "number of the talker, from 0")
	c.Flags().IntVar(&s.Priority, "priority", 0, "SO_PRIORITY of its packets, 0 to 7")
	return c
}

func listenerCommand() *cobra.Command {
	var s oneway.ListenSpec
	var out string
	c := &cobra.Command{
		Use:   "listener",
		Short: "Record when timed UDP packets arrive",
		Long:  "Record when timed UDP packets arrive, as Parquet. stdout is a summary.",
		Args:  none,
		RunE:  func(c *cobra.Command, _ []string) error { return listen(c, s, out) },
	}
	c.Flags().StringVar(&s.Addr, "listen", "", "address to listen on, as HOST:PORT")
	c.Flags().IntVar(&s.Flows, "flows", 1, "talkers to wait for, numbered from 0")
	c.Flags().IntVar(&s.Count, "count", 1000, "packets to wait for, of each talker")
	c.Flags().DurationVar(&s.Idle, "idle", 10*time.Second, "give up after so long without a packet")
	c.Flags().StringVar(&out, "out", "", "Parquet file to write")
	return c
}

func listen(c *cobra.Command, s oneway.ListenSpec, outName string) error {
	if s.Addr == "" || outName == "" {
		return usage("listener needs --listen HOST:PORT and --out FILE.parquet")
	}
	// As in drive, before it listens.
	out, err := whole.Create(outName, 0o644)
	if err != nil {
		return err
	}
	defer out.Discard()
	s.Ready = func(addr netip.AddrPort) { ready(c, addr) }
	h, err := oneway.Listen(c.Context(), s)
	if err != nil {
		return err
	}
	if err := sample.WriteOneWay(out, h.Packets); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return json.NewEncoder(c.OutOrStdout()).Encode(h.Counts)
}
