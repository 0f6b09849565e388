package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/pause"
	"kaz/internal/plan/records"
)

// repair is the time to bring back what was deleted, after the deadline if need be.
const repair = 5 * time.Second

// margin is the time before the deadline in which no write begins, so that each one ends in time.
const margin = 2 * time.Second

// mostTries is how often a step is decided anew because its record set changed meanwhile.
const mostTries = 3

// IncompleteError says that some changes were not made. ExternalDNS asks for them again.
type IncompleteError struct {
	Done, Left, Held int
	Causes           []error // the first one of each host that was not finished, at most ten
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%d writes done, %d names left for the next time, %d deletions held back", e.Done, e.Left, e.Held)
}

// Unwrap returns the causes.
func (e *IncompleteError) Unwrap() []error { return e.Causes }

// Apply makes changes until its deadline. What is left is an [IncompleteError].
func (p *Provider) Apply(ctx context.Context, c records.Changes) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.config.Deadline) // a client that goes away leaves nothing half done
	defer cancel()
	if _, err := p.snapshot(ctx); err != nil {
		return err
	}
	release, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	p.mu.Lock()
	s, ok := p.known()
	outdated := p.removed != p.shown
	p.mu.Unlock()
	if !ok {
		return errors.New("the zones are being read again")
	}
	if outdated { // ExternalDNS does not write a claim that it saw
		return errors.New("claims without records were removed since the records were read")
	}
	plan := records.Decide(s, c, p.config.Options)
	p.report(ctx, plan.Problems)
	p.config.Metrics.held(plan.Held)
	if p.config.DryRun {
		for _, h := range plan.Hosts {
			for _, step := range h.Steps {
				p.config.Log.InfoContext(ctx, "dry run: would write", "step", step.String())
			}
		}
		return nil
	}
	return p.carryOut(ctx, plan)
}

// run is the execution of a plan.
type run struct {
	*Provider
	mu     sync.Mutex // never held while waiting
	result IncompleteError
}

func (r *run) count(done int, err error) {
	const mostCauses = 10
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Done += done
	if err == nil {
		return
	}
	r.result.Left++
	if len(r.result.Causes) < mostCauses {
		r.result.Causes = append(r.result.Causes, err)
	}
}

// carryOut writes a plan: the zones side by side, so that one which Azure slows down does not slow down the others.
func (p *Provider) carryOut(ctx context.Context, plan records.Plan) error {
	r := &run{Provider: p, result: IncompleteError{Held: plan.Held}}
	var zones errgroup.Group
	byZone := map[string][]records.Host{}
	for _, h := range plan.Hosts {
		key := h.Steps[0].Key.Zone
		byZone[key] = append(byZone[key], h)
	}
	for _, hosts := range byZone {
		zones.Go(func() error {
			var tasks errgroup.Group
			tasks.SetLimit(max(p.config.Parallel, 1))
			for _, h := range hosts {
				tasks.Go(func() error {
					r.host(ctx, h)
					return nil
				})
			}
			return tasks.Wait()
		})
	}
	if err := zones.Wait(); err != nil {
		return err
	}
	if r.result.Left > 0 || r.result.Held > 0 {
		return &r.result
	}
	return nil
}

// errRefused is the cause of steps that Azure refuses for good.
var errRefused = errors.New("azure refuses the record")

// undo is a write that takes back another one.
type undo struct {
	step  records.Step
	claim bool // a new TXT record; else a deleted set
}

// host carries out the steps of one host. If one fails, what the steps before it took away is brought back.
func (r *run) host(ctx context.Context, h records.Host) {
	for _, s := range h.Steps {
		if r.refused.has(request(s), time.Now()) {
			r.count(0, nil)
			r.config.Log.DebugContext(ctx, "azure refused the record within the last hour", "name", h.Name, "type", s.Key.Type)
			return
		}
	}
	var undos []undo
	for n, s := range h.Steps {
		etag, err := r.step(ctx, s)
		if err == nil {
			undos = after(undos, s, etag)
			r.count(1, nil)
			continue
		}
		undone := r.undo(ctx, undos, errors.Is(err, errRefused))
		if errors.Is(err, errRefused) && undone == nil {
			return
		}
		r.config.Log.WarnContext(ctx, "name left for the next time", "name", h.Name, "steps", len(h.Steps), "done", n, "error", err)
		r.count(0, errors.Join(fmt.Errorf("%s: %w", h.Name, err), undone))
		return
	}
}

// after returns what is to be undone if the next step fails. A record that was made is not undone, and what made room for it needs not be.
func after(undos []undo, s records.Step, etag string) []undo {
	switch {
	case s.Restore != nil:
		return append(undos, undo{step: records.Step{
			Verb: azure.Put, ID: s.ID, Key: s.Key, Zone: s.Zone, Create: true, Body: s.Restore, Why: "restore",
		}})
	case s.Claim && s.Create && etag != "":
		return append(undos, undo{claim: true,
			step: records.Step{Verb: azure.Delete, ID: s.ID, Key: s.Key, Zone: s.Zone, IfMatch: etag, Why: "withdraw the claim"}})
	case s.Claim || s.Verb == azure.Delete:
		return undos
	}
	return nil
}

