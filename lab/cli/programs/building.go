package programs

import (
	"fmt"
	"io"
	"time"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cli/verb"
)

// Builder builds the programs of clusters, and tells on stderr what it builds, how far
// that is and what time is left.
func Builder(env verb.Env, now func() time.Time) gobuild.Builder {
	p := &building{w: env.Stderr, now: now, terminal: console.IsTerminal(env.Stderr)}
	return gobuild.Builder{Catalogue: kube.Catalogue(), Tell: p.tell, Progress: p.progress}
}

// buildingPause lies between two lines of progress, where they are not written over.
const buildingPause = 15 * time.Second

// building shows how far a build is.
type building struct {
	w        io.Writer
	now      func() time.Time
	terminal bool
	program  string
	// began is when the program did, shown when its last line was.
	began, shown time.Time
}

func (p *building) tell(line string) { p.clear(); _, _ = fmt.Fprintln(p.w, line) }

// clear takes the line of progress away.
func (p *building) clear() {
	if p.terminal {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *building) progress(program string, done, total int) {
	now := p.now()
	if program != p.program {
		p.program, p.began, p.shown = program, now, now
	}
	text := fmt.Sprintf("%s: %d of %d packages%s", program, done, total, timeLeft(now.Sub(p.began), done, total))
	switch {
	case done == total:
		p.clear()
	case p.terminal:
		p.clear()
		_, _ = fmt.Fprint(p.w, text)
	case now.Sub(p.shown) >= buildingPause:
		p.shown = now
		_, _ = fmt.Fprintln(p.w, text)
	}
}

// timeLeft is ", 3m left" by what has been done; nothing where that says little.
func timeLeft(took time.Duration, done, total int) string {
	const telling = 20 // packages
	if done < telling {
		return ""
	}
	left := time.Duration(float64(took) * float64(total-done) / float64(done))
	return ", about " + left.Round(time.Second).String() + " left"
}
