// Command skerry is the operator's program: an edge-networking lab, and a data plane for
// Kubernetes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	fabric "skerry.dev/skerry/fabric/cli"
	"skerry.dev/skerry/lab/cli"
	"skerry.dev/skerry/lab/cli/verb"
	overlay "skerry.dev/skerry/overlay/cli"
	proxy "skerry.dev/skerry/proxy/cli"
)

// version is set at link time.
var version = "unknown"

func main() {
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is below nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	os.Exit(cli.Execute(ctx, verb.Env{
		Version: version, Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}, fabric.Command(time.Now), proxy.Command(), overlay.Command()))
}
