package figure

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/structure.txt anew")

// sizeMax keeps a page of hundred figures below 5 MB.
const sizeMax = 40 << 10

// TestStructure compares what every example holds with what it held when eyes
// looked at it: its size, description, texts and paths.
func TestStructure(t *testing.T) {
	var all strings.Builder
	figures := examples()
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		f := figures[name]
		t.Run(name, func(t *testing.T) {
			d := inline(t, f)
			d.check(t)
			all.WriteString("== " + name + " " + d.structure())
			if size := len(f.Inline("a")); size > sizeMax {
				t.Errorf("the figure is %d bytes, more than %d", size, sizeMax)
			}
		})
	}
	golden := filepath.Join("testdata", "structure.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(all.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("line %d of %s is not %q any more; look at the figures (FIGURES=FOLDER), then -update", i+1, golden, line)
		}
	}
}

// TestDocuments: an SVG document holds what the page does, on white.
func TestDocuments(t *testing.T) {
	for name, f := range examples() {
		var svg bytes.Buffer
		if err := f.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		d := parse(t, svg.String())
		if d.structure() != inline(t, f).structure() || d.title != f.Title() || d.desc != printable(f.Description()) {
			t.Errorf("%s: the document differs from the page", name)
		}
		for _, part := range []string{`xmlns="http://www.w3.org/2000/svg"`, `fill="#ffffff"`, "pt\""} {
			if !strings.Contains(svg.String(), part) {
				t.Errorf("%s: the document has no %s", name, part)
			}
		}
	}
}

// TestInlineTakesThePagesColour: what is drawn in black must show on a dark
// page too. Black over filled cells stays.
func TestInlineTakesThePagesColour(t *testing.T) {
	for name, f := range examples() {
		svg := string(f.Inline("a"))
		if strings.Contains(svg, "#000000") || !strings.Contains(svg, "currentColor") {
			t.Errorf("%s has a black of its own", name)
		}
	}
	heat := string(examples()["heat"].Inline("a"))
	for _, fixed := range []string{"fill:#010101", "fill:#FFFFFF"} {
		if !strings.Contains(heat, fixed) {
			t.Errorf("text over cells is never %s", fixed)
		}
	}
}

func TestHostileText(t *testing.T) {
	const name = `<script>alert(1)</script>"'&]]>` + "\x00\u202e\xff"
	s := System{Name: name}
	for kind, f := range everyKind(name, s) {
		svg := string(f.Inline(`a"><script>`))
		if strings.Contains(svg, "<script") {
			t.Errorf("%s: a name became an element", kind)
		}
		d := inline(t, f) // fails unless it is XML
		if !strings.HasPrefix(d.title, `<script>alert(1)</script>"'&]]>`) {
			t.Errorf("%s: the title is %q", kind, d.title)
		}
		var pdf bytes.Buffer
		if err := f.WritePDF(&pdf); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPDF(t *testing.T) {
	for _, name := range []string{"boxes", "heat", "topology-large"} {
		var first, second bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &second} {
			if err := examples()[name].WritePDF(out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(first.Bytes(), []byte("%PDF-")) || !bytes.HasSuffix(bytes.TrimSpace(first.Bytes()), []byte("%%EOF")) {
			t.Errorf("%s is no PDF", name)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: the same figure gives two PDFs", name)
		}
		dates := pdfDate.FindAllString(first.String(), -1)
		if len(dates) != 2 || !strings.HasSuffix(dates[0], "(D:20000101000000)") || !strings.HasSuffix(dates[1], "(D:20000101000000)") {
			t.Errorf("%s has the dates %q", name, dates)
		}
		if !bytes.Contains(first.Bytes(), []byte("/FontFile2")) {
			t.Errorf("%s does not embed its font", name)
		}
	}
}

// TestTogether: a report draws its figures side by side.
func TestTogether(t *testing.T) {
	f := examples()["lines"]
	want := f.Inline("a")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var pdf bytes.Buffer
			if err := f.WritePDF(&pdf); err != nil || f.Inline("a") != want {
				t.Errorf("drawn twice at a time it differs: %v", err)
			}
		})
	}
	all.Wait()
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestWriteFails(t *testing.T) {
	f := examples()["boxes"]
	if err := f.WriteSVG(full{}); !errors.Is(err, errFull) {
		t.Errorf("SVG: %v", err)
	}
	if err := f.WritePDF(full{}); !errors.Is(err, errFull) {
		t.Errorf("PDF: %v", err)
	}
}

// TestNoTemporaryFiles runs in a process of its own, since the library makes
// its font once.
func TestNoTemporaryFiles(t *testing.T) {
	if os.Getenv("FIGURE_CHILD") != "" {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
		var pdf bytes.Buffer
		err := examples()["heat"].WritePDF(&pdf)
		if err == nil || !strings.Contains(err.Error(), "draw PDF: ") || pdf.Len() > 0 {
			t.Errorf("without a folder for temporary files: %v and %d bytes", err, pdf.Len())
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestNoTemporaryFiles$")
	child.Env = append(os.Environ(), "FIGURE_CHILD=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWriteExamples writes every example to the folder that FIGURES names, for
// eyes.
func TestWriteExamples(t *testing.T) {
	folder := os.Getenv("FIGURES")
	if folder == "" {
		t.Skip("FIGURES names no folder to write the examples to")
	}
	for name, f := range examples() {
		var svg, pdf bytes.Buffer
		if err := errors.Join(f.WriteSVG(&svg), f.WritePDF(&pdf)); err != nil {
			t.Fatal(err)
		}
		for ext, content := range map[string][]byte{".svg": svg.Bytes(), ".pdf": pdf.Bytes(), ".html": []byte(f.Inline("figure-" + name))} {
			if err := os.WriteFile(filepath.Join(folder, name+ext), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