// undo brings back deleted sets, and withdraws claims if the record was refused. A claim stays if the record may be written next time.
func (r *run) undo(ctx context.Context, undos []undo, refused bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repair)
	defer cancel()
	var problems []error
	for _, u := range undos {
		if u.claim && !refused {
			continue
		}
		r.config.Log.InfoContext(ctx, "undoing a write", "step", u.step.String())
		doc, err := azure.Do(ctx, r.config.Azure, write(u.step))
		r.config.Metrics.wrote(u.step, err)
		switch kind := azure.KindOf(err); {
		case err == nil && u.claim:
			r.note(u.step.Zone, u.step.Key, nil)
		case err == nil:
			r.note(u.step.Zone, u.step.Key, doc)
		default:
			r.forget(u.step.Zone)
			if kind != azure.Changed && kind != azure.Exists { // else another writer was there first
				problems = append(problems, fmt.Errorf("%s: %w", u.step.String(), err))
			}
		}
	}
	return errors.Join(problems...)
}

func write(s records.Step) azure.Request {
	return azure.Request{Verb: s.Verb, ID: s.ID, Body: s.Body, IfMatch: s.IfMatch, Create: s.Create, Priority: azure.Provision}
}

func request(s records.Step) string { return string(s.Verb) + " " + s.ID.Key() + " " + string(s.Body) }

// step carries out one step with what Traffic Manager needs for it, and returns the etag of the set that it wrote.
func (r *run) step(ctx context.Context, s records.Step) (etag string, err error) {
	if err := r.traffic(ctx, s.Before); err != nil {
		return "", r.trafficFailed(ctx, s, err)
	}
	etag, after, err := r.tryStep(ctx, s)
	if errors.Is(err, errRefused) {
		return "", errors.Join(err, r.traffic(ctx, withdrawn(s.Before)))
	}
	if err != nil {
		return "", err
	}
	return etag, r.traffic(ctx, after)
}

// tryStep carries out one step, without what goes before it. If the set changed meanwhile, it decides again. after is what goes after it.
func (r *run) tryStep(ctx context.Context, s records.Step) (etag string, after []records.Write, err error) {
	for try := 1; ; try++ {
		doc, err := r.send(ctx, s)
		if err == nil {
			r.note(s.Zone, s.Key, written(s, doc))
			return doc.Etag(), s.After, nil
		}
		if kind := azure.KindOf(err); kind != azure.Changed && kind != azure.Exists {
			return "", s.After, r.failed(ctx, s, err)
		}
		r.forget(s.Zone) // another writer is at work
		if try == mostTries {
			return "", nil, err
		}
		have, err := r.read(ctx, s)
		if err != nil {
			return "", nil, err
		}
		again, err := s.Again(have)
		if err != nil {
			r.refuse(ctx, s, records.Conflict, err)
			return "", nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		if again == nil {
			return "", s.After, nil
		}
		s = *again
	}
}

// failed deals with a write that failed, other than because the set has changed. It returns nil if there is nothing left to do.
func (r *run) failed(ctx context.Context, s records.Step, err error) error {
	switch kind := azure.KindOf(err); {
	case s.Verb == azure.Delete && kind == azure.NotFound:
		r.note(s.Zone, s.Key, nil)
		return nil
	case kind == azure.Invalid && r.lacksProfile(ctx, s):
	case kind == azure.Invalid || kind == azure.Quota || kind == azure.InUse || locked(err):
		r.refuse(ctx, s, records.Refused, err)
		return fmt.Errorf("%w: %w", errRefused, err)
	case errors.Is(err, errPaced) || kind == azure.Throttled && !unsure(err):
	default:
		r.forget(s.Zone) // the write may have happened
	}
	return err
}

// unsure reports whether an earlier attempt of a request may have been carried out.
func unsure(err error) bool {
	e, ok := errors.AsType[*azure.Error](err)
	return ok && e.Unsure
}

// locked reports whether a management lock refuses a write. Other refusals for want of rights may end soon.
func locked(err error) bool {
	e, ok := errors.AsType[*azure.Error](err)
	return ok && strings.EqualFold(e.Code, "ScopeLocked")
}

// written is the document that a write left, nil after a deletion.
func written(s records.Step, doc azure.Document) azure.Document {
	if s.Verb == azure.Delete {
		return nil
	}
	return doc
}

// refuse reports a record that is not written.
func (r *run) refuse(ctx context.Context, s records.Step, reason records.Reason, err error) {
	if reason == records.Refused {
		r.refused.add(request(s), time.Now())
	}
	r.report(ctx, []records.Problem{{Name: s.Host(), Type: s.Key.Type, Reason: reason, Message: err.Error()}})
}

// read returns a record set as Azure has it now, nil for none.
func (r *run) read(ctx context.Context, s records.Step) (*records.Set, error) {
	doc, err := r.config.Azure.Fresh().Get(ctx, s.ID)
	if azure.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	set, err := records.Read(s.Zone, doc)
	return &set, err
}

// send sends a write when the pace of its zone allows it.
func (r *run) send(ctx context.Context, s records.Step) (azure.Document, error) {
	pace := r.paceOf(s.Zone)
	deadline, _ := ctx.Deadline()
	at, ok := pace.reserve(time.Now(), deadline.Add(-margin))
	if !ok {
		return nil, fmt.Errorf("zone %s takes no write before %s: %w", s.Zone.Name, at.UTC().Format(time.TimeOnly), errPaced)
	}
	if err := pause.For(ctx, time.Until(at)); err != nil {
		return nil, err
	}
	doc, err := azure.Do(ctx, r.config.Azure, write(s))
	r.config.Metrics.wrote(s, err)
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelDebug // the caller says what follows from it
	}
	r.config.Log.Log(ctx, level, "record set written", "step", s.String(), "error", err)
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Kind == azure.Throttled {
		pace.close(time.Now().Add(max(e.RetryAfter, time.Second)))
	}
	return doc, err
}

// errPaced is the cause of writes that do not fit in the time of a request.
var errPaced = errors.New("the limit of the zone is used up")
