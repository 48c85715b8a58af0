package report_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/reporttest"
)

func TestFiguresOfARun(t *testing.T) {
	all, more := report.Figures(reporttest.WAN(1, 1))
	counts := map[report.Kind]int{}
	for _, f := range all {
		counts[f.Kind]++
	}
	// 3 scenarios, 3 sizes and 4 systems, of whose 36 cells 3 have no figures;
	// the direct way and that through gateways, each over 3 scenarios.
	want := map[report.Kind]int{
		report.KindLimit: 1, report.KindLines: 3, report.KindBoxes: 9, report.KindHops: 6, report.KindCDF: 9,
		report.KindFirst: 9, report.KindResources: 9, report.KindTimeline: 33,
	}
	for kind, n := range want {
		if counts[kind] != n {
			t.Errorf("%d figures of kind %s, want %d", counts[kind], kind, n)
		}
	}
	if len(counts) != len(want) || more != 0 {
		t.Errorf("kinds %v, %d more", counts, more)
	}
}

// The names are those of files: fit for any file system, none twice, and the
// same for another run of the same cells.
func TestFiguresHaveNames(t *testing.T) {
	all, _ := report.Figures(reporttest.WAN(1, 1))
	again, _ := report.Figures(reporttest.WAN(2, 1.3))
	good := regexp.MustCompile(`^[a-z]+-[a-z0-9-]*[a-z0-9]$`)
	names := map[string]bool{}
	for i, f := range all {
		if !good.MatchString(f.Name) || len(f.Name) > 120 {
			t.Errorf("name %q", f.Name)
		}
		if names[f.Name] {
			t.Errorf("name %q appears twice", f.Name)
		}
		names[f.Name] = true
		if again[i].Name != f.Name {
			t.Errorf("%q is %q in another run", f.Name, again[i].Name)
		}
	}
	for _, want := range []string{"boxes-cloud20-1mb", "lines-edg10-by-size", "timeline-lcl-direct-1kb"} {
		if !names[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestNamesThatWouldBeEqualAreNumbered(t *testing.T) {
	in := reporttest.WAN(1, 1)
	in.Results = in.Results[:2]
	in.Results[0].Cell.Scenario.Name, in.Results[1].Cell.Scenario.Name = "../Ä", "..//Ö"
	in.Results[1].Cell.Size = in.Results[0].Cell.Size
	all, _ := report.Figures(in)
	var boxes []string
	for _, f := range all {
		if f.Kind == report.KindBoxes {
			boxes = append(boxes, f.Name)
		}
	}
	if want := []string{"boxes", "boxes-2"}; !slices.Equal(boxes, want) {
		t.Errorf("names %v, want %v", boxes, want)
	}
}

// Every figure of the run can be written as both kinds of file.
func TestFiguresAreWritten(t *testing.T) {
	all, _ := report.Figures(reporttest.WAN(1, 1))
	for _, f := range all {
		var svg, pdf bytes.Buffer
		if err := f.WriteSVG(&svg); err != nil || !bytes.Contains(svg.Bytes(), []byte("<svg")) {
			t.Errorf("%s as SVG: %v", f.Name, err)
		}
		if err := f.WritePDF(&pdf); err != nil || !bytes.HasPrefix(pdf.Bytes(), []byte("%PDF-")) {
			t.Errorf("%s as PDF: %v", f.Name, err)
		}
	}
}
