package cluster

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secretOf a folder of a workload.
func (w Workload) secretOf(folder string) string { return w.Name + "-" + filepath.Base(folder) }

// hide makes a Secret of each folder that a workload has.
func (c *Cluster) hide(ctx context.Context, w Workload) error {
	for _, folder := range w.Folders {
		data, err := filesOf(folder)
		if err != nil {
			return fmt.Errorf("deploy %s: %w", w.Name, err)
		}
		secret := &core.Secret{ObjectMeta: meta.ObjectMeta{Name: w.secretOf(folder), Labels: labelsOf(w.Name)}, Data: data}
		if _, err := c.client.CoreV1().Secrets(namespace).Create(ctx, secret, meta.CreateOptions{}); err != nil {
			return fmt.Errorf("deploy %s: %w", w.Name, err)
		}
	}
	return nil
}

// filesOf a folder, by name; it has no folders in it.
func filesOf(folder string) (map[string][]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// forget takes the Secrets of a workload away.
func (c *Cluster) forget(ctx context.Context, name string) error {
	err := c.client.CoreV1().Secrets(namespace).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: selectorOf(name)})
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// mount has a container see the folders of its workload. Its user is nobody: what it may read
// belongs to root and to a group that the pod is in.
func (w Workload) mount(pod *core.PodSpec, container *core.Container) {
	const nobody, groupReads = 65534, 0o440
	if len(w.Folders) == 0 {
		return
	}
	pod.SecurityContext = &core.PodSecurityContext{FSGroup: new(int64(nobody))}
	for _, folder := range w.Folders {
		name := filepath.Base(folder)
		pod.Volumes = append(pod.Volumes, core.Volume{Name: name, VolumeSource: core.VolumeSource{
			Secret: &core.SecretVolumeSource{SecretName: w.secretOf(folder), DefaultMode: new(int32(groupReads))},
		}})
		container.VolumeMounts = append(container.VolumeMounts, core.VolumeMount{Name: name, MountPath: path.Join("/", name), ReadOnly: true})
	}
}
