package source

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/snapshot"
)

// leave is how to have kube-proxy carry what is refused.
const leave = "; for kube-proxy to carry the Service remove its label " + proxyName

// affinityDefault is what Kubernetes takes where a Service does not say for how long a
// client stays with its endpoint.
const affinityDefault = 3 * time.Hour

// serviceOf a Service and its EndpointSlices is what the proxy wants to know of them.
func serviceOf(s *core.Service, slicesOf []*discovery.EndpointSlice) *snapshot.Service {
	all := &snapshot.Service{
		Key:           snapshot.Key{Namespace: s.Namespace, Name: s.Name},
		Policy:        s.Annotations[snapshot.PolicyAnnotation],
		InternalLocal: s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == core.ServiceInternalTrafficPolicyLocal,
		ExternalLocal: s.Spec.ExternalTrafficPolicy == core.ServiceExternalTrafficPolicyLocal,
	}
	if all.Policy != "" && !slices.Contains(balance.Policies(), all.Policy) {
		all.Refusals = append(all.Refusals, fmt.Sprintf("annotation %s: policy %q is none of %s; %s is taken",
			snapshot.PolicyAnnotation, all.Policy, strings.Join(balance.Policies(), ", "), balance.Cost))
		all.Policy = balance.Cost
	}
	var err error
	if all.Options, err = optionsOf(s.Annotations[snapshot.OptionsAnnotation]); err != nil {
		all.Refusals = append(all.Refusals, inOneLine(err)+"; defaults are taken")
	}
	if why := notCarried(s); why != "" {
		all.Refusals = append(all.Refusals, why)
		return all
	}
	all.ClusterIPs = addresses(s.Spec.ClusterIPs)
	all.ExternalIPs = addresses(s.Spec.ExternalIPs)
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode == core.LoadBalancerIPModeVIP {
			all.LoadBalancerIPs = append(all.LoadBalancerIPs, addresses([]string{i.IP})...)
		}
	}
	if all.SourceRanges, err = prefixes(s.Spec.LoadBalancerSourceRanges); err != nil {
		all.Refusals = append(all.Refusals, fmt.Sprintf("loadBalancerSourceRanges: %s; nobody is served at the load balancer's addresses", inOneLine(err))+leave)
		all.LoadBalancerIPs = nil
	}
	if s.Spec.SessionAffinity == core.ServiceAffinityClientIP {
		all.Affinity = affinityDefault
		if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			all.Affinity = time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
		}
	}
	if all.ExternalLocal {
		all.HealthPort = uint16(s.Spec.HealthCheckNodePort) //nolint:gosec // a port, as the API server holds
	}
	slicesOf = onceEach(s, slicesOf)
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		protocol := snapshot.Protocol(cmp.Or(p.Protocol, core.ProtocolTCP))
		if protocol != snapshot.TCP && protocol != snapshot.UDP {
			all.Refusals = append(all.Refusals, fmt.Sprintf("port %d: %s is not carried", p.Port, protocol)+leave)
			continue
		}
		if protocol == snapshot.UDP && all.Options.Dataplane == snapshot.DataplaneCopyLoop {
			all.Refusals = append(all.Refusals, fmt.Sprintf("port %d: the data plane %s carries TCP alone", p.Port, snapshot.DataplaneCopyLoop)+leave)
			continue
		}
		all.Ports = append(all.Ports, snapshot.Port{
			Name: p.Name, Protocol: protocol, Port: uint16(p.Port), NodePort: uint16(p.NodePort), //nolint:gosec // ports
			Endpoints: endpointsOf(p.Name, core.Protocol(protocol), slicesOf),
		})
	}
	return all
}

// inOneLine is an error and its hint, as Events have them.
func inOneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// optionsOf an annotation's text: "" is all defaults, and so is what makes no sense.
func optionsOf(text string) (o snapshot.Options, err error) {
	if text == "" {
		return o, nil
	}
	document, err := strict.Decode("annotation "+snapshot.OptionsAnnotation, []byte(text), &o)
	if err != nil {
		return snapshot.Options{}, err
	}
	for key, percent := range map[string]int{"maxCPU": o.MaxCPU, "maxRAM": o.MaxRAM} {
		if document.Has(key) && (percent < 1 || percent > 100) {
			return snapshot.Options{}, document.Errorf(key, "write one of 1 to 100", "%d is no percentage", percent)
		}
	}
	for key, is := range map[string]struct {
		value string
		among []string
	}{
		"usage":     {o.Usage, []string{snapshot.UsageReports, snapshot.UsageMetrics}},
		"dataplane": {o.Dataplane, []string{snapshot.DataplaneUserspace, snapshot.DataplaneCopyLoop}},
	} {
		if document.Has(key) && !slices.Contains(is.among, is.value) {
			return snapshot.Options{}, document.Errorf(key, "write one of "+strings.Join(is.among, ", "), "%q is none", is.value)
		}
	}
	return o, nil
}

