package file

import (
	"fmt"
	"net/netip"
	"regexp"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/internal/strict"
)

// Bounds of a workload's labels: they travel with each request of its clients.
const (
	labelsMax     = 32
	labelBytesMax = 4096
)

// Forms of a label (Kubernetes, labels and selectors, syntax and character set).
var (
	labelKey   = regexp.MustCompile(`^([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
)

// workload is clients known by their addresses.
func (r *reader) workload(name string, data []byte) {
	var o struct {
		object `yaml:",inline"`
		Spec   struct {
			// Addresses are theirs, as addresses or as CIDR.
			Addresses []string `yaml:"addresses"`
			// Labels are attributes of theirs.
			Labels map[string]string `yaml:"labels,omitempty"`
		} `yaml:"spec"`
	}
	d, ok := r.decode(name, data, &o, &o.object)
	if !ok {
		return
	}
	w := snapshot.Workload{Name: o.Metadata.Name, Namespace: namespace(&o.object), Labels: o.Spec.Labels}
	if len(o.Spec.Addresses) == 0 {
		r.fail(d.Errorf("spec.addresses", "write a list of addresses or CIDRs", "nothing is %s", w.Name))
	}
	for i, text := range o.Spec.Addresses {
		path := at("spec.addresses", i)
		p, why := prefix(text)
		if why != "" {
			r.fail(d.Errorf(path, why, "%q is no address and no CIDR", text))
			continue
		}
		if owner, taken := r.owners[p]; taken {
			r.fail(d.Errorf(path, "remove one, or write a longer prefix", "%s is the workload's %s already", p, owner))
			continue
		}
		line, _ := d.At(path)
		r.owners[p] = fmt.Sprintf("%s/%s in %s:%d", w.Namespace, w.Name, name, line)
		w.Addresses = append(w.Addresses, p)
	}
	r.labels(d, w.Labels)
	r.into.Workloads = append(r.into.Workloads, w)
}

// prefix reads an address or a CIDR, or says what to write.
func prefix(text string) (p netip.Prefix, why string) {
	p, err := netip.ParsePrefix(text)
	a, alone := netip.ParseAddr(text)
	if alone == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		return p, "write them as 10.2.0.7, 10.2.0.0/24 or fd00::/64"
	case a.Zone() != "":
		return p, "remove the zone"
	case p.Addr().Is4In6():
		return p, "write the address of IPv4 alone"
	case p != p.Masked():
		return p, "write " + p.Masked().String()
	}
	return p, ""
}

func (r *reader) labels(d *strict.Document, labels map[string]string) {
	size := 0
	for key, value := range labels {
		size += len(key) + len(value)
		if !labelKey.MatchString(key) || !labelValue.MatchString(value) {
			r.fail(d.Errorf("spec.labels", "write KEY: VALUE as Kubernetes does, up to 63 of A-Z, a-z, 0-9, -, _ and .", "no label %q: %q", key, value))
		}
	}
	if len(labels) > labelsMax || size > labelBytesMax {
		hint := fmt.Sprintf("%d labels of %d bytes are the most", labelsMax, labelBytesMax)
		r.fail(d.Errorf("spec.labels", hint, "%d labels of %d bytes", len(labels), size))
	}
}
