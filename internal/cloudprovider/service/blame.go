package service

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// blame names the requests at fault where each step that failed was for one Service,
// or Azure says which part of the document it does not take, or they wait for zones.
func blame(err error, out reconcile.Outcome, batch []request) error {
	if waiting, ok := errors.AsType[*unzoned](err); ok {
		return waiting.among(len(batch), func(i int) string { return batch[i].service.Key() })
	}
	if len(out.Reports) == 0 {
		return err
	}
	culprits := map[int]error{}
	for _, res := range out.Reports[len(out.Reports)-1].Results {
		if res.Err == nil || errors.Is(res.Err, reconcile.ErrNotAttempted) {
			continue
		}
		if !slices.ContainsFunc(suspicions(res), func(suspects func(request) bool) bool { return accuse(culprits, batch, res, suspects) }) {
			return err
		}
	}
	if len(culprits) == 0 || len(culprits) == len(batch) {
		return err
	}
	return &reconcile.Refusal{Culprits: culprits}
}

// suspicions are whom a failure is about, the narrowest first. Where Azure is busy and does
// not say with whose part, all wait whom the document serves, and nobody else does.
func suspicions(res reconcile.Result) []func(request) bool {
	named := namedBy(res)
	all := []func(request) bool{func(r request) bool { return isFor(res.Step, r) || len(res.Step.For) > 1 && named(r) }}
	if azure.KindOf(res.Err) == azure.Busy {
		all = append(all, func(r request) bool { return slices.Contains(res.Step.For, r.service.Key()) })
	}
	return all
}

// accuse adds the suspects in a batch to the culprits, and reports whether there is one.
func accuse(culprits map[int]error, batch []request, res reconcile.Result, suspects func(request) bool) (found bool) {
	for i, r := range batch {
		if !r.sweeps && suspects(r) {
			culprits[i], found = fmt.Errorf("%s: %w", res.Step.Why, res.Err), true
		}
	}
	return found
}

// isFor reports whether a step is for one Service alone.
func isFor(s plan.Step, r request) bool { return len(s.For) == 1 && s.For[0] == r.service.Key() }

// namedBy tells whether an error is about what a Service has in a shared document: it
// tells the name of a part, which begins with the Service's own, or the id of what the
// Service's frontend refers to.
func namedBy(res reconcile.Result) func(request) bool {
	e, ok := errors.AsType[*azure.Error](res.Err)
	if !ok {
		return func(request) bool { return false }
	}
	text := strings.ToLower(e.Target + " " + e.Message)
	var told []string // frontends that refer to what is told, in lower case
	for name, refs := range frontendsOf(res.Step) {
		if slices.ContainsFunc(refs, func(ref *azure.Reference) bool { return ref != nil && tells(text, ref.ID.Key()) }) {
			told = append(told, name)
		}
	}
	return func(r request) bool {
		base := framework.DefaultLoadBalancerName(r.service.Service)
		return strings.Contains(text, base) || slices.ContainsFunc(told, func(name string) bool { return strings.HasPrefix(name, base) })
	}
}

// frontendsOf is what the frontends of a load balancer refer to that a step writes, by
// their names in lower case.
func frontendsOf(s plan.Step) map[string][]*azure.Reference {
	if !sameType(s.ID, network.LoadBalancers) || len(s.Body) == 0 {
		return nil
	}
	lb, err := azure.Decode[network.LoadBalancer](s.Body)
	if err != nil {
		return nil // it was written by the planner
	}
	refs := make(map[string][]*azure.Reference, len(lb.Properties.FrontendIPConfigurations))
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		refs[strings.ToLower(fe.Name)] = []*azure.Reference{fe.Properties.PublicIPAddress, fe.Properties.Subnet}
	}
	return refs
}

// tells reports whether a text, in lower case, has an id, a name or an address that no longer
// one contains.
func tells(text, word string) bool {
	const inNames = "abcdefghijklmnopqrstuvwxyz0123456789-_/"
	part := func(r rune) bool { return strings.ContainsRune(inNames, r) }
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 || word == "" {
			return false
		}
		from, to := at+i, at+i+len(word)
		if (from == 0 || word[0] == '/' || !part(rune(text[from-1]))) && (to == len(text) || !part(rune(text[to]))) {
			return true
		}
		at = to
	}
}
