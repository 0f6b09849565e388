package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	networking "k8s.io/api/networking/v1"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/reconcile"
)

// target is the gateway with the Ingresses of one commit.
type target struct {
	planner.Input
	decided *planner.Decision // the last decision
}

// Needs implements [reconcile.Target].
func (t target) Needs(plan.Snapshot) reconcile.Needs {
	return reconcile.Needs{Resources: []azure.ID{t.Gateway}}
}

// Decide implements [reconcile.Target].
func (t target) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	in := t.Input
	in.Have = have
	d, err := planner.Desired(in)
	*t.decided = d
	if err != nil || d.Hold != nil {
		return reconcile.Decision{Ask: d.Hold}, err
	}
	return reconcile.Decision{Graph: d.Graph, Problems: d.Problems}, nil
}

// choice is the Ingresses of a commit: those of the batch as they are, and the others as they were last written.
type choice struct {
	batch     []string
	current   map[string]*networking.Ingress
	chosen    map[string]*networking.Ingress
	kept      []*networking.Ingress // that were refused, and that this process has never written
	undecided bool                  // there are further Ingresses, about which no commit has decided
}

func (c *Controller) choose(batch []string) choice {
	ch := choice{batch: batch, current: c.current(), chosen: map[string]*networking.Ingress{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, i := range ch.current {
		was, accepted := c.accepted[key]
		switch {
		case slices.Contains(batch, key):
			ch.chosen[key] = i
		case accepted:
			ch.chosen[key] = was
		case c.refused[key] != nil:
			ch.kept = append(ch.kept, i)
		default:
			ch.undecided = true
		}
	}
	for key, was := range c.accepted { // what left is removed by its own request
		if _, still := ch.current[key]; !still && !slices.Contains(batch, key) {
			ch.chosen[key] = was
		}
	}
	return ch
}

// commit writes the gateway once for all Ingresses of a batch. The answer of each is empty: what became of it is in its events and its
// status.
func (c *Controller) commit(ctx context.Context, _ string, batch []string) ([]struct{}, error) {
	objects := c.kube.objects().After(c.objects)
	c.objects = objects
	for {
		ch := c.choose(batch)
		d, err := c.write(ctx, ch, objects)
		if err == nil {
			c.accept(ctx, ch, d)
			return make([]struct{}, len(batch)), nil
		}
		again, refusal := c.blame(err, ch, d)
		if !again {
			return nil, refusal
		}
	}
}

// write converges on the gateway with the chosen Ingresses. A gateway that must not be written is no error.
func (c *Controller) write(ctx context.Context, ch choice, objects *cluster.Objects) (planner.Decision, error) {
	var d planner.Decision
	in := planner.Input{Config: c.config.Config, Objects: objects, Kept: ch.kept, Undecided: ch.undecided}
	for _, i := range ch.chosen {
		in.Ingresses = append(in.Ingresses, i)
	}
	if len(ch.current) > 0 {
		c.empty.since = time.Time{}
	} else if err := c.believesEmpty(ctx); err != nil && !ch.undecided {
		return planner.Decision{Hold: err}, nil
	}
	began := time.Now()
	out, err := reconcile.Converge(ctx, fresh{c.config.Azure}, target{in, &d})
	wrote := 0
	for range out.Attempted() {
		wrote++
	}
	c.config.Metrics.wrote(wrote, time.Since(began), err)
	return d, err
}

// fresh is Azure without a cache: each write is planned on what is there.
type fresh struct{ reconcile.Azure }

func (f fresh) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return f.Fresh().Get(ctx, id)
}

func (f fresh) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return f.Fresh().List(ctx, q)
}

// accept notes what a commit has written.
func (c *Controller) accept(ctx context.Context, ch choice, d planner.Decision) {
	c.hold(d.Hold)
	c.mu.Lock()
	c.compared = true
	c.mu.Unlock()
	if d.Hold != nil {
		for _, key := range ch.batch { // the comparison with Azure comes again by itself
			if key != everything {
				c.queue.MarkAfter(key, reasons{}, c.config.Drift)
			}
		}
		return
	}
	c.mu.Lock()
	for _, key := range ch.batch {
		if i, ok := ch.chosen[key]; ok {
			c.accepted[key] = i
		} else {
			delete(c.accepted, key)
			c.empty.left(key, false) // that is settled
		}
		delete(c.refused, key)
	}
	c.mu.Unlock()
	c.publish(ctx, ch, d)
}

// hold notes why nothing is written, nil if it is.
func (c *Controller) hold(why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	c.mu.Lock()
	was := c.held
	c.held = text
	c.mu.Unlock()
	if text != "" && was != text {
		c.config.Log.Warn("nothing is written", "reason", text)
	}
}

// blame finds the Ingresses that Azure refuses. If it names children of Ingresses in the batch, these are the culprits. If it names only
// children of others, these are refused, and the commit is made again without them. Else the coalescer finds the culprit by halves.
func (c *Controller) blame(err error, ch choice, d planner.Decision) (again bool, refusal error) {
	named := culprits(err, d)
	if len(named) == 0 {
		return false, err
	}
	found := map[int]error{}
	for i, key := range ch.batch {
		if slices.Contains(named, key) {
			found[i] = err
		}
	}
	if len(found) > 0 {
		return false, &reconcile.Refusal{Culprits: found}
	}
	for _, key := range named {
		if _, ok := c.accepted[key]; ok {
			delete(c.accepted, key)
			c.refuse(key, err)
			c.queue.MarkAfter(key, reasons{}, controller.Delay(err, 1))
			again = true
		}
	}
	return again, err
}

// culprits returns the keys of the Ingresses with the children that a refusal names: of several children, those that the fewest need.
func culprits(err error, d planner.Decision) []string {
	e, ok := errors.AsType[*azure.Error](err)
	if !ok || !controller.IsLasting(err) {
		return nil
	}
	text := strings.ToLower(e.Target + " " + e.Message)
	var fewest []string
	for name, objects := range d.Objects {
		if (fewest == nil || len(objects) < len(fewest)) && (controller.Mentions(text, name) || controller.Mentions(text, "/"+name)) {
			fewest = objects
		}
	}
	keys := make([]string, len(fewest))
	for i, object := range fewest {
		keys[i] = strings.TrimPrefix(object, objectKey(""))
	}
	return keys
}
