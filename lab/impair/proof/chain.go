package proof

import (
	"math"

	"skerry.dev/skerry/lab/impair"
)

// chain is what decides about packets one after the other: each meets one of two
// states, is chosen with the chance of that state, and then the state turns. A
// chain that never enters its bad state chooses each packet independently.
type chain struct {
	good, bad    float64 // chances to be chosen
	enter, leave float64 // chances to turn
}

// independent chooses each packet with the same chance.
func independent(p float64) chain { return chain{good: p, bad: p} }

// losses of a stage.
func losses(i impair.Impairment) chain {
	return chain{
		good: float64(i.Loss), bad: float64(i.Burst.Drops()),
		enter: float64(i.Burst.Enter), leave: float64(i.Burst.Leave),
	}
}

func (c chain) mean() float64 {
	if c.enter == 0 {
		return c.good
	}
	return (c.leave*c.good + c.enter*c.bad) / (c.enter + c.leave)
}

// logMean is the logarithm of the mean of a product over n packets, whose factors
// are good and bad by the state that the packet meets, from a chain that has long
// been running. In matrices it is π (D T)ⁿ 1, where D has the factors on its
// diagonal, T the turns and π the shares of the states. By the two eigenvalues of
// D T that is a sum of two powers, whose coefficients follow from n = 0 and n = 1.
func (c chain) logMean(good, bad, n float64) float64 {
	switch {
	case n == 0:
		return 0
	case c.enter == 0:
		return n * math.Log(good)
	}
	stay, left := good*(1-c.enter), bad*(1-c.leave)
	root := math.Sqrt((stay-left)*(stay-left) + 4*good*bad*c.enter*c.leave)
	first, second := (stay+left+root)/2, (stay+left-root)/2
	if root == 0 {
		return n * math.Log(first)
	}
	one := (c.leave*good + c.enter*bad) / (c.enter + c.leave)
	share := (one - second) / root
	return n*math.Log(first) + math.Log(share+(1-share)*math.Pow(second/first, n))
}

// cumulants is the logarithm of the mean of e^(θ·X), X being how many of n packets
// are chosen.
func (c chain) cumulants(theta, n float64) float64 {
	chosen := math.Expm1(theta)
	return c.logMean(1+c.good*chosen, 1+c.bad*chosen, n)
}

// all is the logarithm of the probability that each of n packets is chosen.
func (c chain) all(n float64) float64 { return c.logMean(c.good, c.bad, n) }

// span is a number of packets that is known to lie between two bounds.
type span struct{ least, most uint64 }

// exactly is a number that is known.
func exactly(n uint64) span { return span{n, n} }

// load is a chain and how many packets it decided about.
type load struct {
	chain
	of span
}

// chance bounds the probability that chains, each of which decided about a number
// of packets within its span, together choose a number at least as far out as k on
// its side: twice the smaller tail. It is exact for a single chain without
// bursts and a number that is known, else by the bound of Chernoff, P(X ≥ k) ≤
// min over θ > 0 of E(e^(θX)) e^(-θk), and so for the lower tail: whatever the
// correlation of losses, what was asked for is not found wanting more often than
// the probability says.
func chance(loads []load, k uint64) float64 {
	if one := loads[0]; len(loads) == 1 && one.enter == 0 && one.of.least == one.of.most {
		return twoSided(one.of.most, k, one.mean())
	}
	var most uint64 // no stage chooses a packet twice
	for _, l := range loads {
		most += l.of.most
	}
	if k > most {
		return 0
	}
	return min(1, 2*math.Exp(min(tail(loads, float64(k), -1), tail(loads, float64(k), 1))))
}

// tail is the logarithm of the bound of Chernoff on the tail of k that lies in
// the direction of the sign: of the least packets that there may be below, of the
// most above. The exponent is convex in θ, and 0 at θ = 0.
func tail(loads []load, k, sign float64) float64 {
	exponent := func(theta float64) float64 {
		sum := -theta * k
		for _, l := range loads {
			n := l.of.most
			if sign < 0 {
				n = l.of.least
			}
			sum += l.cumulants(theta, float64(n))
		}
		return sum
	}
	// By the golden section.
	const thetaMax, rounds = 40, 80
	ratio := (math.Sqrt(5) - 1) / 2
	low, high := 0.0, float64(thetaMax)
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	atA, atB := exponent(sign*a), exponent(sign*b)
	for range rounds {
		if atA < atB {
			high, b, atB = b, a, atA
			a = high - ratio*(high-low)
			atA = exponent(sign * a)
		} else {
			low, a, atA = a, b, atB
			b = low + ratio*(high-low)
			atB = exponent(sign * b)
		}
	}
	return min(0, atA, atB)
}
