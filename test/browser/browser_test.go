// Package browser_test looks at the lab's pages as a reader does: in Chromium,
// wide, on a phone, in the dark and on paper. It wants of the layout what can be
// measured, and compares no pixels.
package browser_test

import (
	"bytes"
	"context"
	_ "embed" // what is measured in a page
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/compare"
	"skerry.dev/skerry/lab/report/reporttest"
)

//go:embed measure.js
var measureJS string

// openAll opens what is folded.
const openAll = `document.querySelectorAll("details").forEach((d) => { d.open = true })`

// layout is what measure.js finds.
type layout struct {
	Overflow                      float64
	Wide, Empty, Cut, Faint, Lost []string
	Figures                       int
	Smallest                      float64
	Paper                         string
}

// pages are what the lab writes, of an imagined run of 36 cells.
func pages() map[string]func(io.Writer) error {
	a, b := reporttest.WAN(1, 1), reporttest.WAN(2, 1.08)
	b.Provenance.Kernel = "Linux 6.13.1-amd64"
	return map[string]func(io.Writer) error{
		"report": func(w io.Writer) error { return report.HTML(w, a) },
		"compare": func(w io.Writer) error {
			sides := []compare.Side{{Name: "runs/before", Input: a}, {Name: "runs/after", Input: b}}
			o := compare.Options{Rule: measure.Rule{Alpha: 0.01}, Margin: 0.05}
			return compare.HTML(w, compare.Runs(sides[0], sides[1], o, rand.New(rand.NewPCG(1, 1))))
		},
	}
}

func write(t *testing.T, name string, write func(io.Writer) error) (url string) {
	t.Helper()
	var text bytes.Buffer
	if err := write(&text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".html")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// browser starts Chromium for a test, or skips the test where it is missing.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: './setup test' installs it")
	}
	// Chromium's own sandbox refuses root, and the page is ours.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// media is what the reader has asked for, or the paper.
func media(params emulation.SetEmulatedMediaParams) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, params)
		return err
	})
}

