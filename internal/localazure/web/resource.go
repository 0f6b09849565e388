package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/world"
)

const (
	mostID         = 4096      // bytes of an id that is asked for
	mostDocument   = 256 << 10 // bytes of a document that a page shows
	mostDiffs      = 100       // lines of a difference
	mostValue      = 200       // bytes of a value in a difference
	mostReferences = 500
	mostOperations = 30
)

// resourcePage is a resource.
type resourcePage struct {
	ID            azure.ID
	Type, State   string
	Gone          bool // it was deleted
	Up            []azure.ID
	To, From      []reference
	Health        []health // of the members of a load balancer's rules or a gateway's pools, as far as it is known
	Document      template.HTML
	DocumentBytes int
	Cut           bool // the document is longer
	History       []step
	Operations    []operationRow
}

// reference is one between resources, with the path of its place.
type reference struct {
	ID   azure.ID
	Path string
}

// step is a version of a resource, with what it changed.
type step struct {
	At       time.Time
	Verb, By string
	Lines    []diffLine
	More     int // lines that are left out
}

func (s *Site) showResource(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("id")
	id, err := azure.ParseID(text)
	if err != nil || len(text) > mostID {
		s.fail(w, r, http.StatusBadRequest, "The address has no id of a resource.")
		return
	}
	page, known := s.resource(id)
	if !known {
		s.fail(w, r, http.StatusNotFound, "This Azure has no such resource, and has not had it for as long as it remembers.")
		return
	}
	s.show(w, r, http.StatusOK, frame{View: "resource", Title: id.Name()}, fixed(page))
}

// resource reads a resource with its history and its operations. It reports whether the resource is, or was, there.
func (s *Site) resource(id azure.ID) (resourcePage, bool) {
	s.Azure.EndDue()
	page := resourcePage{ID: id, Type: id.Type(), Up: ancestors(id)}
	held := id // the document that holds it
	if k := s.Azure.Kinds.Of(id.Type()); k != nil {
		held = k.HolderOf(id)
		page.Type = k.Name
	}
	history := s.Recorder.history(held)
	s.Azure.Read(func(t *world.Transaction) {
		entry := t.Entry(held)
		doc, found := t.Get(id)
		if found = found && (entry == nil || !entry.Hidden); found {
			page.setDocument(shown(t, id, doc))
			page.State = behaviour.Text(doc, "properties.provisioningState")
			page.setReferences(t, id)
			page.Health = s.membersOf(id, doc)
		}
		page.Gone = !found
		page.History = s.steps(t, held, history)
		page.Operations = operationsOn(t, held)
	})
	return page, !page.Gone || len(history) > 0
}

// ancestors are the resources that a resource is in, the outermost first.
func ancestors(id azure.ID) []azure.ID {
	var all []azure.ID
	for up := id.Parent(); up.Group() != ""; up = up.Parent() {
		all = append(all, up)
	}
	slices.Reverse(all)
	return all
}

func (p *resourcePage) setReferences(t *world.Transaction, id azure.ID) {
	if e := t.Entry(id); e != nil {
		for _, target := range digestOf(e).targets {
			if to := spelled(t, target.key); t.Known(to.Type()) { // not what stands for an address that is in use
				p.To = append(p.To, reference{to, target.path})
			}
		}
	}
	for _, part := range withParts(t, id) {
		for _, r := range t.Referrers(part) {
			if !r.Resource.Under(id) {
				p.From = append(p.From, reference{r.Object, r.Path})
			}
		}
	}
	p.To, p.From = compact(p.To), compact(p.From)
}

// withParts are the ids of a resource and of the resources that are in its document, such as the pools of a load balancer.
func withParts(t *world.Transaction, id azure.ID) []azure.ID {
	all := []azure.ID{id}
	k := t.Parts.Kinds.Of(id.Type())
	doc, _ := t.Get(id)
	if k == nil {
		return all
	}
	for _, child := range k.Children {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			all = append(all, child.Child(id, element))
		}
	}
	return all
}

// spelled is the id of a key in the spelling of the resource.
func spelled(t *world.Transaction, key string) azure.ID {
	if e := t.Entry(azure.ID(key)); e != nil {
		return e.ID
	}
	if up := azure.ID(key).Parent(); up != "" {
		if e := t.Entry(up); e != nil && len(e.ID) < len(key) {
			return e.ID + azure.ID(key[len(e.ID):])
		}
	}
	return azure.ID(key)
}

func compact(all []reference) []reference {
	slices.SortFunc(all, func(a, b reference) int {
		return cmp.Or(strings.Compare(string(a.ID), string(b.ID)), strings.Compare(a.Path, b.Path))
	})
	all = slices.Compact(all)
	return all[:min(len(all), mostReferences)]
}

