package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	policy "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// planePrograms are those that StopPlane ends.
var planePrograms = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// bootTimeout bounds how long the programs of a node may take until they are started:
// those of a first node have no less for it (startTimeout). One that ends is told at once.
const bootTimeout = host.ChangeMax

// Errors of faults that a caller tells apart.
var (
	ErrProtected = errors.New("its PodDisruptionBudget does not allow that now")
	ErrBoot      = errors.New("it does not start")
)

// StopPlane is the fault that ends the control plane of a cluster, by crashes. What
// runs in its pods goes on; nothing of it changes until the fault is undone.
func (c *Cluster) StopPlane() host.Fault {
	head := c.members[0]
	f := host.Fault{Kind: host.StopPlane, Node: head.Ref()}
	for _, name := range planePrograms {
		f.Plane = append(f.Plane, head.process(name))
	}
	return f
}

// Reboot has a node of a Kubernetes cluster lose its power and boot at once. Its disk
// stays, with the images; its pods come back as its kubelet starts them.
func Reboot(ctx context.Context, lab *host.Lab, ref topology.Ref) error {
	name, _ := ref.Split()
	if _, err := Open(lab, name); err != nil {
		return err
	}
	f, err := lab.Inject(ctx, host.Fault{Kind: host.Kill, Node: ref})
	if err != nil {
		return err
	}
	// What has lost its power boots, also where the caller is interrupted.
	return Undo(context.WithoutCancel(ctx), lab, f.ID)
}

// Undo ends a fault of a lab, of whatever kind. A node of a Kubernetes cluster that was
// killed boots, and a control plane that was stopped starts; where that fails the fault
// stays in force.
func Undo(ctx context.Context, lab *host.Lab, id int) error {
	return undo(ctx, lab, id, Open)
}

// Undo is Undo for who has taken the cluster up, of whose nodes the fault is: what
// starts again takes the place of what had ended.
func (c *Cluster) Undo(ctx context.Context, id int) error {
	return undo(ctx, c.lab, id, func(*host.Lab, string) (*Cluster, error) { return c, nil })
}

func undo(ctx context.Context, lab *host.Lab, id int, open func(lab *host.Lab, name string) (*Cluster, error)) error {
	return lab.UndoWith(ctx, id, func(ctx context.Context, f host.Fault) error {
		if f.Kind != host.Kill && f.Kind != host.StopPlane {
			return nil
		}
		name, _ := f.Node.Split()
		c, err := open(lab, name)
		if errors.Is(err, ErrNone) {
			return nil // on hosts nothing starts by itself
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, bootTimeout)
		defer cancel()
		return c.revive(ctx, f)
	})
}

// Repair starts those programs of a node that have ended, as they were: one that was
// killed alone has no supervisor. It says whether there was one.
func (c *Cluster) Repair(ctx context.Context, node topology.Ref) (bool, error) {
	m, err := c.memberAt(node)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	n, err := c.startAgain(ctx, m, func(string) bool { return true })
	if err != nil {
		return false, fmt.Errorf("node %s: %w: %w", m, ErrBoot, err)
	}
	return n > 0, nil
}

// revive starts what a fault has ended, but for what others in force keep down.
func (c *Cluster) revive(ctx context.Context, f host.Fault) error {
	m, err := c.memberAt(f.Node)
	if err != nil {
		return err
	}
	wanted := func(process string) bool { return f.Kind == host.Kill || slices.Contains(f.Plane, process) }
	var kept []string
	for _, other := range c.lab.Faults {
		switch {
		case other.Node != f.Node:
		case other.Kind == host.Kill:
			return nil // it will boot
		case other.Kind == host.StopPlane:
			kept = append(kept, other.Plane...)
		}
	}
	if f.Kind == host.Kill {
		if err := c.wipe(ctx, m); err != nil {
			return fmt.Errorf("node %s: %w: %w", m, ErrBoot, err)
		}
	}
	_, err = c.startAgain(ctx, m, func(process string) bool { return wanted(process) && !slices.Contains(kept, process) })
	if err != nil {
		return fmt.Errorf("node %s: %w: %w", m, ErrBoot, err)
	}
	return nil
}

