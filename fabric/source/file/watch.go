package file

import (
	"context"
	"time"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/internal/changes"
)

// Watch reads a folder anew whenever a file in it has changed, at first since a state that was
// taken before Read. It looks for that every so often, until the context ends. What was read,
// or why it could not be, goes to take.
func Watch(ctx context.Context, folder string, since changes.State, every time.Duration, take func(*snapshot.Snapshot, error)) {
	changes.Watch(ctx, folder, since, every, func() { take(Read(folder)) })
}
