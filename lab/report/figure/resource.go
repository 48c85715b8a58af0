package figure

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Use is what the processes of one name consumed.
type Use struct {
	// System that the process belongs to: it gives the colour.
	System System
	// Name of the process, and the Node where it ran.
	Name, Node string
	// CPU time, in ms: of a request or of a repetition, as CPU in Uses says.
	CPU float64
	// Memory at most, in bytes.
	Memory float64
}

// Uses are the rows of Resources.
type Uses struct {
	// CPU says what the CPU time is of, such as "CPU per request".
	CPU  string
	Rows []Use
}

// Resources draws CPU time and peak memory side by side, a row for each process
// with its values: bars begin at 0, so that lengths can be compared.
func Resources(t Text, u Uses) Figure {
	const step, bar = vg.Length(38), vg.Length(10)
	words := make([]string, len(u.Rows))
	var cpu, memory []float64
	for i, r := range u.Rows {
		words[i] = fmt.Sprintf("%s: %s ms, %s MiB", r.label(), orNone(r.CPU), orNone(r.Memory/mebi))
		cpu, memory = append(cpu, r.CPU), append(memory, r.Memory/mebi)
	}
	if u.CPU == "" {
		u.CPU = "CPU"
	}
	height := lineStep + 3*edge + step*vg.Length(max(len(u.Rows), 1))
	return Figure{
		text:  t.or(u.CPU+" in ms and peak memory in MiB, one row for each process.", words),
		width: pageWidth, height: height,
		paint: func(p pen) {
			half := pageWidth / 2
			columns := []struct {
				name   string
				values []float64
				from   vg.Length
			}{{u.CPU + ", ms", cpu, edge}, {"peak memory, MiB", memory, half + edge}}
			for _, c := range columns {
				p.write(fit(c.name, half-2*edge), at(c.from, height-edge), text.XLeft, text.YTop)
				_, most, _ := extent(c.values...)
				room := half - 2*edge
				for _, v := range c.values {
					room = min(room, half-3*edge-widthOf(orNone(v)))
				}
				for i, v := range c.values {
					y := height - lineStep - 2*edge - step*vg.Length(i) - 26
					p.bar(Hue(u.Rows[i].System.Index), v, most, vg.Rectangle{
						Min: at(c.from, y-bar/2), Max: at(c.from+room, y+bar/2)})
				}
			}
			for i, r := range u.Rows {
				y := height - lineStep - 2*edge - step*vg.Length(i)
				p.line(stroke{color: ink(34), width: 0.5}, at(edge, y), at(pageWidth-edge, y))
				p.write(fit(r.label(), pageWidth-2*edge), at(edge, y-11), text.XLeft, text.YCenter)
			}
		},
	}
}

const mebi = 1 << 20

func (u Use) label() string {
	if u.Node == "" {
		return u.Name
	}
	return u.Name + " on " + u.Node
}

// orNone is a value in words, or a dash for what was not measured.
func orNone(v float64) string {
	if !finite(v) || v < 0 {
		return "–"
	}
	return number(v)
}

// bar draws a value's share of the greatest, then the value.
func (p pen) bar(hue color.Color, v, most float64, room vg.Rectangle) {
	end := room.Min.X
	if finite(v) && v > 0 {
		end += room.Size().X * vg.Length(v/most)
		p.fill(hue, rectangle(room.Min.X, room.Min.Y, max(end, room.Min.X+0.8), room.Max.Y))
		end += 4
	}
	p.write(orNone(v), at(end, (room.Min.Y+room.Max.Y)/2), text.XLeft, text.YCenter)
}
