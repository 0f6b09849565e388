package emulator

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/document"
	"kaz/internal/emulator/store"
)

// reader answers GET and HEAD: of resources, views and lists.
type reader struct{ scopes }

func (t reader) read(r *request) (reply, error) {
	if r.List {
		return t.list(r)
	}
	return t.get(r)
}

func (t reader) get(r *request) (reply, error) {
	doc, err := t.find(r)
	if err != nil {
		return reply{}, err
	}
	c := t.call(r, behaviour.Get)
	c.Old = doc
	if r.Action != "" {
		body, err := r.Kind.View(r.Action)(c)
		return reply{status: http.StatusOK, body: body}, err
	}
	answer := reply{status: http.StatusNoContent}
	if r.method != http.MethodHead {
		answer = reply{status: http.StatusOK, body: t.view(r, c, doc)}
	}
	if r.Kind.Style.EtagHeader != behaviour.Never {
		t.etagHeader(r, &answer)
	}
	return answer, nil
}

// view is what a client sees of the document that was found: often the stored text
// itself.
func (t reader) view(r *request, c *behaviour.Call, doc behaviour.Object) any {
	if e := t.docs.Entry(r.ID); e != nil && !r.stale && !r.Kind.Shows() {
		return json.RawMessage(e.Text)
	}
	return document.View(*c, r.Kind, doc)
}

func (t reader) list(r *request) (reply, error) {
	if err := t.check(r); err != nil {
		return reply{}, err
	}
	c := t.call(r, behaviour.List)
	keep := func(behaviour.Object) bool { return true }
	if filter := r.query.Get("$filter"); filter != "" && r.Kind.Filter != nil {
		test, err := r.Kind.Filter(c, filter)
		if err != nil {
			return reply{}, err
		}
		keep = test
	}
	drop := func(o behaviour.Object) bool { return !keep(o) }
	switch {
	case r.Kind.All != nil:
		items, err := r.Kind.All(c)
		if err != nil {
			return reply{}, err
		}
		items = slices.DeleteFunc(items, drop)
		return page(r, len(items), func(i int) any { return items[i] })
	case r.Kind.Inline != "":
		items := slices.DeleteFunc(behaviour.Objects(c.Parent, r.Kind.Inline), drop)
		return page(r, len(items), func(i int) any {
			call := *c
			call.ID = r.Kind.Child(r.ID, items[i])
			return document.View(call, r.Kind, items[i])
		})
	}
	return t.listStored(r, c, keep)
}

func (t reader) listStored(r *request, c *behaviour.Call, keep func(behaviour.Object) bool) (reply, error) {
	entries := make([]*store.Entry, 0, 16)
	for _, e := range t.docs.Entries(r.ID, r.Kind.Name) {
		if r.stale {
			e = e.Before
		}
		if e != nil && !e.Hidden && (r.query.Get("$filter") == "" || keep(t.docs.Doc(e))) {
			entries = append(entries, e)
		}
	}
	return page(r, len(entries), func(i int) any {
		if !r.Kind.Shows() {
			return json.RawMessage(entries[i].Text)
		}
		call := *c
		call.ID = entries[i].ID
		return document.View(call, r.Kind, t.docs.Doc(entries[i]))
	})
}

// pageSize is how many resources a page of a list has, unless the type says else.
const pageSize = 1000

// page is the page of n items that the request's skip token asks for.
func page(r *request, n int, item func(i int) any) (reply, error) {
	size := cmp.Or(r.Kind.Page, pageSize)
	if top, err := strconv.Atoi(r.query.Get("$top")); err == nil && top > 0 && top < size {
		size = top
	}
	from := 0
	if token := r.query.Get("$skiptoken"); token != "" {
		at, err := strconv.Atoi(token)
		if err != nil || at < 0 {
			return reply{}, behaviour.Gateway(400, "InvalidSkipToken", "The skip token '%s' is invalid.", token)
		}
		from = at
	}
	to := min(from+size, n)
	values := make([]any, 0, max(0, to-from))
	for i := from; i < to; i++ {
		values = append(values, item(i))
	}
	body := behaviour.Object{"value": values}
	if to < n || r.Kind.EmptyLast && from < n {
		body["nextLink"] = r.next(to)
	}
	return reply{status: http.StatusOK, body: body}, nil
}
