package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// Lasting is implemented by errors of Kubernetes objects that a user has to change.
type Lasting interface {
	error
	Lasting() bool
}

// IsLasting reports whether a user has to change something before an error goes away.
func IsLasting(err error) bool {
	l, ok := errors.AsType[Lasting](err)
	lasting := []azure.Kind{azure.Invalid, azure.Denied, azure.Quota, azure.InUse, azure.NotFound, azure.Exists}
	return ok && l.Lasting() || slices.Contains(lasting, azure.KindOf(err))
}

// Delay is how long to wait after a number of failures in a row: doubled with each further one up
// to a limit. Nothing is tried before the time that Azure asked for.
func Delay(err error, failures int) time.Duration {
	wait, most := 5*time.Second, 5*time.Minute // for what passes by itself
	switch {
	case IsLasting(err):
		wait, most = 30*time.Second, 15*time.Minute
	case azure.KindOf(err) == azure.Busy: // another operation, maybe of kaz itself, will have ended
		most = time.Minute
	}
	for ; failures > 1 && wait < most; failures-- {
		wait = min(2*wait, most)
	}
	return max(wait, retryAfter(err))
}

// Beat returns the time until the next multiple of a wait. The multiples count from a beginning that many keys share, and
// since is the time that has passed from then. The next try is not before the time that Azure asked for. So keys that wait
// for the same thing are tried together, and one write serves them all.
func Beat(since, wait time.Duration, err error) time.Duration {
	asked := retryAfter(err)
	return asked + wait - (since+asked)%wait
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*azure.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Deduplicator keeps a problem from being reported again while it lasts, for one object or for all. Its zero value
// has reported nothing. It is for one goroutine at a time.
type Deduplicator[T comparable] struct{ standing map[T]bool }

// New returns the current problems that were not reported yet, each once. A problem that goes away and comes back is
// new again.
func (d *Deduplicator[T]) New(now []T) []T {
	var fresh []T
	standing := make(map[T]bool, len(now))
	for _, one := range now {
		if !d.standing[one] && !standing[one] {
			fresh = append(fresh, one)
		}
		standing[one] = true
	}
	d.standing = standing
	return fresh
}

// quietFor is how long Azure may be busy before that is reported. Most operations that keep Azure busy end sooner, and no
// user has to do anything.
const quietFor = time.Minute

// BusyFilter holds back reports that Azure is busy. If Azure is busy for long, it lets one report pass. It is for one thing
// that is tried again and again.
type BusyFilter struct {
	since    time.Time // the first time in a row that Azure was busy, zero for never
	reported bool
}

// Passes reports whether a failure is to be reported.
func (f *BusyFilter) Passes(err error) bool {
	if azure.KindOf(err) != azure.Busy {
		*f = BusyFilter{}
		return true
	}
	if f.since.IsZero() {
		f.since = time.Now()
	}
	passes := !f.reported && time.Since(f.since) >= quietFor
	f.reported = f.reported || passes
	return passes
}

// Holds reports whether none of the failures so far was reported.
func (f *BusyFilter) Holds() bool { return !f.since.IsZero() && !f.reported }

// Suspicion reports whether a failed step is about a request, by its place in the batch.
type Suspicion func(request int) bool

// Blame names the requests of a batch at fault for the failed steps of a plan, as a
// [reconcile.Refusal]. The suspicions about a step are asked in order, the narrowest first, until
// one is about any request. It returns the error itself where no request is known to be at
// fault for a step, or all are.
func Blame(err error, failures []reconcile.Result, requests int, suspicions func(failed reconcile.Result) []Suspicion) error {
	culprits := map[int]error{}
	for _, failed := range failures {
		if !slices.ContainsFunc(suspicions(failed), func(suspects Suspicion) (found bool) {
			for i := range requests {
				if suspects(i) {
					culprits[i], found = fmt.Errorf("%s: %w", failed.Step.Why, failed.Err), true
				}
			}
			return found
		}) {
			return err
		}
	}
	if len(culprits) == 0 || len(culprits) == requests {
		return err
	}
	return &reconcile.Refusal{Culprits: culprits}
}

// Mentions reports whether a text of Azure, in lower case, contains an id, a name or an address. A match that is only part
// of a longer word does not count.
func Mentions(text, word string) bool {
	const inNames = "abcdefghijklmnopqrstuvwxyz0123456789-_/"
	for at := 0; word != ""; at += len(word) {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[max(at-1, 0):at], text[at+len(word):]
		if (word[0] == '/' || !strings.ContainsAny(before, inNames)) && !strings.ContainsAny(after[:min(len(after), 1)], inNames) {
			return true
		}
	}
	return false
}

// FailedWrites are the shared documents of which a write of this process has failed. They stay marked as failed in Azure
// until they are written again as they are. Until then Azure refuses their other users.
type FailedWrites struct {
	// Types are the types of documents that are written again. A document of another type counts as a part of the document
	// that it is in.
	Types []string
	// Refers finds, by type, what a document refers to. Azure refuses a document that refers to a failed one.
	Refers map[string]func(azure.Document) []azure.ID
	// Hidden reads documents that a refusal is about and does not name; nil for none.
	Hidden func(ctx context.Context, client reconcile.Azure, refusal *azure.Error) ([]azure.Document, error)

	failed []azure.ID
}

// Note notes which shared documents a commit could not write, and which it could. The filter says which documents are
// shared. Another document has a single user, which tries it again.
func (f *FailedWrites) Note(out reconcile.Outcome, shared func(azure.ID) bool) {
	for res := range out.Attempted() {
		if id := res.Step.ID; shared(id) {
			f.failed = slices.DeleteFunc(f.failed, id.Equal)
			if res.Err != nil {
				f.failed = append(f.failed, id)
			}
		}
	}
}

// Retry writes the documents again that Azure still marks as failed. If that fails, the next Retry tries it again.
func (f *FailedWrites) Retry(ctx context.Context, client reconcile.Azure) error {
	if len(f.failed) == 0 {
		return nil
	}
	slices.Sort(f.failed)
	have, err := reconcile.Take(ctx, client.Fresh(), reconcile.Needs{Resources: f.failed})
	if err == nil {
		_, err = f.writeAgain(ctx, client, have, f.failed)
	}
	if err == nil {
		f.failed = nil
	}
	return err
}

// Unblock repeats the unfinished writes of what a refused document refers to, and of what the refusal is about. Azure
// refuses the document until that is done. It reports whether there was such a write.
func (f *FailedWrites) Unblock(ctx context.Context, client reconcile.Azure, out reconcile.Outcome) (bool, error) {
	have, refs := out.Have, []azure.ID(nil)
	for _, res := range out.Failed() {
		refs = append(refs, f.references(res.Step.ID, res.Step.Body)...)
		if refusal, ok := errors.AsType[*azure.Error](res.Err); ok && f.Hidden != nil {
			hidden, err := f.Hidden(ctx, client, refusal)
			if err != nil {
				return false, err
			}
			have = have.With(hidden...)
			for _, d := range hidden {
				refs = append(refs, d.ID())
			}
		}
	}
	return f.writeAgain(ctx, client, have, refs)
}

// writeAgain writes the documents that Azure marks as failed, and what they refer to if that is failed. It reports whether
// there was any. What a document refers to is written before the document.
func (f *FailedWrites) writeAgain(ctx context.Context, client reconcile.Azure, have plan.Snapshot, ids []azure.ID) (bool, error) {
	type state struct {
		ProvisioningState string `json:"provisioningState,omitempty"`
	}
	var written []azure.ID
	var errs []error
	var write func(ids []azure.ID)
	write = func(ids []azure.ID) {
		for _, id := range ids {
			for id != "" && !slices.ContainsFunc(f.Types, id.Is) {
				id = id.Parent() // a part counts as the document that it is in
			}
			view, ok, err := plan.View[state](have, id)
			if err != nil || !ok {
				continue
			}
			doc, _ := have.Get(id)
			write(f.references(id, doc))
			if strings.EqualFold(view.Properties.ProvisioningState, "Failed") && !slices.ContainsFunc(written, id.Equal) {
				_, err := azure.Do(ctx, client, azure.Request{Verb: azure.Put, ID: id, Body: doc, IfMatch: doc.Etag()})
				written, errs = append(written, id), append(errs, err)
			}
		}
	}
	write(ids)
	return len(written) > 0, errors.Join(errs...)
}

func (f *FailedWrites) references(id azure.ID, d azure.Document) []azure.ID {
	for fullType, of := range f.Refers {
		if id.Is(fullType) {
			return slices.DeleteFunc(of(d), func(to azure.ID) bool { return to.Under(id) })
		}
	}
	return nil
}

// ReferencesOf finds the references in a document, with its properties viewed as P.
func ReferencesOf[P any](d azure.Document) []azure.ID {
	r, err := azure.Decode[P](d)
	if err != nil {
		return nil // the plan that made it would have failed
	}
	return azure.References(r.Properties)
}
