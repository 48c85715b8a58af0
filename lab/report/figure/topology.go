package figure

import (
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Map is the lab with the way of a request.
type Map struct {
	Clusters []Cluster
	// Hops of a request in order, from the client to the service.
	Hops []Hop
}

// Cluster is a box with its nodes.
type Cluster struct {
	Name  string
	Nodes []Node
}

// Node of a cluster. Role is written below its name: "client", "service",
// "replica" or empty.
type Node struct{ Name, Role string }

// Hop leads from a node to another, both as CLUSTER/NODE. Link is what its
// packets meet, empty for nothing.
type Hop struct{ From, To, Link string }

// Topology draws the clusters as boxes, one below the other in the order in
// which the request comes to them, and arrows along the hops, each with what
// its packets meet. Nodes that the request crosses are filled. Hops to or from
// a node that no cluster has are left out.
//
// The way of an arrow: below every row of nodes there is a band, and another
// below every cluster. An arrow leaves its node into a band, follows a lane of
// that band which it has for itself, with its label, and enters the node at its
// end. Where it has to change from one band to another it takes the gutter at
// the right.
func Topology(t Text, m Map) Figure {
	g := newPlan(m)
	return Figure{
		text:  t.or("Clusters and their nodes, with the way of a request.", m.words()),
		width: pageWidth, height: g.height,
		paint: func(p pen) { g.draw(p) },
	}
}

// Sizes in a topology.
const (
	nodeGap    vg.Length = 12
	nodeHeight vg.Length = 24
	roleHeight vg.Length = 36
	laneHeight vg.Length = 21
	laneLine   vg.Length = 16 // from the lane's top to its line
	rowGap     vg.Length = 9  // between rows of one cluster
	clusterPad vg.Length = 9  // from the box to its nodes
	clusterGap vg.Length = 10 // between boxes, beside lanes
	clusterMax vg.Length = 80 // width of a cluster's name
	gutterRoom vg.Length = 18 // right of the boxes
	perRowMost           = 3
	drawnMax             = 200 // nodes, as many as a lab can have
)

// plan is where everything of a topology lies. Its heights are distances from
// the top.
type plan struct {
	rows   []row
	bands  []band
	spots  map[string]spot
	routes []route
	boxes  []clusterBox
	left   vg.Length
	width  vg.Length // of a node
	perRow int
	height vg.Length
}

// row of nodes, with the bands that its arrows use: above it, below it within
// its cluster, and leave, which is the first one below that leads out.
type row struct {
	cluster             int
	above, below, leave int
	top, bottom         vg.Length
}

// band is room for so many lanes from top on.
type band struct {
	lanes int
	top   vg.Length
}

// clusterBox is a cluster's outline, its name beside its first row.
type clusterBox struct {
	name   string
	box    vg.Rectangle
	middle vg.Length
}

// spot is a node's place.
type spot struct {
	name, role  string
	row, column int
	box         vg.Rectangle
	crossed     bool
	// used counts the arrows at each side that have their place; of is how many
	// there will be.
	used, of [2]int
}

// Sides of a node.
const (
	above = 0
	below = 1
)

// route is a hop with the bands that it takes.
type route struct {
	Hop
	// direct goes to the neighbour in the same row.
	direct bool
	// out and in are the bands where it leaves and arrives, and its lanes there.
	out, in         int
	outLane, inLane int
	leaves, arrives int // sides
}

func newPlan(m Map) *plan {
	g := &plan{spots: map[string]spot{}, perRow: perRowMost}
	clusters := inOrder(m)
	var widest, name vg.Length
	for _, c := range clusters {
		name = max(name, min(widthOf(printable(c.Name)), clusterMax))
		for _, n := range c.Nodes {
			widest = max(widest, widthOf(printable(n.Name)), widthOf(printable(n.Role)))
		}
	}
	g.left = edge + clusterPad + name + 8
	room := pageWidth - edge - gutterRoom - clusterPad - g.left
	for g.perRow > 1 && widest+10 > (room+nodeGap)/vg.Length(g.perRow)-nodeGap {
		g.perRow--
	}
	g.width = (room+nodeGap)/vg.Length(g.perRow) - nodeGap
	g.placeNodes(clusters)
	g.routeHops(m.Hops)
	g.placeRows(clusters)
	g.placeSpots()
	return g
}

// inOrder puts the clusters in the order in which the request comes to them,
// those it does not come to last.
func inOrder(m Map) []Cluster {
	first := func(c Cluster) int {
		for i, h := range m.Hops {
			for j, end := range []string{h.From, h.To} {
				if cluster, _, _ := strings.Cut(end, "/"); cluster == c.Name {
					return 2*i + j
				}
			}
		}
		return 2 * len(m.Hops)
	}
	clusters := slices.Clone(m.Clusters)
	slices.SortStableFunc(clusters, func(a, b Cluster) int { return first(a) - first(b) })
	return clusters
}

// placeNodes gives each node its row and column, and each row its bands.
func (g *plan) placeNodes(clusters []Cluster) {
	above := -1 // nothing is above the first row
	for i, c := range clusters {
		for j := 0; j == 0 || j < len(c.Nodes); j += g.perRow {
			below := len(g.bands)
			g.bands = append(g.bands, band{})
			g.rows = append(g.rows, row{cluster: i, above: above, below: below, leave: below})
			above = below
			for k, n := range c.Nodes[min(j, len(c.Nodes)):min(j+g.perRow, len(c.Nodes))] {
				if len(g.spots) < drawnMax {
					g.spots[c.Name+"/"+n.Name] = spot{name: n.Name, role: n.Role, row: len(g.rows) - 1, column: k}
				}
			}
		}
		above = len(g.bands)
		g.rows[len(g.rows)-1].leave = above
		g.bands = append(g.bands, band{})
	}
}

// routeHops chooses the bands and lanes of every arrow.
func (g *plan) routeHops(hops []Hop) {
	for _, h := range hops {
		from, known := g.spots[h.From]
		to, also := g.spots[h.To]
		if !known || !also || h.From == h.To {
			continue
		}
		r := route{Hop: h, leaves: below, arrives: above}
		a, b := g.rows[from.row], g.rows[to.row]
		if a.cluster == b.cluster {
			a.leave, b.leave = a.below, b.below
		}
		switch {
		case from.row == to.row:
			r.arrives, r.out, r.in = below, a.below, a.below
			apart := from.column - to.column
			r.direct = apart*apart == 1 && h.Link == ""
		case from.row < to.row:
			r.out, r.in = a.leave, b.above
		default:
			r.leaves, r.arrives, r.out, r.in = above, below, a.above, b.leave
		}
		from.crossed, to.crossed = true, true
		if !r.direct {
			from.of[r.leaves]++
			to.of[r.arrives]++
			r.outLane = g.lane(r.out)
			if r.inLane = r.outLane; r.in != r.out {
				r.inLane = g.lane(r.in)
			}
		}
		g.spots[h.From], g.spots[h.To] = from, to
		g.routes = append(g.routes, r)
	}
}

func (g *plan) lane(i int) int {
	g.bands[i].lanes++
	return g.bands[i].lanes - 1
}

// placeRows gives rows, bands and boxes their heights, now that the lanes are
// counted.
func (g *plan) placeRows(clusters []Cluster) {
	tall := make([]vg.Length, len(g.rows))
	for _, s := range g.spots {
		if tall[s.row] = max(tall[s.row], nodeHeight); s.role != "" {
			tall[s.row] = roleHeight
		}
	}
	band := func(i int, y vg.Length) vg.Length {
		g.bands[i].top = y
		return y + laneHeight*vg.Length(g.bands[i].lanes)
	}
	y, top, middle := edge, edge, edge
	for i := range g.rows {
		r := &g.rows[i]
		if i == 0 || g.rows[i-1].cluster != r.cluster {
			top = y
			y += clusterPad
			middle = y + max(tall[i], nodeHeight)/2
		} else {
			y += rowGap
		}
		r.top, r.bottom = y, y+max(tall[i], nodeHeight)
		y = band(r.below, r.bottom)
		if r.leave == r.below {
			continue
		}
		y += clusterPad
		outline := vg.Rectangle{Min: at(edge, top), Max: at(pageWidth-gutterRoom-edge, y)}
		g.boxes = append(g.boxes, clusterBox{clusters[r.cluster].Name, outline, middle})
		y = band(r.leave, y) + clusterGap
	}
	g.height = max(y-clusterGap, edge+lineStep) + edge
}

func (g *plan) placeSpots() {
	for key, s := range g.spots {
		x := g.left + (g.width+nodeGap)*vg.Length(s.column)
		s.box = vg.Rectangle{Min: at(x, g.rows[s.row].top), Max: at(x+g.width, g.rows[s.row].bottom)}
		g.spots[key] = s
	}
}

// laneY is the height of a lane's line.
func (g *plan) laneY(i, lane int) vg.Length {
	return g.bands[i].top + laneHeight*vg.Length(lane) + laneLine
}

// port is where the next arrow meets a side of a node.
func (g *plan) port(key string, side int) vg.Point {
	s := g.spots[key]
	aside := (vg.Length(s.used[side]) - vg.Length(s.of[side]-1)/2) * min(16, g.width/vg.Length(s.of[side]+1))
	s.used[side]++
	g.spots[key] = s
	y := s.box.Min.Y
	if side == below {
		y = s.box.Max.Y
	}
	return at((s.box.Min.X+s.box.Max.X)/2+aside, y)
}
