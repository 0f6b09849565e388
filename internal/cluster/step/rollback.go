package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/cluster"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/workload"
)

// retreat deletes new nodes that did not become ready during the upgrade of a pool. The upgrade then stops before an old node
// goes. If no new node is ready, the scale set gets its previous model again. The error failed says why the nodes are not
// ready. It is nil if they are ready.
func (w Worker) retreat(ctx context.Context, s change.Step, failed error) error {
	_, late := errors.AsType[*workload.NotReadyError](failed)
	if failed == nil || ctx.Err() != nil {
		return failed
	}
	in, err := w.inspector.Inspect(ctx, w.names, false)
	if err != nil {
		return failed
	}
	w.in = in
	i := slices.IndexFunc(in.Pools, func(p change.Pool) bool { return p.Name == s.Pool })
	if i < 0 {
		return failed
	}
	bad := in.Pools[i].Unready(late)
	if len(bad) == 0 {
		return failed
	}
	for _, name := range bad {
		w.Sayf("  %s is not ready, and is taken away again", name)
		if err := w.deleteNode(ctx, change.Step{Pool: s.Pool, Node: name}); err != nil {
			return errors.Join(failed, err)
		}
	}
	text := fmt.Sprintf("pool %s: new nodes of version %s are not ready, and are taken away: %s", s.Pool, in.Pools[i].Model,
		strings.Join(bad, ", "))
	if in.Pools[i].Begun() {
		return fmt.Errorf("%s; nodes of this version that are ready stay: %w", text, failed)
	}
	previous, err := w.rollback(ctx, s.Pool)
	if err != nil {
		return errors.Join(failed, err)
	}
	return fmt.Errorf("%s; new nodes are made as before again, with version %s: end the change with kaz cluster abort, correct the "+
		"definition and upgrade again, or try once more with kaz cluster resume: %w", text, previous, failed)
}

// rollback gives the scale set of a pool the model that it had before its upgrade. It returns the version of that model.
func (w Worker) rollback(ctx context.Context, pool string) (string, error) {
	previous := ""
	for _, r := range w.in.State.Resources {
		ours := r.Tags[naming.PoolTag] == pool && r.Tags[naming.ClusterTag] == w.names.Cluster
		if ours && strings.EqualFold(r.Type, record.ScaleSetType) {
			previous = r.Tags[record.PreviousTag]
		}
	}
	if previous == "" {
		return "", fmt.Errorf("pool %s does not tell the version that it had before", pool)
	}
	d := *w.in.State.Definition
	d.Cluster.Spec.Kubernetes.Version = previous
	p, err := cluster.WithMembers(d, w.in.State.Generations())
	if err != nil {
		return "", err
	}
	return previous, w.writeModel(ctx, p, pool, func(tags, _ map[string]string) { delete(tags, record.RolloutTag) })
}
