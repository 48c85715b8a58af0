package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry.dev/skerry/lab/claim"
)

type claimView struct {
	claim.Judgement
	// Class is how the result looks: good, bad or nothing.
	Class, Sign string
}

type verdictView struct {
	Objective, Seen string
	Met             bool
}

func claimsOf(in Input) []claimView {
	var all []claimView
	for _, c := range in.Claims {
		v := claimView{Judgement: c, Sign: "?"}
		switch c.Result {
		case claim.Holds:
			v.Class, v.Sign = "good", "✓"
		case claim.Fails:
			v.Class, v.Sign = "bad", "✗"
		}
		all = append(all, v)
	}
	return all
}

func objectivesOf(in Input) []verdictView {
	var all []verdictView
	for _, d := range in.Verdicts {
		all = append(all, verdictView{objectiveText(d.Objective), d.Seen, d.Met})
	}
	return all
}

// summaryOf is the run in a paragraph, a sentence each for its cells, its
// claims, its objectives and its links.
func summaryOf(in Input) []string {
	if len(in.Results) == 0 {
		return []string{"No cell was run."}
	}
	sentences := []string{cellsText(in.Results)}
	if text := claimsText(in.Claims); text != "" {
		sentences = append(sentences, text)
	}
	if text := objectivesText(in.Verdicts); text != "" {
		sentences = append(sentences, text)
	}
	if text := proofsText(in.Results); text != "" {
		sentences = append(sentences, text)
	}
	return sentences
}

// cellsText is "36 cells: 35 measured, 1 rejected."
func cellsText(results []Result) string {
	counts := map[string]int{}
	for _, r := range results {
		counts[r.Missing()]++
	}
	text := fmt.Sprintf("%s: %d measured", counted(len(results), "cell"), counts[""])
	for _, word := range []string{wordRejected, wordLacks, wordNotRun, wordNoAnswer} {
		if counts[word] > 0 {
			text += fmt.Sprintf(", %d %s", counts[word], word)
		}
	}
	return text + "."
}

// claimsText is "4 claims: 2 hold, 1 fails (faster), 1 inconclusive (by-size)."
func claimsText(claims []claim.Judgement) string {
	if len(claims) == 0 {
		return ""
	}
	var parts []string
	for _, word := range []claim.Result{claim.Holds, claim.Fails, claim.Inconclusive, claim.NotRunnable} {
		var names []string
		for _, c := range claims {
			if c.Result == word {
				names = append(names, c.Name)
			}
		}
		text := fmt.Sprintf("%d %s", len(names), word)
		if len(names) > 1 {
			// "2 hold", "2 fail": the others have no plural.
			text = strings.TrimSuffix(text, "s")
		}
		switch {
		case len(names) == 0:
			continue
		case word != claim.Holds:
			text += " (" + strings.Join(names, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return counted(len(claims), "claim") + ": " + strings.Join(parts, ", ") + "."
}

func objectivesText(verdicts []Verdict) string {
	missed := 0
	for _, d := range verdicts {
		if !d.Met {
			missed++
		}
	}
	switch {
	case len(verdicts) == 0:
		return ""
	case missed == 0:
		return counted(len(verdicts), "objective") + " met."
	}
	return fmt.Sprintf("%d of %s missed.", missed, counted(len(verdicts), "objective"))
}

// proofsText says how the proofs of the links went.
func proofsText(results []Result) string {
	tries, rejected := 0, 0
	for _, r := range results {
		// A cell whose links do nothing is proven by nothing.
		if !slices.ContainsFunc(r.Proofs, func(t Try) bool { return len(t.Directions) > 0 }) {
			continue
		}
		for _, t := range r.Proofs {
			tries++
			if t.Rejected() {
				rejected++
			}
		}
	}
	switch {
	case tries == 0:
		return ""
	case rejected == 0:
		return fmt.Sprintf("The links did what was asked of them in all %s that cross them.", counted(tries, "repetition"))
	}
	return fmt.Sprintf("In %d of %s the links did not do what was asked of them; those count nowhere.",
		rejected, counted(tries, "tried repetition"))
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
