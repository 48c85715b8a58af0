package system

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// Pod is where a daemon runs on kubernetes, as a Deployment of its name. Its command is one
// of the programs that the system needs, with arguments and without a shell: an image is made
// of it.
type Pod struct {
	// Port at which it listens for TCP and UDP, and NodePort at which its node takes what is
	// for it.
	Port     int `yaml:"port"`
	NodePort int `yaml:"nodePort"`
	// Folders of the working directory, which it has as Secrets, each at / and its name.
	Folders []string `yaml:"folders,omitempty"`
}

// Deployment is a daemon in a pod, as a lab is to make it.
type Deployment struct {
	Name string
	Node topology.Ref
	// Program is the path of what the image is made of.
	Program string
	Args    []string
	Port    int
	// NodePort at which the node takes requests for it.
	NodePort int
	// Folders of the machine, and the file that takes what it says.
	Folders []string
	Log     string
}

// deploy has a daemon run in a pod at a node.
func (p *part) deploy(ctx context.Context, node topology.Ref, s Step, text string) error {
	program, err := p.podProgram(s)
	if err != nil {
		return err
	}
	d := Deployment{
		Name: s.Daemon, Node: node, Program: program, Args: strings.Fields(text)[1:],
		Port: s.Pod.Port, NodePort: s.Pod.NodePort, Log: p.log(s.Daemon),
	}
	for _, folder := range s.Pod.Folders {
		d.Folders = append(d.Folders, filepath.Join(p.values.Dir, folder))
	}
	running, err := p.lab.Deploy(ctx, d)
	if err == nil {
		p.daemons = append(p.daemons, daemon{s.Daemon, node, running})
	}
	return err
}

// Installation is a daemon that a manifest has a cluster run at every node.
type Installation struct {
	Name string
	// Node is one of the cluster.
	Node topology.Ref
	// Manifest is a file of the machine; Log takes what is said.
	Manifest, Log string
}

// install has a manifest's DaemonSet run in the cluster of a node.
func (p *part) install(ctx context.Context, node topology.Ref, s Step) error {
	running, err := p.lab.Install(ctx, Installation{
		Name: s.Daemon, Node: node, Manifest: filepath.Join(p.values.Dir, s.Install), Log: p.log(s.Daemon),
	})
	if err == nil {
		p.daemons = append(p.daemons, daemon{s.Daemon, node, running})
	}
	return err
}

// program is the first word of a step's command.
func (s Step) program() string {
	name, _, _ := strings.Cut(strings.TrimSpace(s.Run), " ")
	return name
}

// podNeed is the program of a step in a pod, where an image can be made of it.
func (p *Plugin) podNeed(s Step) (Need, error) {
	for _, n := range p.Needs {
		if n.Program == s.program() && (n.Own || n.Module) {
			return n, nil
		}
	}
	return Need{}, fmt.Errorf("there is no image of %q", s.program())
}

// podProgram is the path of what the image of a step's pod is made of.
func (p *Plugin) podProgram(s Step) (string, error) {
	n, err := p.podNeed(s)
	if err != nil {
		return "", fmt.Errorf("system %s: %w", p.Name, err)
	}
	return p.find(n)
}

// pods are the steps that have a daemon run in one.
func (s Substrate) pods() (steps []Step) {
	for _, ph := range s.startPhases() {
		for _, step := range ph.steps {
			if step.Pod != nil {
				steps = append(steps, step)
			}
		}
	}
	return steps
}

// installs says whether a step installs something.
func (s Substrate) installs() bool {
	for _, ph := range s.startPhases() {
		if slices.ContainsFunc(ph.steps, func(s Step) bool { return s.Install != "" }) {
			return true
		}
	}
	return false
}

// AsksMetrics says whether the stack asks metrics-server.
func (s *Stack) AsksMetrics() bool {
	return slices.ContainsFunc(s.Plugins, func(p *Plugin) bool { return p.how.Service != nil && p.how.Service.Metrics })
}

// PodPrograms are the paths of the programs that the stack has in pods: nodes need images of
// them. What a manifest has in some is all that the system needs of Skerry's.
func (s *Stack) PodPrograms() (paths []string, err error) {
	for _, p := range s.Plugins {
		for _, n := range p.Needs {
			if !n.Own || !p.how.installs() {
				continue
			}
			path, err := p.find(n)
			if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
		for _, step := range p.how.pods() {
			path, err := p.podProgram(step)
			if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// podName is a label of RFC 1123, of which two with a - between them are one still: a Secret is
// named by its pod and its folder.
var podName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$`)

// nodePorts are those that Kubernetes gives away by default.
const nodePortLeast, nodePortMost = 30000, 32767

// checkPods says the first thing that is wrong with the pods of a substrate, which stands
// below a key.
func (p *Plugin) checkPods(document *strict.Document, s Substrate, key string) error {
	for _, ph := range s.phases() {
		for i, step := range ph.steps {
			if step.Pod == nil {
				continue
			}
			if err := p.checkPod(document, step, key, fmt.Sprintf("%s.%s[%d]", key, ph.name, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Plugin) checkPod(document *strict.Document, s Step, key, at string) error {
	const portMost = 65535
	switch {
	case key != experiment.SubstrateKubernetes:
		return document.Errorf(at, "leave pod out, or write the step below kubernetes", "there are no pods on %s", key)
	case s.Daemon == "" || s.At == Each || s.At == Machine:
		return document.Errorf(at, "write daemon beside it; "+roleHint(placeRoles), "a pod is that of a daemon at one node")
	case s.Pod.Port < 1 || s.Pod.Port > portMost:
		return document.Errorf(at+".pod.port", "write the port at which it listens", "port %d is none", s.Pod.Port)
	case s.Pod.NodePort < nodePortLeast || s.Pod.NodePort > nodePortMost:
		return document.Errorf(at+".pod.nodePort", fmt.Sprintf("write one from %d to %d", nodePortLeast, nodePortMost), "nodes give port %d to no Service", s.Pod.NodePort)
	}
	for _, name := range append([]string{s.Daemon}, s.Pod.Folders...) {
		if !podName.MatchString(name) {
			return document.Errorf(at, "write small letters, digits and - within, at most 30", "Kubernetes takes no %q for a name", name)
		}
	}
	if _, err := p.podNeed(s); err != nil {
		return document.Errorf(at+".run", "begin it with a program that needs lists with own: true or module: true; an image has no shell", "%v", err)
	}
	return nil
}
