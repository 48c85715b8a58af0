package run

import (
	"time"

	"skerry.dev/skerry/lab/measure"
)

// Progress is told how a run goes on.
type Progress interface {
	// Turn is told before each repetition of a cell, counted from 1.
	Turn(index, total int, turn Turn, left time.Duration)
	// Done is told after a repetition that counts what it measured.
	Done(turn Turn, measured *measure.Gathered)
	// Ended is told after the last turn, also when that failed.
	Ended()
	// Note is told what the user should know at once.
	Note(text string)
}
