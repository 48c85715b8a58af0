//go:build ignore

// Command kubernetes is the programs of a Kubernetes cluster in one file, each by
// the name that it is called by, as it is or as the first argument:
// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy and
// kubectl. They share their packages, so that one file is a third of six, and is
// built in a third of the time. Each is upstream's own command, unaltered.
//
// It belongs to a module that is made when it is built (../pins/kubernetes.mod):
// its hundreds of dependencies are none of Skerry's.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs make the command of each.
var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if programs[name] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:] // kubectl reads them, too
		name = os.Args[0]
	}
	command := programs[name]
	switch {
	case command == nil:
		fmt.Fprintln(os.Stderr, "kubernetes: error: name a program: kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy or kubectl")
		os.Exit(2)
	case name == "kubectl":
		kubectlutil.CheckErr(cli.RunNoErrOutput(command()))
	default:
		os.Exit(cli.Run(command()))
	}
}
