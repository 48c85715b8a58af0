package sim

import (
	"fmt"
	"time"
)

// Ratios are the concurrent requests on each worker in Table 2 of "Load-Balancing of
// Kubernetes-Based Edge Computing Infrastructure Using Resource Adaptive Proxy",
// section 5.2: cases 1 to 16.
func Ratios() [][4]int {
	return [][4]int{
		{1, 0, 0, 0}, {2, 0, 0, 0}, {4, 0, 0, 0}, {8, 0, 0, 0}, {16, 0, 0, 0}, {32, 0, 0, 0},
		{2, 2, 2, 2}, {4, 4, 4, 4}, {8, 8, 8, 8}, {16, 16, 16, 16},
		{8, 4, 4, 4}, {16, 4, 4, 4}, {32, 4, 4, 4},
		{32, 2, 1, 1}, {16, 8, 8, 4}, {12, 8, 8, 8},
	}
}

// Closed is a case of the paper's cluster: four workers of two cores whose users ask
// again once they are answered.
func Closed(users [4]int, delay time.Duration) Case {
	c := Case{
		Name:       fmt.Sprintf("%d:%d:%d:%d", users[0], users[1], users[2], users[3]),
		Delay:      delay,
		Inside:     75 * time.Microsecond,
		Service:    1330 * time.Microsecond,
		RoundTrips: 2,
		Reports:    Reports{Usage: 15 * time.Second, Queue: 100 * time.Millisecond},
		From:       15 * time.Second, Until: time.Minute,
	}
	for _, n := range users {
		c.Nodes = append(c.Nodes, Node{Cores: 2, Users: n})
	}
	return c
}

// Cases are the 16 of the paper and four that it lacks, with a delay between workers: a
// burst that moves on, a remote that fails fast, a node that is slow, and requests that
// come whether or not those before were answered.
func Cases(delay time.Duration) []Case {
	var list []Case
	for _, users := range Ratios() {
		list = append(list, Closed(users, delay))
	}
	burst := Closed([4]int{32, 2, 1, 1}, delay)
	burst.Name, burst.Moves = "a burst that moves", 2*time.Second
	failing := Closed([4]int{32, 2, 1, 1}, delay)
	failing.Name, failing.Nodes[1].Fails = "a remote that fails fast", true
	slow := Closed([4]int{16, 4, 4, 4}, delay)
	slow.Name, slow.Nodes[1].Slower = "a slow node", 4
	open := Closed([4]int{}, delay)
	open.Name = "open loop"
	for i, rate := range []float64{2400, 800, 400, 400} {
		open.Nodes[i].PerSecond = rate
	}
	return append(list, burst, failing, slow, open)
}
