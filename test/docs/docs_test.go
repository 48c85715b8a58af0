// Package docs_test holds the pages to the code: what is generated is current,
// the reference names every key, and the files shown in fenced blocks are read
// as Skerry reads them. It judges no prose; test/tidy follows the links and
// test/readme runs the README's commands. Start reading at TestGenerated.
package docs_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	fabric "skerry.dev/skerry/fabric/cli"
	"skerry.dev/skerry/lab/cli"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
	overlay "skerry.dev/skerry/overlay/cli"
	proxy "skerry.dev/skerry/proxy/cli"
)

const root = "../.."

// Generating again, from the root of the module, changes nothing.
func TestGenerated(t *testing.T) {
	t.Chdir(root)
	dir := t.TempDir()
	status := cli.Execute(t.Context(), verb.Env{
		Args: []string{"gen", dir}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}, fabric.Command(time.Now), proxy.Command(), overlay.Command())
	if status != 0 {
		t.Fatalf("skerry gen: exit status %d", status)
	}
	want := texts(t, dir)
	if len(want) < 10 {
		t.Fatalf("generated %v: too few to be all", slices.Sorted(maps.Keys(want)))
	}
	got := texts(t, "docs")
	for name, text := range want {
		if got[name] != text {
			t.Errorf("docs/%s is not what the code says: run 'skerry gen docs'", name)
		}
	}
	for name := range got {
		if _, generated := want[name]; !generated && strings.HasPrefix(name, "man/") {
			t.Errorf("docs/%s: its command has gone: run 'skerry gen docs'", name)
		}
	}
}

// texts reads the files below a folder, by path.
func texts(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The reference of the experiment file names every key and every word that a
// key may hold.
func TestReference(t *testing.T) {
	page := read(t, "docs/experiment-file.md")
	var schema struct {
		Properties map[string]any `json:"properties"`
		Defs       map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(read(t, "docs/experiment.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	words := slices.Concat(experiment.Workloads(), experiment.Metrics(), slices.Collect(maps.Keys(schema.Properties)))
	for _, definition := range schema.Defs {
		words = append(words, keysOf(definition)...)
	}
	if len(words) < 30 {
		t.Fatalf("the schema has only %v: is this its form?", words)
	}
	for _, word := range words {
		if !strings.Contains(page, "`"+word+"`") && !strings.Contains(page, "."+word+"`") {
			t.Errorf("docs/experiment-file.md does not name %q", word)
		}
	}
}

// keysOf lists the properties of a definition.
func keysOf(definition any) []string {
	object, _ := definition.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	return slices.Collect(maps.Keys(properties))
}

// TestBlocks reads every YAML block of the pages that is a whole file: an
// experiment has a topology, a plug-in says how it runs on hosts.
func TestBlocks(t *testing.T) {
	experiments, plugins := 0, 0
	for _, page := range []string{"README.md", "docs/guide.md", "docs/systems.md", "docs/experiment-file.md"} {
		for _, text := range blocks(read(t, page), "yaml") {
			switch {
			case strings.Contains(text, "\ntopology:"):
				experiments++
				if _, err := experiment.Read(page, []byte(text)); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			case strings.Contains(text, "\nhosts:"):
				plugins++
				if err := render(text); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	if experiments == 0 || plugins == 0 {
		t.Errorf("found %d experiments and %d plug-ins: the pages show at least one of each", experiments, plugins)
	}
}

// render loads a plug-in without files of its own, for the quickstart's topology.
func render(manifest string) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(manifest, "name: "), "\n")
	tree := fstest.MapFS{name + "/system.yaml": {Data: []byte(manifest)}}
	plugin, err := system.LoadPlugin(tree, name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "experiments/quickstart.yaml"))
	if err != nil {
		return err
	}
	e, err := experiment.Read("quickstart.yaml", text)
	if err != nil {
		return err
	}
	values, err := system.ValuesFor(&e.Topology, "/dir", 1)
	if err != nil {
		return err
	}
	_, err = plugin.Render(values)
	return err
}

// blocks lists the fenced blocks of a language.
func blocks(page, language string) []string {
	var all []string
	parts := strings.Split(page, "\n```")
	for i := 1; i < len(parts); i += 2 { // what stands between two fences
		if text, ok := strings.CutPrefix(parts[i], language+"\n"); ok {
			all = append(all, text+"\n")
		}
	}
	return all
}

func TestBlocksOfPage(t *testing.T) {
	const page = "a\n```yaml\nname: x\nhosts: y\n```\nb\n```sh\nname: z\n```\n\n```yaml\nq: 1\n```\n"
	got := blocks(page, "yaml")
	if want := []string{"name: x\nhosts: y\n", "q: 1\n"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
