package preflight

import (
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/host"
)

// Every need is tried once, and named with all that have it.
func TestEveryNeed(t *testing.T) {
	by := map[string]string{}
	for _, n := range everyNeed() {
		if by[n.what] != "" {
			t.Errorf("%s is there twice", n.what)
		}
		by[n.what] = n.by
	}
	for what, want := range map[string]string{
		"overlayfs":                       "containerd",
		"bridge":                          "cni: bridge, cni: flannel",
		"vxlan":                           "cni: flannel",
		"IPv6":                            "family: dual",
		"ip_vs":                           "proxy: ipvs",
		"ip_tables that iptables can use": "proxy: iptables, proxy: ipvs",
	} {
		if by[what] != want {
			t.Errorf("%s is for %q, want %q", what, by[what], want)
		}
	}
}

// A machine with room and a clock that is set has all; of one that is short each row
// says of what, and what to do.
func TestSurveyOfMachine(t *testing.T) {
	for _, f := range roomy().survey() {
		if !f.Here || f.Needed || f.Remedy != "" {
			t.Errorf("of a roomy machine: %+v", f)
		}
	}
	m := roomy()
	m.memory, m.disk, m.watchers, m.now = 1e8, 1e6, 17, m.built.Add(-24*time.Hour)
	said := map[string]string{}
	for _, f := range m.survey() {
		if f.Here || f.Needed || f.Remedy == "" {
			t.Errorf("of a poor machine: %+v", f)
		}
		said[f.What] = f.Detail
	}
	for what, want := range map[string]string{
		"kubernetes: memory":  "Kubernetes on 1 node of 1 cluster wants 0.68 GB of memory, and 0.10 GB are free",
		"kubernetes: disk":    "Kubernetes on 1 node of 1 cluster wants 0.32 GB of disk at /run/skerry, and 0.00 GB are free",
		"kubernetes: inotify": "Kubernetes on 1 node of 1 cluster wants 18 instances of inotify, and 17 instances are free",
		"kubernetes: clock":   "the clock says 2026-11-20T12:30:00Z, before 2026-11-21T12:30:00Z, which is past: certificates of clusters would not hold",
	} {
		if said[what] != want {
			t.Errorf("%s: got %q, want %q", what, said[what], want)
		}
	}
}

// Here each need is tried: what is said to be there is what Refuse would take.
func TestSurvey(t *testing.T) {
	findings := Survey(time.Now())
	if host.RequireRoot() != nil {
		if len(findings) != 1 || findings[0].Here {
			t.Errorf("without root: %+v", findings)
		}
		return
	}
	for _, n := range everyNeed() {
		i := slices.IndexFunc(findings, func(f host.Finding) bool { return f.What == lead+n.what })
		if i < 0 || findings[i].Here != (n.missing() == nil) || !strings.Contains(findings[i].Detail, n.by) {
			t.Errorf("of %s: %+v", n.what, findings)
		}
	}
}
