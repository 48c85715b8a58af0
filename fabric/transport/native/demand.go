package native

import "time"

// demand is how many connections streams need at once. What they needed in this span and
// in the one before counts, so that a pool does not follow each breath.
type demand struct {
	now, peak, before int
	rush              time.Time // since when more are open than there are connections
	looks             bool      // whether that is over, soon
}

func (d *demand) begin() {
	d.now++
	d.peak = max(d.peak, d.now)
}

func (d *demand) end() { d.now-- }

// turn begins the next span.
func (d *demand) turn() { d.before, d.peak = d.peak, d.now }

// connections are those there should be: twice what streams needed, for one is busy a
// round trip longer than its stream, at least some ahead, but not more than the most.
func (d *demand) connections(ahead, most int) int {
	return min(max(2*max(d.peak, d.before), ahead), most)
}

// Times of a rush.
const (
	// rushLook is after how long a pool looks whether a rush is over; rushMost bounds it.
	rushLook = 20 * time.Millisecond
	rushMost = 500 * time.Millisecond
)

// rushes says whether more streams are open than there are connections, as since a moment
// ago: who opens and teaches others just then takes the cores from those that wait.
func (d *demand) rushes(now time.Time, connections int) bool {
	if d.now <= connections {
		d.rush = time.Time{}
		return false
	}
	if d.rush.IsZero() {
		d.rush = now
	}
	return now.Sub(d.rush) < rushMost
}

// missing are how many connections there should be more. Those that only a rush needs are
// looked for when it is over.
func (p *Pool) missing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missingLocked()
}

func (p *Pool) missingLocked() int {
	missing := p.demand.connections(p.options.Ahead, p.options.Most) - p.own
	if missing <= 0 || p.own < p.options.Ahead || !p.demand.rushes(time.Now(), p.own) {
		return missing
	}
	if !p.demand.looks {
		p.demand.looks = true
		time.AfterFunc(rushLook, p.look)
	}
	return 0
}

// look is whether a rush is over.
func (p *Pool) look() {
	p.mu.Lock()
	p.demand.looks = false
	p.mu.Unlock()
	p.want()
}
