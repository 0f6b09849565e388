package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// Op is what a step does.
type Op string

// The operations.
const (
	Create Op = "create"
	Update Op = "update"
	Delete Op = "delete"
	Act    Op = "run" // an action
)

// Step is one write to Azure.
type Step struct {
	Op      Op
	ID      azure.ID
	Patch   bool           // an update by PATCH
	Action  string         // that is run
	Body    azure.Document // of a create, update or action
	IfMatch string         // etag that an update was planned on
	Why     string
	For     []string
	Changes []azure.Change // of an update
	After   []int          // indices of earlier steps that must have succeeded
}

// Plan is the steps that turn a snapshot into what a graph wants. Steps are in an
// order in which they may be applied one by one; After says which may run side by
// side.
type Plan struct {
	Steps   []Step
	Pending []string // see [Graph]
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// Diff compares have with want. The same arguments give the same plan.
//
// A resource is created or updated after all that it refers to, and deleted after
// all that referred to it. References that cannot be put in such an order are an
// error.
func Diff(have Snapshot, want Graph) (Plan, error) {
	var drafts []draft
	for _, n := range want.nodes {
		d, changed, err := compare(have, n)
		if err != nil {
			return Plan{}, err
		}
		if changed {
			drafts = append(drafts, d)
		}
	}
	steps, err := order(drafts)
	return Plan{Steps: steps, Pending: want.Pending}, err
}

// draft is a step that has no place in the order yet.
type draft struct {
	step   Step
	refers []azure.ID // what it will refer to when done
	drops  []azure.ID // what it referred to and will not any more
	after  []azure.ID // what it waits for besides
}

func compare(have Snapshot, n Node) (draft, bool, error) {
	if n.action != "" {
		return draft{step: Step{Op: Act, ID: n.ID, Action: n.action, Body: n.body, Why: n.Why, For: n.For}, after: n.After}, true, nil
	}
	doc, exists := have.Get(n.ID)
	if n.want == nil && !exists {
		return draft{}, false, nil
	}
	d := draft{step: Step{ID: n.ID, Why: n.Why, For: n.For}, after: n.After}
	if n.want == nil {
		var err error
		d.step.Op = Delete
		d.drops, err = n.refer(doc)
		return d, true, err
	}
	body, changes, err := azure.Overlay(doc, n.want)
	if err != nil {
		return d, false, err
	}
	if exists && len(changes) == 0 {
		return d, false, nil
	}
	d.refers = azure.References(n.want)
	d.step.Op, d.step.Body = Create, body
	if !exists {
		return d, true, nil
	}
	referred, err := n.refer(doc)
	if err != nil {
		return d, false, err
	}
	d.drops = without(referred, d.refers)
	d.step.Op, d.step.Changes, d.step.IfMatch, d.step.Patch = Update, changes, doc.Etag(), n.Patch
	d.step.Body, err = sections(body, n, changes)
	return d, true, err
}

// without is the ids in a that are not in b.
func without(a, b []azure.ID) []azure.ID {
	keep := make(map[string]bool, len(b))
	for _, id := range b {
		keep[id.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(id azure.ID) bool { return keep[id.Key()] })
}

// sections cuts an update's body to what its node sends.
func sections(body azure.Document, n Node, changes []azure.Change) (azure.Document, error) {
	paths := n.Only
	if n.Patch && len(paths) == 0 {
		for _, c := range changes {
			path, _, _ := strings.Cut(c.Path, "[")
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return body, nil
	}
	var whole map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&whole); err != nil {
		return nil, fmt.Errorf("document of %s: %w", n.ID, err)
	}
	cut := map[string]any{}
	for _, path := range paths {
		copyPath(cut, whole, strings.Split(path, "."))
	}
	return json.Marshal(cut)
}

func copyPath(to, from map[string]any, path []string) {
	x, ok := from[path[0]]
	if !ok {
		return
	}
	if len(path) == 1 {
		to[path[0]] = x
		return
	}
	deeper, ok := x.(map[string]any)
	if !ok {
		return
	}
	next, ok := to[path[0]].(map[string]any)
	if !ok {
		next = map[string]any{}
		to[path[0]] = next
	}
	copyPath(next, deeper, path[1:])
}
