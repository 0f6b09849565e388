package gateway

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/health"
)

// probesTime is how long after a write the health of backends is read: three probes at the usual interval, and a reserve.
const probesTime = 2 * time.Minute

// diagnosis reads the health of backends once after writes, when probes have had their time. A pool without a healthy backend answers 502,
// for instance where the application gateway has no route to the pods, and nothing else in Kubernetes shows it.
type diagnosis struct {
	worker  *worker
	written chan map[string][]string // of one element: the objects of the children by name
	known   controller.Deduplicator[plan.Problem]
	mute    bool // it is known that the health of backends cannot be read
}

func newDiagnosis(w *worker) *diagnosis {
	return &diagnosis{worker: w, written: make(chan map[string][]string, 1)}
}

// note has the health of backends read. It is called by the commit, of which there is one at a time.
func (d *diagnosis) note(objects map[string][]string) {
	select {
	case <-d.written: // an older one is of no use
	default:
	}
	d.written <- objects
}

// run reads the health of backends after the last write of several, until ctx ends.
func (d *diagnosis) run(ctx context.Context) {
	var objects map[string][]string
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case objects = <-d.written:
			due = time.After(probesTime)
		case <-due:
			due = nil
			d.look(ctx, objects)
		}
	}
}

func (d *diagnosis) look(ctx context.Context, objects map[string][]string) {
	all, err := d.worker.askHealth(ctx)
	if err != nil && ctx.Err() == nil && !d.mute {
		d.worker.config.Log.Info("pools without a healthy backend are not reported: their health cannot be read", "gateway", d.worker.id,
			"error", err)
	}
	if d.mute = err != nil; d.mute || all == nil {
		return
	}
	for _, p := range d.known.New(ailing(all, objects)) {
		if o := d.worker.kube.object(p.Object); o != nil {
			d.worker.config.Events.Event(o, corev1.EventTypeWarning, p.Reason, p.Message)
		}
	}
}

// reasonUnhealthy is the reason of the Event about pools without a healthy backend.
const reasonUnhealthy = "BackendsUnhealthy"

// ailing returns a problem for each object of a pool of which no backend is healthy.
func ailing(all []health.Backend, objects map[string][]string) (problems []plan.Problem) {
	for _, pool := range health.Dead(all) {
		said := ""
		if pool.Log != "" {
			said = ": " + pool.Log
		}
		for _, key := range objects[pool.Name] {
			problems = append(problems, plan.Problem{
				Object: key, Reason: reasonUnhealthy, Warning: true,
				Message: fmt.Sprintf("The application gateway finds none of the backends of pool %s healthy (%d with settings %s), and "+
					"answers 502%s. It must reach the pods from its subnet, and the probe must be answered with the expected status",
					pool.Name, pool.Backends, pool.Settings, said),
			})
		}
	}
	return problems
}
