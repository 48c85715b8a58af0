package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
)

//go:generate go run ../../kube/gen v1.36.3 pins/e2e github.com/onsi/ginkgo/v2/ginkgo k8s.io/kubernetes/test/e2e k8s.io/kubernetes/test/images/agnhost k8s.io/kubernetes/test/images/nonewprivs k8s.io/sample-apiserver

//go:embed pins/*.mod pins/*.sum
var pins embed.FS

// Programs of the suite, and those that its images are made of.
const (
	ginkgo       = "ginkgo"
	suite        = "e2e.test" // ginkgo takes a program of specs by the end of its name
	agnhost      = "agnhost"
	nonewprivs   = "nonewprivs"
	sampleAPI    = "sample-apiserver"
	kubernetes   = "k8s.io/kubernetes"
	imagesFolder = "test/images/"
)

// catalogue is what the suite is made of, at the release of Kubernetes that
// clusters run.
func catalogue() *gobuild.Catalogue {
	return &gobuild.Catalogue{Files: pins, Programs: []gobuild.Program{
		{Name: ginkgo, Pin: "e2e", Module: "github.com/onsi/ginkgo/v2", Folder: "ginkgo"},
		{Name: suite, Pin: "e2e", Module: kubernetes, Folder: "test/e2e", Test: true, Stamps: []string{"k8s.io/component-base/version.gitVersion"}},
		{Name: agnhost, Pin: "e2e", Module: kubernetes, Folder: imagesFolder + agnhost},
		{Name: nonewprivs, Pin: "e2e", Module: kubernetes, Folder: imagesFolder + nonewprivs},
		{Name: sampleAPI, Pin: "e2e", Module: "k8s.io/sample-apiserver"},
	}}
}

// programs are the paths of those of clusters and of the suite, built where they
// are not.
func programs(ctx context.Context) (ofCluster, ofSuite map[string]string, err error) {
	if ofCluster, err = builder(kube.Catalogue()).Paths(ctx, nil); err == nil {
		ofSuite, err = builder(catalogue()).Paths(ctx, nil)
	}
	return ofCluster, ofSuite, err
}

// builder tells what it builds and, now and then, how far that is.
func builder(c *gobuild.Catalogue) gobuild.Builder {
	const pause = 15 * time.Second
	var shown time.Time
	return gobuild.Builder{Catalogue: c, Tell: func(line string) { say("%s", line) }, Progress: func(program string, done, total int) {
		if now := time.Now(); now.Sub(shown) >= pause {
			shown = now
			say("%s: %d of %d packages", program, done, total)
		}
	}}
}

// say tells whoever waits.
func say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "conformance: "+format+"\n", args...)
}
