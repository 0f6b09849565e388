package plan

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// immutable returns the path of the first change that Azure does not allow.
func (n Node) immutable(changes []azure.Change) (path string, ok bool) {
	for _, c := range changes {
		for _, fixed := range n.Immutable {
			if c.Path == fixed || strings.HasPrefix(c.Path, fixed+".") || strings.HasPrefix(c.Path, fixed+"[") {
				return c.Path, true
			}
		}
	}
	return "", false
}

// again completes the draft of a node that is made anew: a deletion, then a creation.
func (n Node) again(d draft, have any, because string) (*draft, error) {
	if n.shared {
		return nil, fmt.Errorf("%s would have to be made anew, as %s, but it has elements of others", n.ID, because)
	}
	first := d
	first.step.Op, first.step.Why = Delete, n.Why+", made anew as "+because
	first.drops = azure.References(have)
	d.first = &first
	fresh, err := n.overlay(nil)
	d.create(n, fresh)
	return &d, err
}

// releaseUsers makes each resource that refers to a resource made anew drop the reference before, and take it back
// after. If it cannot drop the reference, it is noted to be made anew too.
func (c *comparison) releaseUsers() error {
	var anew []azure.ID
	for _, d := range c.drafts {
		if d != nil && d.first != nil {
			anew = append(anew, d.step.ID)
		}
	}
	for i := range c.want.nodes {
		if len(anew) == 0 {
			break
		}
		if err := c.releaseIn(i, anew); err != nil {
			return err
		}
	}
	return nil
}

// releaseIn is [comparison.releaseUsers] for one node.
func (c *comparison) releaseIn(i int, anew []azure.ID) error {
	n, d := c.want.nodes[i], c.drafts[i]
	doc, exists := c.have.Get(n.ID)
	if n.action != "" || n.want == nil || !exists || d != nil && d.step.Op != Update {
		return nil
	}
	have, err := n.view(doc)
	if err != nil || !refersTo(have, anew) {
		return err
	}
	n, late, err := c.resolve(n)
	if err != nil {
		return err
	}
	next, err := n.overlay(doc)
	if err != nil {
		return err
	}
	then, err := n.view(next.body)
	if err != nil || !refersTo(then, anew) {
		return err // the update of the node drops the reference anyway
	}
	u := user{node: n, late: distinct(late), doc: doc, body: next.body, have: have}
	because, err := u.release(anew)
	if because != "" {
		c.anew[n.ID.Key()] = because
	} else if err == nil {
		u.last.refers = references(then)
		c.drafts[i] = &u.last
	}
	return err
}

// user is a resource that refers to a resource that is made anew.
type user struct {
	node        Node
	late        []output
	doc, body   azure.Document // the present document, the wanted one
	have        any            // the view of doc
	first, last draft
}

// release makes the two updates of the user. The result because is not empty if the user must be made anew itself.
func (u *user) release(anew []azure.ID) (because string, err error) {
	n := u.node
	released, changes, err := azure.Release(u.doc, n.want, anew...)
	if err != nil {
		return "", err
	}
	if path, fixed := n.immutable(changes); fixed {
		return path + " cannot be changed", nil
	}
	between, err := n.view(released)
	if err != nil {
		return "", err
	}
	if refersTo(between, anew) {
		return "what it refers to is made anew", nil
	}
	u.first = draft{step: Step{ID: n.ID, Why: n.Why + ", without what is made anew", For: n.For}, after: n.After}
	u.last = draft{step: Step{ID: n.ID, Why: n.Why, For: n.For}, after: n.After, late: u.late, first: &u.first}
	if err := u.first.update(n, u.doc, u.have, overlaid{released, changes}); err != nil {
		return "", err
	}
	u.first.refers, u.first.drops = nil, anew
	after, err := n.overlay(released)
	if err != nil {
		return "", err
	}
	return "", u.last.update(n, u.doc, u.have, overlaid{u.body, after.changes})
}

func refersTo(view any, ids []azure.ID) bool {
	return slices.ContainsFunc(azure.References(view), func(id azure.ID) bool {
		return slices.ContainsFunc(ids, func(of azure.ID) bool { return id.Under(of) })
	})
}
