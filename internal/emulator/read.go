package emulator

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// get serves GET and HEAD of a resource.
func (t *transaction) get(r *request) error {
	doc, err := t.find(r)
	if err != nil {
		return err
	}
	c := r.call(t)
	c.Verb, c.Old = behaviour.Get, doc
	t.addParent(r, c)
	if r.action != "" {
		c.Action = r.action
		body, err := findView(r.kind, r.action)(c)
		r.reply = reply{status: http.StatusOK, body: body}
		return err
	}
	r.reply = reply{status: http.StatusOK, body: t.viewStored(c, r, doc)}
	if r.method == http.MethodHead {
		r.reply = reply{status: http.StatusNoContent}
	}
	if r.kind.Style.EtagHeader != behaviour.Never {
		t.etagHeader(r)
	}
	return nil
}

func (t *transaction) etagHeader(r *request) {
	e := t.store.entries[holderOf(r.kind, r.id).Key()]
	if e == nil || e.etag == "" {
		return
	}
	etag := e.etag
	if form := r.kind.Style.EtagHeaderForm; form == behaviour.QuotedGUID {
		etag = strconv.Quote(strings.Trim(etag, `"`))
	} else if form == behaviour.BareGUID {
		etag = strings.Trim(etag, `"`)
	}
	r.set("ETag", etag)
}

// addParent gives a call about a sub-resource its parent's document.
func (t *transaction) addParent(r *request, c *behaviour.Call) {
	if r.kind.parent == nil {
		return
	}
	parent := r.id
	if !r.list {
		parent = r.id.Parent()
	}
	c.Parent, _ = t.Get(parent)
}

// find is the document a request is about, or the error that it is not there.
func (t *transaction) find(r *request) (behaviour.Object, error) {
	doc, ok := t.Get(r.id)
	if !ok && r.kind.Find != nil {
		return t.made(r)
	}
	if ok && r.stale {
		doc, ok = t.stale(r.id)
	}
	if !ok || t.isHidden(r) {
		if err := t.scopeExists(r); err != nil {
			return nil, err
		}
		return nil, notThere(t, r)
	}
	return doc, nil
}

// made is a document that its type makes up.
func (t *transaction) made(r *request) (behaviour.Object, error) {
	if err := t.scopeExists(r); err != nil {
		return nil, err
	}
	c := r.call(t)
	c.Verb = behaviour.Get
	t.addParent(r, c)
	doc, err := r.kind.Find(c)
	if err == nil && doc == nil {
		err = notThere(t, r)
	}
	return doc, err
}

// stale is a document before its last change.
func (t *transaction) stale(id azure.ID) (behaviour.Object, bool) {
	e := t.store.entries[id.Key()]
	if e == nil || e.before == nil {
		return nil, false
	}
	return e.before.fresh(), true
}

func (t *transaction) isHidden(r *request) bool {
	e := t.store.entries[holderOf(r.kind, r.id).Key()]
	return e != nil && e.hidden
}

// scopeExists refuses requests in groups and under parents that are not there.
func (t *transaction) scopeExists(r *request) error {
	if r.kind.AnyScope && r.method == http.MethodGet {
		return nil
	}
	if g := r.id.Group(); g != "" && (r.kind != t.groups || r.list) {
		if t.store.entries[azure.GroupID(r.id.Subscription(), g).Key()] == nil {
			return behaviour.GroupNotFound(g)
		}
	}
	parent := r.id.Parent()
	if r.list {
		parent = r.id
	}
	if r.kind.parent == nil || r.kind.parent.Find != nil {
		return nil
	}
	e := t.store.entries[holderOf(r.kind.parent, parent).Key()]
	if _, ok := t.Get(parent); ok && e != nil && !e.hidden {
		return nil
	}
	return parentNotThere(t, r, parent)
}

func parentNotThere(t *transaction, r *request, parent azure.ID) error {
	verb := "write"
	if r.method == http.MethodGet || r.method == http.MethodHead {
		verb = "read"
	}
	if r.list && r.kind.Style.Missing != nil {
		return behaviour.NotFound(parent)
	}
	if r.list {
		return behaviour.ParentNotFound(verb, parent.Child(r.kind.segment(), "x"))
	}
	if r.kind.Missing != nil {
		return r.kind.Missing(r.call(t))
	}
	if missing := r.kind.Style.Missing; missing != nil && verb == "read" {
		return missing(r.id)
	}
	return behaviour.ParentNotFound(verb, r.id)
}

