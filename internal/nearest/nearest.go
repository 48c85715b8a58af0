// Package nearest finds the word that a person may have meant, for the hints of
// errors. It corrects nothing by itself; start at Hint.
package nearest

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

const (
	wordMax  = 64 // longer words get no suggestion: the cost is quadratic
	listMax  = 12 // known words that a hint repeats
	knownMax = 1000
)

// Word is the known word at the least edit distance, and whether it is near
// enough to be worth a question: at most a third of its letters differ, or two.
// The first of equals wins.
func Word(word string, known []string) (string, bool) {
	if len(word) > wordMax {
		return "", false
	}
	best, distance := "", wordMax
	for _, k := range known[:min(len(known), knownMax)] {
		if len(k) > wordMax {
			continue
		}
		if d := levenshtein.Distance(strings.ToLower(word), strings.ToLower(k), nil); d < distance {
			best, distance = k, d
		}
	}
	return best, best != "" && distance <= max(len(best)/3, min(2, len(best)-1))
}

// Hint asks for the nearest known word, or where none is near lists what there
// is, but for words that are too long to read.
func Hint(word string, known []string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return len(k) > wordMax })
	if best, ok := Word(word, known); ok {
		return "did you mean " + best + "?"
	}
	switch {
	case len(known) == 0:
		return "there are none"
	case len(known) == 1:
		return "there is only " + known[0]
	case len(known) > listMax:
		return "there are " + strings.Join(known[:listMax], ", ") + " and others"
	}
	return "there are " + strings.Join(known, ", ")
}