// notCarried says why nothing of a Service is; "" where something is.
func notCarried(s *core.Service) string {
	switch {
	case s.Spec.Type == core.ServiceTypeExternalName:
		return "a Service of type ExternalName has no endpoints to carry to: DNS alone answers for it"
	case s.Spec.ClusterIP == core.ClusterIPNone:
		return "a headless Service has no address to carry from: clients call its endpoints themselves"
	default:
		return ""
	}
}

// addresses are those that are written as addresses.
func addresses(texts []string) []netip.Addr {
	var all []netip.Addr
	for _, t := range texts {
		if a, err := netip.ParseAddr(t); err == nil {
			all = append(all, a.Unmap())
		}
	}
	return all
}

// prefixes are ranges of addresses, which Kubernetes lets stand between blanks.
func prefixes(texts []string) (all []netip.Prefix, err error) {
	for _, t := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(t))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// onceEach are the slices of the Service's first address family, with what those of the other
// have beside. A pod of a dual-stack Service is in slices of both, and is one endpoint:
// connections end at the proxy, so that what family a client came by is no matter. Endpoints that
// are no pods cannot be told from one another: those of the other family are there where the
// first has none that may serve.
func onceEach(s *core.Service, list []*discovery.EndpointSlice) []*discovery.EndpointSlice {
	if len(s.Spec.IPFamilies) == 0 {
		return list
	}
	var all, others []*discovery.EndpointSlice
	pods, served := map[types.UID]bool{}, false
	for _, slice := range list {
		if string(slice.AddressType) != string(s.Spec.IPFamilies[0]) {
			others = append(others, slice)
			continue
		}
		all = append(all, slice)
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			pods[podOf(e)] = true
			served = served || or(e.Conditions.Ready, true) || or(e.Conditions.Serving, true)
		}
	}
	for _, slice := range others {
		rest := *slice
		rest.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), func(e discovery.Endpoint) bool {
			uid := podOf(&e)
			return uid == "" && served || uid != "" && pods[uid]
		})
		all = append(all, &rest)
	}
	return all
}

// podOf an endpoint is the pod's UID; "" is none.
func podOf(e *discovery.Endpoint) types.UID {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
		return ""
	}
	return e.TargetRef.UID
}

// endpointsOf a port are those of all slices, each address once: one that moves from a
// slice to another is in both for a moment.
func endpointsOf(port string, protocol core.Protocol, list []*discovery.EndpointSlice) []snapshot.Endpoint {
	var all []snapshot.Endpoint
	seen := map[netip.AddrPort]int{}
	for _, slice := range list {
		for _, p := range slice.Ports {
			if p.Port == nil || or(p.Name, "") != port || or(p.Protocol, core.ProtocolTCP) != protocol {
				continue
			}
			for i := range slice.Endpoints {
				e, ok := endpointOf(&slice.Endpoints[i], uint16(*p.Port)) //nolint:gosec // a port
				if !ok {
					continue
				}
				if at, twice := seen[e.Addr]; twice {
					if !all[at].Ready {
						all[at] = e
					}
					continue
				}
				seen[e.Addr] = len(all)
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b snapshot.Endpoint) int { return a.Addr.Compare(b.Addr) })
	return all
}

// endpointOf an EndpointSlice's. Conditions that are not told are as Kubernetes' API
// says: ready and serving, not terminating.
func endpointOf(e *discovery.Endpoint, port uint16) (snapshot.Endpoint, bool) {
	if len(e.Addresses) == 0 {
		return snapshot.Endpoint{}, false
	}
	// The first is the one to call: the others are not to be used (discovery/v1).
	a, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		return snapshot.Endpoint{}, false // an FQDN
	}
	out := snapshot.Endpoint{
		Addr: netip.AddrPortFrom(a.Unmap(), port), Node: or(e.NodeName, ""), Zone: or(e.Zone, ""),
		Ready: or(e.Conditions.Ready, true), Serving: or(e.Conditions.Serving, true), Terminating: or(e.Conditions.Terminating, false),
		PodUID: string(podOf(e)),
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.ForZones = append(out.ForZones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			out.ForNodes = append(out.ForNodes, n.Name)
		}
	}
	return out, true
}

// or is a value that is told, or what is taken without it.
func or[T any](told *T, otherwise T) T {
	if told == nil {
		return otherwise
	}
	return *told
}

// nodeOf is what the proxy wants to know of a Node.
func nodeOf(n *core.Node) *snapshot.Node {
	out := &snapshot.Node{Name: n.Name, Zone: n.Labels[core.LabelTopologyZone]}
	if pods, err := prefixes(n.Spec.PodCIDRs); err == nil { // as the API server holds
		out.Pods = pods
	}
	for _, a := range n.Status.Addresses {
		if a.Type == core.NodeInternalIP {
			out.Addrs = append(out.Addrs, addresses([]string{a.Address})...)
		}
	}
	return out
}
