package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// order sorts drafts so that each comes after what it depends on, keeping the
// order in which they were given where nothing else decides.
func order(drafts []draft) ([]Step, error) {
	before := dependencies(drafts)
	steps := make([]Step, 0, len(drafts))
	place := make([]int, len(drafts)) // index in steps + 1
	for len(steps) < len(drafts) {
		progress := false
		for i, d := range drafts {
			if place[i] > 0 || slices.ContainsFunc(before[i], func(j int) bool { return place[j] == 0 }) {
				continue
			}
			for _, j := range before[i] {
				d.step.After = append(d.step.After, place[j]-1)
			}
			slices.Sort(d.step.After)
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

// dependencies gives, for each draft, the drafts that must precede it.
func dependencies(drafts []draft) [][]int {
	d := precedence{drafts: drafts, places: newPlaces(drafts), before: make([][]int, len(drafts)), bodies: map[int][]byte{}}
	for i := range drafts {
		d.afterItsReferences(i)
		d.beforeWhatItLetsGo(i)
		d.besideItsParent(i)
		for _, id := range drafts[i].after {
			if j, ok := d.places[id.Key()]; ok {
				d.add(j, i)
			}
		}
	}
	return d.before
}

// precedence collects which draft comes before which.
type precedence struct {
	drafts []draft
	places places
	before [][]int
	bodies map[int][]byte // of drafts in lower case, each made once
}

func (p precedence) add(first, then int) {
	if first != then && !slices.Contains(p.before[then], first) {
		p.before[then] = append(p.before[then], first)
	}
}

// afterItsReferences: what a draft refers to must be there first.
func (p precedence) afterItsReferences(i int) {
	for _, id := range p.drafts[i].refers {
		if j, ok := p.places.holder(id); ok && p.drafts[j].step.Op != Delete {
			p.add(j, i)
		}
	}
}

// beforeWhatItLetsGo: what is deleted, or loses a sub-resource, does so after its
// referrer let go.
func (p precedence) beforeWhatItLetsGo(i int) {
	for _, id := range p.drafts[i].drops {
		if j, ok := p.places.holder(id); ok && i != j && p.drafts[j].step.Op != Create && !p.keeps(j, id) {
			p.add(i, j)
		}
	}
}

// besideItsParent: a sub-resource is made after its parent and deleted before it.
func (p precedence) besideItsParent(i int) {
	j, ok := p.places.holder(p.drafts[i].step.ID.Parent())
	switch {
	case !ok:
	case p.drafts[i].step.Op == Delete:
		p.add(i, j)
	default:
		p.add(j, i)
	}
}

// keeps reports whether the resource id is still there, itself or inside the
// document of draft j, when that draft is done.
func (p precedence) keeps(j int, id azure.ID) bool {
	step := p.drafts[j].step
	if step.Op != Update {
		return false
	}
	if step.ID.Equal(id) {
		return true
	}
	body, ok := p.bodies[j]
	if !ok {
		body = bytes.ToLower(step.Body)
		p.bodies[j] = body
	}
	return bytes.Contains(body, []byte(`"`+id.Key()+`"`))
}

// places finds the draft that writes a resource or the document that holds it.
type places map[string]int

func newPlaces(drafts []draft) places {
	p := make(places, len(drafts))
	for i, d := range drafts {
		p[d.step.ID.Key()] = i
	}
	return p
}

func (p places) holder(id azure.ID) (int, bool) {
	for ; id != ""; id = id.Parent() {
		if i, ok := p[id.Key()]; ok {
			return i, true
		}
	}
	return 0, false
}
