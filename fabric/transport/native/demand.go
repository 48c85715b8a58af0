package native

// demand is how many connections streams need at once. What they needed in this span and
// in the one before counts, so that a pool does not follow each breath.
type demand struct{ now, peak, before int }

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