// startAgain starts those programs of a node that are wanted and do not run, and counts
// them. Where it fails, those that it has started end again.
func (c *Cluster) startAgain(ctx context.Context, m member, wanted func(process string) bool) (n int, err error) {
	running, err := c.lab.Running()
	if err != nil {
		return 0, err
	}
	var missing []program
	for _, p := range c.recorded {
		runs := slices.ContainsFunc(running, func(r host.Running) bool { return r.Name == m.process(p.Name) })
		if p.Node == m.Ref() && !runs && wanted(m.process(p.Name)) {
			missing = append(missing, p)
		}
	}
	// What waits for one of them is not to find that the others have ended.
	if err := c.stopAgain(m, missing); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stopAgain(m, missing))
		}
	}()
	for _, p := range missing {
		if err := c.startOnceMore(m, p); err != nil {
			return 0, err
		}
		// What comes after calls these, and ends where they do not answer.
		switch p.Name {
		case "containerd":
			err = c.awaitRuntime(ctx, m)
		case "kube-apiserver":
			err = c.awaitAPI(ctx)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(missing), nil
}

// startOnceMore starts a program as it was, with listeners at the addresses of before.
func (c *Cluster) startOnceMore(m member, p program) (err error) {
	var inherited []*os.File
	defer func() {
		for _, f := range inherited {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, address := range p.Listens {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", address)
		if err != nil {
			return fmt.Errorf("start %s: %w", p.Name, err)
		}
		file, err := listener.(*net.TCPListener).File()
		_ = listener.Close() // the file is a duplicate
		if err != nil {
			return fmt.Errorf("start %s: %w", p.Name, err)
		}
		inherited = append(inherited, file)
	}
	return c.startProgram(m, p.Name, p.Args, inherited...)
}

// Forget has Ended not tell of programs that a fault has ended: they are to start again
// when that is undone.
func (c *Cluster) Forget(ended []host.Running) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs = slices.DeleteFunc(c.programs, func(s started) bool {
		return slices.ContainsFunc(ended, func(r host.Running) bool { return r.Name == s.Name })
	})
}

// stopAgain ends and forgets those of some programs of a node that this process has
// started.
func (c *Cluster) stopAgain(m member, programs []program) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range slices.Backward(c.programs) {
		if s.program.Node == m.Ref() && slices.ContainsFunc(programs, func(p program) bool { return p.Name == s.program.Name }) {
			_, stopErr := s.Stop(0)
			err = errors.Join(err, stopErr)
			c.programs = slices.Delete(c.programs, i, i+1)
		}
	}
	return err
}

// wipe leaves of a node without processes what a machine has that boots: its disk.
// Its /run is empty, and its pods' mounts, interfaces, rules and control groups are
// gone: of each that is left a kubelet makes sure for three seconds that it is empty.
func (c *Cluster) wipe(ctx context.Context, m member) error {
	if err := c.lab.Vacate(m.podGroup()); err != nil {
		return err
	}
	if err := c.lab.Within(m.Ref(), func() error { return node.Wipe(c.kept()) }); err != nil {
		return err
	}
	if err := c.nft(ctx, m, "flush", "ruleset"); err != nil {
		return err
	}
	return c.nft(ctx, m, "-f", c.masquerade(m))
}

// Evict asks the API server to have a pod go by the Eviction API, as a node that is
// drained does: budgets are honoured, and what made the pod makes another.
func (c *Cluster) Evict(ctx context.Context, pod PodState) error {
	err := c.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policy.Eviction{
		ObjectMeta: meta.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
	})
	if kerrors.IsTooManyRequests(err) {
		err = ErrProtected
	}
	if err != nil {
		return fmt.Errorf("evict %s/%s/%s: %w", c.Name, pod.Namespace, pod.Name, err)
	}
	return nil
}
