package plan

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// order sorts drafts so that each comes after what it depends on, keeping the
// order in which they were given where nothing else decides.
func order(drafts []draft) ([]Step, error) {
	p := newPrecedence(drafts)
	steps := make([]Step, 0, len(drafts))
	place := make([]int, len(drafts)) // index in steps + 1
	for len(steps) < len(drafts) {
		progress := false
		for i, d := range drafts {
			if place[i] > 0 || slices.ContainsFunc(p.before[i], func(j int) bool { return place[j] == 0 }) {
				continue
			}
			for _, j := range p.before[i] {
				d.step.After = append(d.step.After, place[j]-1)
			}
			slices.Sort(d.step.After)
			d.step.bindLate(d.late, func(id azure.ID) (Step, int) {
				at := place[p.makes[id.Key()]] - 1
				return steps[at], at
			})
			if d.first != nil && d.step.IfMatch != "" {
				d.step.bindEtag(place[p.takes[d.step.ID.Key()]] - 1)
			}
			steps = append(steps, d.step)
			place[i] = len(steps)
			progress = true
		}
		if !progress {
			return nil, cycleError(drafts, place)
		}
	}
	return steps, nil
}

func cycleError(drafts []draft, place []int) error {
	var stuck []string
	for i, d := range drafts {
		if place[i] == 0 {
			stuck = append(stuck, fmt.Sprintf("%s %s", d.step.Op, d.step.ID))
		}
	}
	return fmt.Errorf("no order for these steps, each waits for another: %s", strings.Join(stuck, "; "))
}

// precedence collects which draft comes before which.
type precedence struct {
	drafts []draft
	// If a resource has two drafts, takes finds the draft that removes something, and makes the draft that creates
	// something. Most resources have one draft that is both.
	takes, makes places
	before       [][]int // for each draft, those that must precede it
}

func newPrecedence(drafts []draft) precedence {
	p := precedence{drafts: drafts, takes: places{}, makes: places{}, before: make([][]int, len(drafts))}
	for i, d := range drafts {
		key := d.step.ID.Key()
		if _, second := p.takes[key]; !second {
			p.takes[key] = i
		}
		p.makes[key] = i
	}
	for i, d := range drafts {
		p.afterItsReferences(i)
		p.beforeWhatItLetsGo(i)
		p.withParent(i)
		p.add(p.takes[d.step.ID.Key()], p.makes[d.step.ID.Key()])
		for _, o := range d.late {
			p.add(p.makes[o.id.Key()], i)
		}
		for _, id := range d.after {
			if j, ok := p.makes[id.Key()]; ok {
				p.add(j, i)
			}
		}
	}
	return p
}

func (p precedence) add(first, then int) {
	if first != then && !slices.Contains(p.before[then], first) {
		p.before[then] = append(p.before[then], first)
	}
}

// afterItsReferences orders a draft after the drafts of what it refers to.
func (p precedence) afterItsReferences(i int) {
	for _, id := range p.drafts[i].refers {
		if j, ok := p.makes.holder(id); ok && p.drafts[j].step.Op != Delete {
			p.add(j, i)
		}
	}
}

// beforeWhatItLetsGo orders a draft before the drafts that delete, or take a sub-resource from, what it no longer
// refers to.
func (p precedence) beforeWhatItLetsGo(i int) {
	for _, id := range p.drafts[i].drops {
		if j, ok := p.takes.holder(id); ok && i != j && p.drafts[j].takesAway(id) {
			p.add(i, j)
		}
	}
}

// takesAway reports whether the resource id, or what holds it, is gone when the draft is done.
func (d draft) takesAway(id azure.ID) bool {
	return d.step.Op == Delete || slices.ContainsFunc(d.parts, func(part azure.ID) bool { return id.Under(part) })
}

// withParent orders the draft of a sub-resource after the draft of its parent. A deletion comes before the draft of
// the parent.
func (p precedence) withParent(i int) {
	parent := p.drafts[i].step.ID.Parent()
	if j, ok := p.takes.holder(parent); ok && p.drafts[i].step.Op == Delete {
		p.add(i, j)
	} else if j, ok := p.makes.holder(parent); ok {
		p.add(j, i)
	}
}

// places finds the draft that writes a resource or the document that holds it.
type places map[string]int

func (p places) holder(id azure.ID) (int, bool) {
	for ; id != ""; id = id.Parent() {
		if i, ok := p[id.Key()]; ok {
			return i, true
		}
	}
	return 0, false
}