func notThere(t *transaction, r *request) error {
	switch {
	case r.kind.Missing != nil:
		return r.kind.Missing(r.call(t))
	case r.kind.parent != nil && r.kind.Style.Missing != nil:
		return r.kind.Style.Missing(r.id)
	case r.kind.parent != nil:
		return behaviour.Refusal(404, "NotFound", "Resource %s not found.", r.id)
	}
	return behaviour.NotFound(r.id)
}

// view is what a client sees of a document.
func (t *transaction) view(c *behaviour.Call, k *kind, doc behaviour.Object) any {
	if !k.shows() {
		return doc
	}
	view := behaviour.Clone(doc)
	call := *c
	t.show(&call, k, view)
	return view
}

// viewStored is the view of what a GET found: often the stored text itself.
func (t *transaction) viewStored(c *behaviour.Call, r *request, doc behaviour.Object) any {
	if e := t.store.entries[r.id.Key()]; e != nil && !r.stale && !r.kind.shows() {
		return json.RawMessage(e.text)
	}
	return t.view(c, r.kind, doc)
}

func (t *transaction) show(c *behaviour.Call, k *kind, view behaviour.Object) {
	c.Type = k.Type
	c.Old = view
	for _, child := range k.inline {
		if !child.shows() {
			continue
		}
		for _, element := range behaviour.Objects(view, child.Inline) {
			call := *c
			call.ID = c.ID.Child(child.segment(), behaviour.Text(element, "name"))
			call.Parent = view
			t.show(&call, child, element)
		}
	}
	if k.Show != nil {
		k.Show(c, view)
	}
}

// all serves a list.
func (t *transaction) all(r *request) error {
	if err := t.scopeExists(r); err != nil {
		return err
	}
	c := r.call(t)
	c.Verb = behaviour.List
	t.addParent(r, c)
	keep := func(behaviour.Object) bool { return true }
	if filter := r.query.Get("$filter"); filter != "" && r.kind.Filter != nil {
		test, err := r.kind.Filter(c, filter)
		if err != nil {
			return err
		}
		keep = test
	}
	if r.kind.All != nil {
		items, err := r.kind.All(c)
		if err != nil {
			return err
		}
		items = slices.DeleteFunc(items, func(o behaviour.Object) bool { return !keep(o) })
		return t.pageOf(r, len(items), func(i int) any { return items[i] })
	}
	if r.kind.Inline != "" {
		items := slices.DeleteFunc(behaviour.Objects(c.Parent, r.kind.Inline), func(o behaviour.Object) bool { return !keep(o) })
		return t.pageOf(r, len(items), func(i int) any {
			call := *c
			call.ID = r.id.Child(r.kind.segment(), behaviour.Text(items[i], "name"))
			return t.view(&call, r.kind, items[i])
		})
	}
	return t.listStored(r, c, keep)
}

func (t *transaction) listStored(r *request, c *behaviour.Call, keep func(behaviour.Object) bool) error {
	entries := make([]*entry, 0, 16)
	for _, e := range t.store.list(r.id, r.kind.Name) {
		if r.stale {
			e = e.before
		}
		if e != nil && !e.hidden && (r.query.Get("$filter") == "" || keep(t.store.doc(e))) {
			entries = append(entries, e)
		}
	}
	return t.pageOf(r, len(entries), func(i int) any {
		call := *c
		call.ID = entries[i].id
		if !r.kind.shows() {
			return json.RawMessage(entries[i].text)
		}
		return t.view(&call, r.kind, t.store.doc(entries[i]))
	})
}

// pageSize is how many resources a page of a list has, unless the type says else.
const pageSize = 1000

// pageOf replies with the page of n items that the request's skip token asks for.
func (t *transaction) pageOf(r *request, n int, item func(i int) any) error {
	size := or(r.kind.Page, pageSize)
	if top, err := strconv.Atoi(r.query.Get("$top")); err == nil && top > 0 && top < size {
		size = top
	}
	from := 0
	if token := r.query.Get("$skiptoken"); token != "" {
		at, err := strconv.Atoi(token)
		if err != nil || at < 0 {
			return gateway(400, "InvalidSkipToken", "The skip token '%s' is invalid.", token)
		}
		from = at
	}
	to := min(from+size, n)
	values := make([]any, 0, max(0, to-from))
	for i := from; i < to; i++ {
		values = append(values, item(i))
	}
	body := behaviour.Object{"value": values}
	if to < n || r.kind.EmptyLast && from < n {
		body["nextLink"] = r.next(to)
	}
	r.reply = reply{status: http.StatusOK, body: body}
	return nil
}

// next is the URL of the list's next page.
func (r *request) next(from int) string {
	query := maps.Clone(r.query)
	query.Set("$skiptoken", strconv.Itoa(from))
	return r.host + r.http.URL.EscapedPath() + "?" + query.Encode()
}
