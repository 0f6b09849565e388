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
	Late    []Late         // values of Body that are known only after earlier steps
}

// Plan is the steps that turn a snapshot into what a graph wants. The steps may be applied one by one in their order.
// The field After of each step says which steps may run side by side.
type Plan struct {
	Steps   []Step
	Pending []string // see [Graph]
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// Diff compares have with want. The same arguments give the same plan.
//
// A resource is created or updated after all that it refers to, and deleted after all that referred to it. References
// that allow no such order are an error. So is an [Output] that nothing makes.
func Diff(have Snapshot, want Graph) (Plan, error) {
	drafts, err := compareAll(have, want)
	if err != nil {
		return Plan{}, err
	}
	steps, err := order(drafts)
	return Plan{Steps: steps, Pending: want.Pending}, err
}

// draft is a step without a place in the order yet.
type draft struct {
	step   Step
	refers []azure.ID // what it will refer to when done
	drops  []azure.ID // what it no longer refers to when done
	parts  []azure.ID // the sub-resources that it takes away
	after  []azure.ID // what else it waits for
	late   []output   // what it takes from the answers to other steps
	// first is the step before it at the same resource. If the resource is made anew, this is its deletion. Otherwise
	// it is an update that drops the references to resources that are made anew.
	first *draft
}

// comparison makes a draft of each node that needs a step. A node with outputs is
// compared after the nodes that make them.
type comparison struct {
	have   Snapshot
	want   Graph
	anew   map[string]string // why a resource is made anew, by id, beyond what its node says
	drafts []*draft          // nil for a node that needs no step
	state  []progress
}

type progress int

const (
	unknown progress = iota
	underway
	known
)

// compareAll makes all drafts. It begins again whenever one more resource must be made anew, because other resources
// may depend on that.
func compareAll(have Snapshot, want Graph) ([]draft, error) {
	anew := map[string]string{}
	for {
		c := comparison{have: have, want: want, anew: anew, drafts: make([]*draft, len(want.nodes)),
			state: make([]progress, len(want.nodes))}
		for i := range want.nodes {
			if _, err := c.draft(i); err != nil {
				return nil, err
			}
		}
		known := len(anew)
		if err := c.releaseUsers(); err != nil {
			return nil, err
		}
		if len(anew) == known {
			return c.flat(), nil
		}
	}
}

// flat lists the drafts in the order of their nodes.
func (c *comparison) flat() []draft {
	var all []draft
	for _, d := range c.drafts {
		if d != nil && d.first != nil {
			all = append(all, *d.first)
		}
		if d != nil {
			all = append(all, *d)
		}
	}
	return all
}

// draft is the draft of node i, nil if there is nothing to do.
func (c *comparison) draft(i int) (*draft, error) {
	n := c.want.nodes[i]
	switch c.state[i] {
	case known:
		return c.drafts[i], nil
	case underway:
		return nil, fmt.Errorf("%s needs an output that needs %s itself", n.ID, n.ID)
	}
	c.state[i] = underway
	doc, exists, err := c.document(n.ID)
	if err != nil {
		return nil, err
	}
	n, next, late, err := c.next(n, doc)
	if err != nil {
		return nil, err
	}
	if c.drafts[i], err = compare(n, doc, exists, next, c.anew[n.ID.Key()]); err != nil {
		return nil, err
	}
	if c.drafts[i] != nil {
		c.drafts[i].late = distinct(late)
	}
	c.state[i] = known
	return c.drafts[i], nil
}

// document returns the document that a resource has when its step comes. A resource has none if its parent is
// created, or is made anew.
func (c *comparison) document(id azure.ID) (azure.Document, bool, error) {
	for parent := id.Parent(); parent != ""; parent = parent.Parent() {
		i, ok := c.want.index[parent.Key()]
		if !ok {
			continue
		}
		d, err := c.draft(i)
		if err != nil || d != nil && d.step.Op == Create {
			return nil, false, err
		}
	}
	doc, exists := c.have.Get(id)
	return doc, exists, nil
}

// overlaid is what a node makes of a document.
type overlaid struct {
	body    azure.Document
	changes []azure.Change
}

// next returns a node with its outputs resolved, and what the node makes of a document. No document contains an
// output. So the outputs of a node do not matter if its changes show none.
func (c *comparison) next(n Node, doc azure.Document) (Node, overlaid, []output, error) {
	next, err := n.overlay(doc)
	if n.action == "" && err == nil && !slices.ContainsFunc(next.changes, hasOutput) {
		return n, next, nil, nil
	}
	n, late, err := c.resolve(n)
	if err == nil {
		next, err = n.overlay(doc)
	}
	return n, next, late, err
}

func hasOutput(c azure.Change) bool { return strings.Contains(c.To, markerJSON) }

// compare is the draft of a node, given its document and what the node makes of the document. It is nil if there is
// nothing to do. The argument anew says why the resource must be made anew. If anew is empty, only a change may
// demand that.
func compare(n Node, doc azure.Document, exists bool, next overlaid, anew string) (*draft, error) {
	d := draft{step: Step{ID: n.ID, Why: n.Why, For: n.For}, after: n.After}
	switch {
	case n.action != "":
		d.step.Op, d.step.Action, d.step.Body = Act, n.action, n.body
		return &d, nil
	case !exists && n.want == nil:
		return nil, nil
	case !exists:
		d.create(n, next)
		return &d, nil
	case n.want != nil && len(next.changes) == 0 && anew == "":
		return nil, nil
	}
	have, err := n.view(doc)
	if err != nil {
		return nil, err
	}
	if path, ok := n.immutable(next.changes); ok {
		anew = path + " cannot be changed"
	}
	switch {
	case n.want == nil:
		d.step.Op, d.drops = Delete, azure.References(have)
		return &d, nil
	case anew != "":
		return n.again(d, have, anew)
	}
	return &d, d.update(n, doc, have, next)
}

func (d *draft) create(n Node, next overlaid) {
	d.step.Op, d.step.Body, d.refers = Create, next.body, references(n.want)
}

// update makes a draft the update of a document to the next one. The argument have is the view of the document.
func (d *draft) update(n Node, doc azure.Document, have any, next overlaid) error {
	then, err := n.view(next.body)
	if err != nil {
		return err
	}
	d.refers = references(n.want)
	if n.shared {
		d.refers = references(then) // also of the elements that the view does not state
	}
	d.drops = without(azure.References(have), d.refers)
	d.parts = without(azure.Parts(n.ID, have), azure.Parts(n.ID, then))
	const tags = "tags"
	if n.PatchTags && !slices.ContainsFunc(next.changes, func(c azure.Change) bool { return !strings.HasPrefix(c.Path, tags+"[") }) {
		n.Patch, n.Only = true, []string{tags}
	}
	d.step.Op, d.step.Changes, d.step.IfMatch, d.step.Patch = Update, next.changes, doc.Etag(), n.Patch
	d.step.Body, err = sections(next.body, n, next.changes)
	return err
}

// references are the resources that a view refers to, as far as they are known.
func references(view any) []azure.ID {
	return slices.DeleteFunc(azure.References(view), func(id azure.ID) bool { return strings.Contains(string(id), marker) })
}

// overlay writes what the node wants, if anything, over a document.
func (n Node) overlay(doc azure.Document) (next overlaid, err error) {
	switch {
	case n.want == nil:
	case n.shared:
		next.body, next.changes, err = azure.Merge(doc, n.want, n.owners...)
	default:
		next.body, next.changes, err = azure.Overlay(doc, n.want)
	}
	return next, err
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
