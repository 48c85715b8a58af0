// Package cli is the overlay's command line: it parses, asks a daemon or the arithmetic
// of schedules, and prints. It decides nothing. Start at Command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/overlay/control"
)

// Command is `skerry overlay`.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "overlay",
		Short: "Have packets of containers leave at their time, within their window of 802.1Qbv",
		Long: `The overlay sends what programs hand over with a transmission time (SO_TXTIME): ktsnd, a
daemon of the node, takes it from LibKTSN, which is loaded before a program, and keeps to
a gate control list.

  skerry overlay schedule check line.yaml
  ktsnd --port af_packet:eth1 &
  skerry overlay attach robot --path /run/ktsn/robot.sock --address 10.9.0.1
  skerry overlay route 10.9.0.2 02:00:00:00:00:02
  skerry overlay schedule load line.yaml
  LD_PRELOAD=libktsn.so KTSN_SOCKET=/run/ktsn/robot.sock ./robot
  skerry overlay status`,
		Args: console.KnownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(statusCommand(), scheduleCommand(), explainCommand(), attachCommand(), detachCommand(), routeCommand())
	return c
}

// controlFlag is --control, where the daemon is asked.
func controlFlag(c *cobra.Command) *string {
	return c.Flags().String("control", control.Path, "control socket of the daemon")
}

// asked calls with a connection to the daemon at a path.
func asked(ctx context.Context, path string, ask func(*control.Client) error) error {
	client, err := control.Dial(ctx, path)
	if err != nil {
		return console.Advised("no ktsnd answers: "+err.Error(), "start it, or name with --control the path that it was given as --control")
	}
	err = ask(client)
	return errors.Join(err, client.Close())
}

func attachCommand() *cobra.Command {
	var a control.Attachment
	var addresses []string
	var mac string
	c := &cobra.Command{
		Use:   "attach NAME --path PATH --address ADDRESS",
		Short: "Have the daemon take packets of programs that connect at a path",
		Long: `Attach has the daemon listen at PATH, for LibKTSN in the programs of one network namespace.
They send from the addresses that are named and from no other, with the MAC of the
daemon's port unless another is named. It stays until it is detached or the daemon ends.`,
		Example: "  skerry overlay attach robot --path /run/ktsn/robot.sock --address 10.9.0.1 --address fd00:9::1",
		Args:    console.Exactly(1),
	}
	path := controlFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		a.Name = args[0]
		for _, text := range addresses {
			address, err := ip(text)
			if err != nil {
				return err
			}
			a.Addresses = append(a.Addresses, address)
		}
		if mac != "" {
			if a.MAC, err = hardware(mac); err != nil {
				return err
			}
		}
		return asked(cmd.Context(), *path, func(d *control.Client) error { return d.Attach(a) })
	}
	c.Flags().StringVar(&a.Path, "path", "", "unix socket to listen at, as the programs' KTSN_SOCKET")
	c.Flags().StringArrayVar(&addresses, "address", nil, "IP address that they send from; may be repeated")
	c.Flags().StringVar(&mac, "mac", "", "MAC that they send from")
	c.Flags().StringVar(&a.Interface, "interface", "", "this end of the namespace's cable, where the daemon is to answer ARP and neighbour discovery")
	console.Require(c, "path", "address")
	return c
}

func detachCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "detach NAME",
		Short: "End an attachment; its programs then send by the kernel",
		Args:  console.Exactly(1),
	}
	path := controlFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return asked(cmd.Context(), *path, func(d *control.Client) error { return d.Detach(args[0]) })
	}
	return c
}

func routeCommand() *cobra.Command {
	var remove bool
	var node, nodeMAC string
	c := &cobra.Command{
		Use:   "route ADDRESS MAC",
		Short: "Have packets to an address leave for a MAC",
		Long: `Route tells the daemon the MAC of whom it sends packets to an address to: the receiver, or
the gateway to it. With --node and --node-mac it is at another node, to which a tunnel by
VXLAN leads. Groups need no route. With --remove there is none to ADDRESS any more.`,
		Example: "  skerry overlay route 10.9.0.2 02:00:00:00:00:02\n" +
			"  skerry overlay route 10.244.2.2 02:00:00:00:02:02 --node 192.168.0.2 --node-mac 02:00:00:00:00:02\n" +
			"  skerry overlay route 10.9.0.2 --remove",
		Args: console.Within(1, 2),
	}
	path := controlFlag(c)
	c.Flags().BoolVar(&remove, "remove", false, "remove the route")
	c.Flags().StringVar(&node, "node", "", "IP address of the node that a tunnel leads to")
	c.Flags().StringVar(&nodeMAC, "node-mac", "", "its MAC, or that of the gateway to it")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		to, err := ip(args[0])
		if err != nil {
			return err
		}
		if remove == (len(args) == 2) {
			return console.Usage(errors.New("a route has a MAC, or goes with --remove"), "usage: "+cmd.UseLine())
		}
		var hop control.Hop
		if !remove {
			if hop, err = hopOf(args[1], node, nodeMAC); err != nil {
				return err
			}
		}
		return asked(cmd.Context(), *path, func(d *control.Client) error { return d.Route(to, hop) })
	}
	return c
}

// hopOf is where a route leads; without a node there is no tunnel.
func hopOf(mac, node, nodeMAC string) (h control.Hop, err error) {
	if h.MAC, err = hardware(mac); err != nil || node == "" && nodeMAC == "" {
		return h, err
	}
	if node == "" || nodeMAC == "" {
		return h, console.Usage(errors.New("a tunnel leads to a node that has an address and a MAC"), "write both --node and --node-mac")
	}
	if h.Node, err = ip(node); err != nil {
		return h, err
	}
	h.NodeMAC, err = hardware(nodeMAC)
	return h, err
}

// ip reads an address.
func ip(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}, console.Usage(fmt.Errorf("%s is no IP address", text), "write for example 10.9.0.2")
	}
	return address, nil
}

// hardware reads a MAC of Ethernet.
func hardware(text string) (net.HardwareAddr, error) {
	const ethernet = 6
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != ethernet {
		return nil, console.Usage(fmt.Errorf("%s is no MAC of Ethernet", text), "write for example 02:00:00:00:00:02")
	}
	return mac, nil
}