// setDocument formats a document, with links at ids.
func (p *resourcePage) setDocument(doc behaviour.Object) {
	var b strings.Builder
	formatValue(&b, doc, "")
	text, err := json.Marshal(doc)
	if err != nil {
		text = nil // it was decoded from JSON
	}
	p.DocumentBytes = len(text)
	if p.Cut = b.Len() > 4*mostDocument; p.Cut {
		whole := ""
		if indented, err := json.MarshalIndent(doc, "", "  "); err == nil {
			whole = strings.ToValidUTF8(string(indented[:min(len(indented), mostDocument)]), "")
		}
		p.Document = template.HTML(template.HTMLEscapeString(whole)) // escaped
		return
	}
	p.Document = template.HTML(b.String()) // formatValue escapes every text
}

// formatValue writes a JSON value as HTML: indented, with classes for the kinds of values, and with links at ids.
func formatValue(b *strings.Builder, value any, indent string) {
	inner := indent + "  "
	switch v := value.(type) {
	case behaviour.Object:
		if len(v) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{\n")
		for i, key := range sortedKeys(v) {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(inner + `<span class="k">` + template.HTMLEscapeString(quoted(key)) + `</span>: `)
			formatValue(b, v[key], inner)
		}
		b.WriteString("\n" + indent + "}")
	case []any:
		if len(v) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteString("[\n")
		for i, element := range v {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(inner)
			formatValue(b, element, inner)
		}
		b.WriteString("\n" + indent + "]")
	case string:
		formatText(b, v)
	default:
		b.WriteString(`<span class="n">` + template.HTMLEscapeString(quoted(v)) + `</span>`)
	}
}

func formatText(b *strings.Builder, text string) {
	shown := template.HTMLEscapeString(quoted(text))
	if id, err := azure.ParseID(text); err == nil && strings.HasPrefix(text, "/subscriptions/") && len(text) <= mostID {
		b.WriteString(`<a href="` + template.HTMLEscapeString(resourceLink(id)) + `">` + shown + `</a>`)
		return
	}
	class := "s"
	if text == hidden {
		class = "h"
	}
	b.WriteString(`<span class="` + class + `">` + shown + `</span>`)
}

// quoted is a JSON value as its text.
func quoted(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sortedKeys are the keys of an object, those first that say what it is.
func sortedKeys(o behaviour.Object) []string {
	rank := map[string]int{"name": -5, "id": -4, "type": -3, "location": -2, "tags": -1, "properties": 1}
	return slices.SortedFunc(maps.Keys(o), func(a, b string) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), strings.Compare(a, b)) })
}

// steps are the versions of a resource with what each changed.
func (s *Site) steps(t *world.Transaction, id azure.ID, history []version) []step {
	docs := make([]behaviour.Object, len(history))
	for i, v := range history {
		if v.Text == nil {
			continue
		}
		var doc behaviour.Object
		if json.Unmarshal(v.Text, &doc) == nil {
			docs[i] = shown(t, id, doc)
		}
	}
	all := make([]step, len(history))
	for i, v := range history {
		all[i] = step{At: v.At, Verb: v.verb, By: s.byline(v.Written)}
		if i+1 == len(history) || docs[i] == nil || docs[i+1] == nil {
			continue // there is nothing to compare
		}
		lines := differences(docs[i+1], docs[i])
		all[i].Lines, all[i].More = lines[:min(len(lines), mostDiffs)], max(0, len(lines)-mostDiffs)
	}
	return all
}

// operationRow is an operation on a resource.
type operationRow struct {
	ID, Verb, State, Error string
	Resource               azure.ID
	Start, End             time.Time
	Percent                int           // of the time of one that runs
	Left                   time.Duration // until it ends
}

// operationsOn are the operations on a document or what is in it, the newest first.
func operationsOn(t *world.Transaction, id azure.ID) []operationRow {
	var rows []operationRow
	for _, o := range slices.Backward(t.Parts.Queue.All()) {
		if len(rows) == mostOperations {
			break
		}
		if o.Resource.Under(id) {
			rows = append(rows, rowOf(o, t.At))
		}
	}
	return rows
}

func rowOf(o *operation.Operation, now time.Time) operationRow {
	row := operationRow{ID: o.ID, Verb: string(o.Verb), State: o.State(), Resource: o.Resource, Start: o.Start, End: o.End}
	if o.Error != nil {
		row.Error = o.Error.Code + ": " + o.Error.Message
	}
	if total := o.Due.Sub(o.Start); o.End.IsZero() && total > 0 {
		const whole = 100
		row.Percent = int(min(whole, whole*now.Sub(o.Start)/total))
		row.Left = max(0, o.Due.Sub(now)).Round(100 * time.Millisecond)
	}
	return row
}

// running are the operations that run.
func (s *Site) running() (rows []operationRow) {
	s.Azure.EndDue()
	s.Azure.Read(func(t *world.Transaction) {
		for _, o := range t.Parts.Queue.Running() {
			rows = append(rows, rowOf(o, t.At))
		}
	})
	return rows
}
