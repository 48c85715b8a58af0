package policy_test

import (
	"testing"

	"skerry.dev/skerry/fabric/policy"
)

// A decision is explained by the policies that would have gone before it, but for one
// requirement.
func TestExplain(t *testing.T) {
	web := []policy.Selector{{is(policy.Service, "web")}}
	set := policy.Compile([]policy.Policy{
		{Name: "a", Priority: 1, From: []policy.Selector{{is(policy.Cluster, "c3", "c4")}, {is("x", "y"), is("z", "y")}}, To: web},
		{Name: "b", Priority: 2, From: []policy.Selector{{{Key: "label/app", Operator: policy.Exists}}}, To: web},
		{Name: "c", Priority: 3, Deny: true, From: []policy.Selector{{{Key: policy.Cluster, Operator: policy.NotIn, Values: []string{"c2"}}}}, To: web},
		{Name: "d", Priority: 4, From: []policy.Selector{{{Key: policy.Gateway, Operator: policy.DoesNotExist}}}, To: web},
		{Name: "far", Priority: 5, From: []policy.Selector{{is("x", "y")}}, To: []policy.Selector{{is(policy.Service, "other")}}},
		{Name: "yes", Priority: 6, From: []policy.Selector{{is(policy.Cluster, "c2")}}, To: web},
		{Name: "later", Priority: 7, From: []policy.Selector{{is(policy.Cluster, "c9")}}, To: web},
	})
	d, near := set.Explain(policy.Attributes{policy.Cluster: "c2", policy.Gateway: "g1"}, policy.Attributes{policy.Service: "web"})
	if d.String() != "allowed by yes" {
		t.Errorf("got %s", d)
	}
	want := []string{
		`a: from has cluster "c2", it wants c3 or c4`,
		`b: from has no label/app, it wants one`,
		`c: from has cluster "c2", it wants none of c2`,
		`d: from has gateway "g1", it wants none`,
	}
	for i, n := range near {
		if got := n.Policy.Name + ": " + n.Unmet.String(); i >= len(want) || got != want[i] {
			t.Errorf("got %q", got)
		}
	}
	if len(near) != len(want) {
		t.Errorf("%d are near, want %d", len(near), len(want))
	}
}
