package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/internal/clock"
)

func is(key string, values ...string) policy.Requirement {
	return policy.Requirement{Key: key, Operator: policy.In, Values: values}
}

func TestDecide(t *testing.T) {
	everything := []policy.Selector{{}}
	shop := []policy.Selector{{is(policy.Namespace, "shop")}}
	all := []policy.Policy{
		{Name: "allow-shop", Priority: 500, From: everything, To: shop},
		{Name: "no-c3", Priority: 500, Deny: true, From: []policy.Selector{{is(policy.Cluster, "c3")}}, To: everything},
		{Name: "c4-first", Priority: 100, From: []policy.Selector{{is(policy.Cluster, "c4")}}, To: shop},
		{Name: "no-c4", Priority: 200, Deny: true, From: []policy.Selector{{is(policy.Cluster, "c4")}}, To: everything},
		{Name: "quarantine", Privileged: true, Priority: 1000, Deny: true, From: []policy.Selector{{{Key: "label/infected", Operator: policy.Exists}}}, To: everything},
		{Name: "inner", Priority: 600, From: []policy.Selector{{
			{Key: policy.Cluster, Operator: policy.NotIn, Values: []string{"c1", "c2"}}, {Key: "label/old", Operator: policy.DoesNotExist},
		}}, To: []policy.Selector{{is(policy.Service, "a", "b")}, {is(policy.Service, "c")}}},
	}
	set := policy.Compile(all)
	for _, c := range []struct {
		from, to policy.Attributes
		want     string
	}{
		{policy.Attributes{"cluster": "c1"}, policy.Attributes{"namespace": "shop"}, "allowed by allow-shop"},
		{policy.Attributes{"cluster": "c1"}, policy.Attributes{"namespace": "bank"}, "denied: no policy selects it"},
		{policy.Attributes{"cluster": "c3"}, policy.Attributes{"namespace": "shop"}, "denied by no-c3"},
		{policy.Attributes{"cluster": "c4"}, policy.Attributes{"namespace": "shop"}, "allowed by c4-first"},
		{policy.Attributes{"cluster": "c4"}, policy.Attributes{"namespace": "bank"}, "denied by no-c4"},
		{policy.Attributes{"cluster": "c1", "label/infected": ""}, policy.Attributes{"namespace": "shop"}, "denied by quarantine"},
		{policy.Attributes{"cluster": "c5"}, policy.Attributes{"service": "b"}, "allowed by inner"},
		{policy.Attributes{"cluster": "c5"}, policy.Attributes{"service": "c"}, "allowed by inner"},
		{policy.Attributes{}, policy.Attributes{"service": "c"}, "allowed by inner"},
		{policy.Attributes{"cluster": "c5", "label/old": "1"}, policy.Attributes{"service": "c"}, "denied: no policy selects it"},
		{policy.Attributes{"cluster": "c2"}, policy.Attributes{"service": "c"}, "denied: no policy selects it"},
		{nil, nil, "denied: no policy selects it"},
	} {
		got := set.Decide(c.from, c.to)
		if got.String() != c.want || got.Allowed != (c.want[:7] == "allowed") {
			t.Errorf("%v to %v: got %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// words of made policies: few enough for rules to meet.
func pick(r *rand.Rand, kind string, n int) string { return fmt.Sprintf("%s%d", kind, r.IntN(n)) }

func made(r *rand.Rand, n, services int) (all []policy.Policy) {
	for i := range n {
		p := policy.Policy{
			Name: fmt.Sprintf("p%d", i), Deny: r.IntN(3) == 0, Privileged: r.IntN(20) == 0, Priority: r.IntN(1001),
			From: []policy.Selector{{is(policy.Cluster, pick(r, "c", 8), pick(r, "c", 8))}},
			To:   []policy.Selector{{is(policy.Service, pick(r, "s", services)), is(policy.Namespace, pick(r, "n", 5))}},
		}
		switch r.IntN(4) {
		case 0:
			p.From = append(p.From, policy.Selector{is(policy.Label+"app", pick(r, "a", 50))})
		case 1:
			p.From[0] = append(p.From[0], policy.Requirement{Key: policy.Label + "app", Operator: policy.NotIn, Values: []string{pick(r, "a", 50)}})
		case 2:
			p.From[0][0] = policy.Requirement{Key: policy.Label + "app", Operator: policy.Exists}
		}
		all = append(all, p)
	}
	return all
}

func asked(r *rand.Rand, services int) (from, to policy.Attributes) {
	return policy.Attributes{policy.Cluster: pick(r, "c", 8), policy.Gateway: "g1", policy.Namespace: pick(r, "n", 5), policy.Label + "app": pick(r, "a", 50)},
		policy.Attributes{policy.Cluster: "c0", policy.Service: pick(r, "s", services), policy.Namespace: pick(r, "n", 5), policy.Port: "80", policy.Protocol: "tcp"}
}

// However rules are filed, the decision is that of reading all policies in their order.
func TestDecideAsByReadingAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := made(r, 300, 6)
	set := policy.Compile(all)
	decided := map[bool]int{}
	for range 5000 {
		from, to := asked(r, 6)
		got := set.Decide(from, to)
		want := policy.Decision{}
		for _, p := range set.Policies() {
			selects := func(list []policy.Selector, a policy.Attributes) bool {
				return slices.ContainsFunc(list, func(s policy.Selector) bool { return s.Selects(a) })
			}
			if selects(p.From, from) && selects(p.To, to) {
				want = policy.Decision{Allowed: !p.Deny, Policy: &p}
				break
			}
		}
		if got.String() != want.String() {
			t.Fatalf("%v to %v: got %s, want %s", from, to, got, want)
		}
		decided[got.Allowed]++
	}
	if decided[true] < 100 || decided[false] < 100 {
		t.Errorf("decisions %v: too one-sided to show anything", decided)
	}
}

// A decision among 10,000 policies is not much slower than one among 100.
func TestDecideAmongMany(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	took := map[int]int64{}
	for _, n := range []int{100, 10_000} {
		set := policy.Compile(made(r, n, n/50))
		least := int64(math.MaxInt64)
		for range 20 {
			begin := clock.Mono()
			for range 500 {
				from, to := asked(r, n/50)
				set.Decide(from, to)
			}
			least = min(least, clock.Mono()-begin)
		}
		took[n] = least
	}
	if ratio := float64(took[10_000]) / float64(took[100]); ratio > 10 {
		t.Errorf("among 100 times as many a decision takes %.1f times as long", ratio)
	}
}

func BenchmarkDecide(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	set := policy.Compile(made(r, 10_000, 200))
	var took []int64
	var sides [1000][2]policy.Attributes
	for i := range sides {
		sides[i][0], sides[i][1] = asked(r, 200)
	}
	for b.Loop() {
		one := sides[len(took)%len(sides)]
		begin := clock.Mono()
		set.Decide(one[0], one[1])
		took = append(took, clock.Mono()-begin)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}
