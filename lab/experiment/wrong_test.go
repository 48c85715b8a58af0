package experiment_test

import (
	"strings"
	"testing"
)

// Whatever is wrong in the block kubernetes: has one error, with its line and column
// and what to write instead.
func TestWrongKubernetes(t *testing.T) {
	for block, want := range map[string]string{
		"":                                       "there is no value\nhint: write a value, or remove the key",
		"3":                                      `a mapping is wanted here, not "3"` + "\nhint: the keys are cni, proxy, ",
		"[cni]":                                  "a mapping is wanted here, not a list\nhint: the keys are cni, proxy, ",
		"{cnii: ptp}":                            `unknown key "cnii"` + "\nhint: did you mean cni?",
		"{network: ptp}":                         `unknown key "network"` + "\nhint: there are cni, proxy, ",
		"{cni: calico}":                          `there is no CNI "calico"` + "\nhint: there are ptp, bridge, flannel",
		"{cni: brdge}":                           `there is no CNI "brdge"` + "\nhint: did you mean bridge?",
		"{cni: [ptp]}":                           "text is wanted here, not a list\nhint: write one value",
		"{cni: 1}":                               `text is wanted here, not "1"` + "\nhint: put it in quotes: ",
		"{proxy: envoy}":                         `there is no proxy "envoy"` + "\nhint: there are nftables, iptables, ipvs, none",
		"{proxy: iptable}":                       `there is no proxy "iptable"` + "\nhint: did you mean iptables?",
		"{proxy: {}}":                            "text is wanted here, not a mapping\nhint: write one value",
		"{family: ipv6}":                         `there is no family of addresses "ipv6"` + "\nhint: did you mean ipv4?",
		"{family: [dual]}":                       "text is wanted here, not a list\nhint: write one value",
		"{autoscale: 3}":                         `a mapping is wanted here, not "3"` + "\nhint: the keys are min, max, cpu",
		"{pods: many}":                           `"many" is no range of addresses` + "\nhint: write for example ",
		"{pods: [10.1.0.0]}":                     "a single value is wanted here, not a list\nhint: write one value",
		"{services: 10.1}":                       `"10.1" is no range of addresses` + "\nhint: write for example ",
		"{metrics: 1}":                           `true or false is wanted here, not "1"` + "\nhint: write true or false",
		"{registry: yes}":                        `true or false is wanted here, not "yes"` + "\nhint: write true or false",
		"{nodes: c1/head}":                       `a list is wanted here, not "c1/head"` + "\nhint: write [VALUE, VALUE]",
		"{nodes: [c1/head]}":                     `a mapping is wanted here, not "c1/head"` + "\nhint: the keys are node, cpu, memory",
		"{nodes: [{cpu: 1}]}":                    `the key "node" is missing in kubernetes.nodes[0]` + "\nhint: add node: to it",
		"{autoscale: {max: 2}}":                  `the key "cpu" is missing in kubernetes.autoscale` + "\nhint: add cpu: to it",
		"{autoscale: {min: 3, max: 2, cpu: 50}}": "at most 2 pods are fewer than at least 3\nhint: write 3 or more",
		"{autoscale: {max: 2, cpu: 0}}":          "a use of 0% cannot be aimed at\nhint: write 1 to 1000",
		"{nodes: [{node: c1/head, cpu: much}]}":  `a number is wanted here, not "much"` + "\nhint: write digits, ",
		"{nodes: [{node: c1/head, cpu: .inf}]}":  `".inf" is no finite number` + "\nhint: write digits, ",
		"{nodes: [{node: c1/head, cpu: 1e300}]}": "1e+300 cores are more than a machine has\nhint: write 4096 or less",
		"{nodes: [{node: c1/head, memory: 1}]}":  `"1" is not a size` + "\nhint: write for example ",
		"{nodes: [{node: c3/head, cpu: 1}]}":     `there is no node "c3/head"` + "\nhint: did you mean c",
	} {
		_, err := onKubernetes(t, block)
		if err == nil {
			t.Errorf("%s: no error", block)
			continue
		}
		if got := err.Error(); !strings.Contains(got, want) || !strings.HasPrefix(got, "f:") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got\n%v\nwant in it\n%s", block, got, want)
		}
	}
}