func scheme(name string) chromedp.Action[chromedp.Void] {
	return media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// One browser serves all: starting it is what takes longest.
func TestPages(t *testing.T) {
	ctx := browser(t)
	t.Run("fit", func(t *testing.T) { pagesFit(ctx, t) })
	t.Run("print", func(t *testing.T) { reportPrints(ctx, t) })
	t.Run("structure", func(t *testing.T) { reportHasItsStructure(ctx, t) })
}

func pagesFit(ctx context.Context, t *testing.T) {
	for name, content := range pages() {
		url := write(t, name, content)
		for _, screen := range []struct {
			name    string
			width   int64
			colours string
			paper   string
		}{
			{"wide", 1280, "light", "rgb(255, 255, 255)"},
			{"tablet", 768, "light", "rgb(255, 255, 255)"},
			{"phone", 360, "light", "rgb(255, 255, 255)"},
			{"dark", 1280, "dark", "rgb(21, 25, 30)"},
			{"dark phone", 360, "dark", "rgb(21, 25, 30)"},
		} {
			t.Run(name+" "+screen.name, func(t *testing.T) {
				got := look(ctx, t, url, screen.width, screen.colours)
				if got.Overflow > 0 {
					t.Errorf("the page is %v px too wide", got.Overflow)
				}
				for what, found := range map[string][]string{
					"reach beyond the page": got.Wide, "figures without a size": got.Empty, "words cut off": got.Cut,
					"text hard to read": got.Faint, "first columns out of sight": got.Lost,
				} {
					if len(found) > 0 {
						t.Errorf("%s: %d, the first: %s", what, len(found), strings.Join(found[:min(len(found), 5)], "\n\t"))
					}
				}
				if got.Figures == 0 || got.Smallest < 280 {
					t.Errorf("%d figures, the smallest %v px wide", got.Figures, got.Smallest)
				}
				if got.Paper != screen.paper {
					t.Errorf("the paper is %s, want %s", got.Paper, screen.paper)
				}
			})
		}
	}
}

// look opens the page with everything unfolded, measures it, and holds that the
// browser has nothing to complain of.
func look(ctx context.Context, t *testing.T, url string, width int64, colours string) layout {
	t.Helper()
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	said := complaints(tab, t)
	err := chromedp.Do(tab, chromedp.EmulateViewport(width, 800), scheme(colours), chromedp.Navigate(url),
		chromedp.Evaluate[chromedp.Void](openAll))
	if err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(tab, chromedp.Evaluate[layout](measureJS))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range said() {
		t.Errorf("the browser says: %s", text)
	}
	return got
}

// complaints gathers what a tab logs and throws from now on.
func complaints(tab context.Context, t *testing.T) (said func() []string) {
	t.Helper()
	var lock sync.Mutex
	var all []string
	err := chromedp.Listen(tab, func(event any) {
		lock.Lock()
		defer lock.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			all = append(all, e.Entry.Text)
		case *runtime.EventExceptionThrown:
			all = append(all, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			all = append(all, "console: "+string(e.Type))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		lock.Lock()
		defer lock.Unlock()
		return slices.Clone(all)
	}
}

var pdfPage = regexp.MustCompile(`/Type\s*/Page\b[^s]`)

// On paper everything is unfolded, though nobody clicks, and fits.
func reportPrints(ctx context.Context, t *testing.T) {
	url := write(t, "report", pages()["report"])
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	const folded = `[...document.querySelectorAll("details")].filter((d) => [...d.children].slice(1)
		.some((c) => !c.checkVisibility())).map((d) => d.textContent.trim().slice(0, 40))`
	// A4 less its margins of 14 mm, in CSS pixels.
	const paperWidth = 688
	paper := media(emulation.SetEmulatedMediaParams{Media: "print"})
	if err := chromedp.Do(tab, chromedp.EmulateViewport(paperWidth, 800), paper, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	hidden, err := chromedp.Run(tab, chromedp.Evaluate[[]string](folded))
	if err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(tab, chromedp.Evaluate[layout](measureJS))
	if err != nil {
		t.Fatal(err)
	}
	if got.Overflow > 0 {
		t.Errorf("tables are %v px wider than the paper", got.Overflow)
	}
	pdf, err := chromedp.Run(tab, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPreferCSSPageSize()))
	if err != nil {
		t.Fatal(err)
	}
	if len(hidden) > 0 {
		t.Errorf("folded on paper: %q", hidden)
	}
	if n := len(pdfPage.FindAll(pdf, -1)); n < 8 || n > 30 {
		t.Errorf("%d pages on paper, want 8 to 30", n)
	}
}

// The structure that a reader finds, whatever it looks like.
const wantOutline = `h1 wan-echo
h2 Claims and objectives: 2 tables
h2 Response times: 2 tables
h2 Figures: 45 figures
h3 Share of the physical limit
h3 Along the factors
h3 By system
h3 The tail
h3 First requests
h3 Over time
h2 Links, proven: 1 tables
h2 Rejected and failed: 1 tables
h2 What physics allows: 1 tables
h2 Resource use: 9 figures, 1 tables
h3 As figures
h3 As a table
h2 The way of a request: 6 figures
h2 What was run: 1 tables
h2 How to read this
h2 How to redraw this`

func reportHasItsStructure(ctx context.Context, t *testing.T) {
	url := write(t, "report", pages()["report"])
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	const outline = `[...document.querySelectorAll("h1, h2, h3")].map((h) => {
		const section = h.tagName === "H2" ? h.closest("section") : null;
		const counts = section ? ["svg", "table"].map((e) => [section.querySelectorAll(e).length, e === "svg" ? "figures" : "tables"])
			.filter(([n]) => n > 0).map(([n, what]) => n + " " + what).join(", ") : "";
		return h.tagName.toLowerCase() + " " + h.textContent + (counts ? ": " + counts : "");
	}).join("\n")`
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(tab, chromedp.Evaluate[string](outline))
	if err != nil {
		t.Fatal(err)
	}
	if got != wantOutline {
		t.Errorf("got\n%s\nwant\n%s", got, wantOutline)
	}
}
