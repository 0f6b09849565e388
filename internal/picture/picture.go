// Package picture draws what belongs together as boxes in columns, with lines from box to box, as SVG. The place of a box follows from its
// column and its order, so it stays when others change. Every layer may use it; it imports nothing of kaz.
package picture

import (
	"slices"
	"strings"
)

// Picture is what is drawn: columns of boxes from left to right, and notes below them.
type Picture struct {
	Title string `json:"title"`
	// Columns without boxes are not drawn.
	Columns []Column `json:"columns"`
	Notes   []Note   `json:"notes,omitempty"`
	// Text says the same in words. It is not drawn.
	Text string `json:"text,omitempty"`
}

// Column is a kind of boxes.
type Column struct {
	Title string `json:"title"`
	Boxes []Box  `json:"boxes,omitempty"`
}

// Box is an object or a resource.
type Box struct {
	// Key is unique in a picture, without regard to letter case.
	Key   string   `json:"key"`
	Kind  string   `json:"kind"`
	Name  string   `json:"name"`
	State State    `json:"state,omitempty"`
	Lines []string `json:"lines,omitempty"`
	// To are the keys of boxes that lines join with this one. Keys without a box are ignored.
	To []string `json:"to,omitempty"`
	// Resource is the id of an Azure resource, "" for none.
	Resource string `json:"resource,omitempty"`
}

// Note is a list of sentences below the boxes.
type Note struct {
	Title string   `json:"title"`
	State State    `json:"state,omitempty"`
	Lines []string `json:"lines"`
}

// State is how a box is shown. It has a mark, too, so that colours are not needed to tell it.
type State string

// The states. The zero value is that of a box that has none.
const (
	Good   State = "good"
	Create State = "create"
	Change State = "change"
	Delete State = "delete"
	Wait   State = "wait"
	Bad    State = "bad"
)

// marks are the marks of the states: those of kaz explain, where it has one.
var marks = map[State]string{Good: "=", Create: "+", Change: "~", Delete: "-", Wait: "…", Bad: "!"}

// New returns a picture with columns.
func New(title string, columns ...string) *Picture {
	p := &Picture{Title: title}
	for _, c := range columns {
		p.Columns = append(p.Columns, Column{Title: c})
	}
	return p
}

// Add adds a box to a column. A box with its key that is there already gets the lines to other boxes.
func (p *Picture) Add(column int, b Box) {
	for c := range p.Columns {
		boxes := p.Columns[c].Boxes
		if i := slices.IndexFunc(boxes, func(o Box) bool { return strings.EqualFold(o.Key, b.Key) }); i >= 0 {
			boxes[i].To = append(boxes[i].To, b.To...)
			return
		}
	}
	p.Columns[column].Boxes = append(p.Columns[column].Boxes, b)
}

// Note adds a note, unless it has no lines.
func (p *Picture) Note(title string, state State, lines []string) {
	if len(lines) > 0 {
		p.Notes = append(p.Notes, Note{title, state, lines})
	}
}

// Reword returns the picture with other words: change gets each text that is drawn.
func (p Picture) Reword(change func(string) string) Picture {
	all := func(lines []string) []string {
		lines = slices.Clone(lines)
		for i := range lines {
			lines[i] = change(lines[i])
		}
		return lines
	}
	p.Title, p.Columns, p.Notes = change(p.Title), slices.Clone(p.Columns), slices.Clone(p.Notes)
	for i, c := range p.Columns {
		boxes := slices.Clone(c.Boxes)
		for j, b := range boxes {
			boxes[j].Name, boxes[j].Lines = change(b.Name), all(b.Lines)
		}
		p.Columns[i].Boxes = boxes
	}
	for i, n := range p.Notes {
		p.Notes[i].Lines = all(n.Lines)
	}
	return p
}
