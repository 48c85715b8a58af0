package identity

import (
	"crypto/x509"
	"slices"
	"time"
)

// Lifetime is from when to when a certificate is valid that a gateway stands on.
type Lifetime struct {
	// Of is OfLeaf for its own, or OfAuthority for the one that expires first of those above.
	Of         string
	Begin, End time.Time
}

// What a lifetime is of.
const (
	OfLeaf      = "leaf"
	OfAuthority = "authority"
)

// Lifetimes are those of its own certificate and of the way from there to a root: of
// roots that have signed the last of its chain, the one that is valid longest counts.
func (i *Identity) Lifetimes() []Lifetime { return i.lifetimes }

func lifetimesOf(chain, roots []*x509.Certificate) []Lifetime {
	own := chain[0]
	all := []Lifetime{{OfLeaf, own.NotBefore, own.NotAfter}}
	above := slices.Clone(chain[1:])
	if root := rootOf(chain, roots); root != nil {
		above = append(above, root)
	}
	var first *x509.Certificate
	for _, c := range above {
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	if first != nil {
		all = append(all, Lifetime{OfAuthority, first.NotBefore, first.NotAfter})
	}
	return all
}

func rootOf(chain, roots []*x509.Certificate) (longest *x509.Certificate) {
	last := chain[len(chain)-1]
	for _, c := range roots {
		if last.CheckSignatureFrom(c) == nil && (longest == nil || c.NotAfter.After(longest.NotAfter)) {
			longest = c
		}
	}
	return longest
}

// Due says whether a renewal is overdue: it should have come with a third left. A
// hundredth of the life more is given to one that is under way.
func (l Lifetime) Due(now time.Time) bool {
	const left, of = 32, 100
	return l.End.Sub(now) < l.End.Sub(l.Begin)*left/of
}
