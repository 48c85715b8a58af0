package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// ErrName says that a name of a fabric, a cluster or a gateway is not one.
var ErrName = errors.New("not a name")

// Name is who a certificate is of: a gateway of a cluster of a fabric. Without a
// gateway it is the cluster itself, as one that issues for its gateways.
type Name struct {
	// Fabric is the trust domain, such as "example.org".
	Fabric string
	// Cluster and Gateway are DNS labels.
	Cluster, Gateway string
}

// fabricMax leaves room in a DNS name for a gateway and a cluster.
const fabricMax = 120

// label is a DNS label (RFC 1123 section 2.1) of lower case, as Kubernetes names are.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Check says what is wrong with a name.
func (n Name) Check() error {
	for part := range strings.SplitSeq(n.Fabric, ".") {
		if !label.MatchString(part) || len(n.Fabric) > fabricMax {
			return fmt.Errorf("fabric %q: %w: write a domain, for example edge.example.org", n.Fabric, ErrName)
		}
	}
	if !label.MatchString(n.Cluster) {
		return fmt.Errorf("cluster %q: %w: write up to 63 of a-z, 0-9 and -", n.Cluster, ErrName)
	}
	if n.Gateway != "" && !label.MatchString(n.Gateway) {
		return fmt.Errorf("gateway %q: %w: write up to 63 of a-z, 0-9 and -", n.Gateway, ErrName)
	}
	return nil
}

// String is CLUSTER/GATEWAY.
func (n Name) String() string {
	if n.Gateway == "" {
		return n.Cluster
	}
	return n.Cluster + "/" + n.Gateway
}

// SPIFFE is the name as a SPIFFE ID: spiffe://FABRIC/cluster/CLUSTER/gateway/GATEWAY.
func (n Name) SPIFFE() string {
	return "spiffe://" + n.Fabric + "/cluster/" + n.Cluster + "/gateway/" + n.Gateway
}

// DNS is the name as a host: GATEWAY.CLUSTER.FABRIC, which constraints on names speak
// of (RFC 5280 section 4.2.1.10); there they cannot speak of a SPIFFE ID's path.
func (n Name) DNS() string {
	return strings.TrimPrefix(n.Gateway+".", ".") + n.Cluster + "." + n.Fabric
}

// NameOf reads who a gateway's certificate is of. Its SPIFFE ID and its only DNS name
// must say the same.
func NameOf(leaf *x509.Certificate) (Name, error) {
	if len(leaf.URIs) != 1 {
		return Name{}, fmt.Errorf("a certificate with %d URIs: %w", len(leaf.URIs), ErrName)
	}
	id, err := spiffeid.FromURI(leaf.URIs[0])
	if err != nil {
		return Name{}, fmt.Errorf("%w: %w", ErrName, err)
	}
	parts := strings.Split(id.Path(), "/")
	const empty, cluster, gateway, all = 0, 1, 3, 5
	if len(parts) != all || parts[empty] != "" || parts[cluster] != "cluster" || parts[gateway] != "gateway" {
		return Name{}, fmt.Errorf("%s: %w of a gateway", id, ErrName)
	}
	n := Name{Fabric: id.TrustDomain().Name(), Cluster: parts[cluster+1], Gateway: parts[gateway+1]}
	if err := n.Check(); err != nil {
		return Name{}, err
	}
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != n.DNS() {
		return Name{}, fmt.Errorf("%s with the DNS names %q: %w, want %s", id, leaf.DNSNames, ErrName, n.DNS())
	}
	return n, nil
}
