package main

import (
	"os"
	"strings"
	"testing"
)

// A run that is not kept is counted as it is published.
func TestPublishedRates(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("docs", 0o755); err != nil {
		t.Fatal(err)
	}
	text := `<!-- table rap-f7 -->
3 repetitions of 2 cells on 1 May 2026, commit 0123456, seed 7:

| answered a second | rap | skerry-proxy:cost |
| --- | --: | --: |
| near | 9.0 | 10.0 |
<!-- end rap-f7 -->
<!-- table rap-f8 -->
3 repetitions of 2 cells on 1 May 2026, commit 0123456, seed 7:
<!-- end rap-f8 -->
`
	if err := os.WriteFile(published, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rates, run, err := lastRates("rap-f7")
	if best, of := rates.Best(costSystem); err != nil || best != 1 || of != 1 || run != "rap-f7 of 0123456 (docs/reproduction.md)" {
		t.Errorf("%d of %d in %q, %v", best, of, run, err)
	}
	for _, name := range []string{"rap-f8", "rap-burst"} {
		if _, _, err := lastRates(name); err == nil || !strings.Contains(err.Error(), published+": ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, which the page does not have: %v", name, err)
		}
	}
}
