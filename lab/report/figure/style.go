package figure

import (
	"image/color"

	"gonum.org/v1/plot/vg"
)

// System is one of those that a figure compares.
type System struct {
	Name string
	// Index among all systems of the report, from 0: the same one gives the same
	// colour, dash and marker in every figure.
	Index int
}

// Hue is the colour of the i-th system: Okabe and Ito's palette, which the
// colour-blind can tell apart, without its yellow and black. All lie between
// white and black, so that they show on either. It repeats after six.
func Hue(i int) color.NRGBA {
	palette := [...]color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
	}
	return palette[modulo(i, len(palette))]
}

// dashOf is the line of the i-th system, so that systems differ in grey too.
// It repeats after five: no two of thirty systems share both hue and dash.
func dashOf(i int) []vg.Length {
	dashes := [...][]vg.Length{nil, {6, 2.5}, {1.5, 2}, {7, 2, 1.5, 2}, {3, 1.5}}
	return dashes[modulo(i, len(dashes))]
}

func modulo(i, n int) int { return (i%n + n) % n }

// ink is black, which a page shows in its text colour.
func ink(alpha uint8) color.NRGBA { return color.NRGBA{A: alpha} }
