package core

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/store"
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
	if r.Kind.Version != nil {
		if doc, err = r.Kind.Version(c); err != nil {
			return reply{}, err
		}
	}
	if r.Action != "" {
		body, err := r.Kind.View(r.Action)(c)
		if err == nil && r.Element != "" {
			body, err = element(body, r.ID.Child(r.Action, r.Element))
		}
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

// element returns the element of a view's list that has the name of the id.
func element(body any, id azure.ID) (any, error) {
	list, _ := body.(behaviour.Object)
	for _, item := range behaviour.Objects(list, "value") {
		if strings.EqualFold(behaviour.Text(item, "name"), id.Name()) {
			return item, nil
		}
	}
	return nil, behaviour.Refusal(http.StatusNotFound, "NotFound", "Resource %s not found.", id)
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
		docs, err := r.Kind.All(c)
		if err != nil {
			return reply{}, err
		}
		docs = slices.DeleteFunc(docs, drop)
		return page(r, items{n: len(docs), key: names(docs), view: func(i int) any { return docs[i] }})
	case r.Kind.Inline != "":
		elements := slices.DeleteFunc(behaviour.Objects(c.Parent, r.Kind.Inline), drop)
		return page(r, items{n: len(elements), key: names(elements), view: func(i int) any {
			call := *c
			call.ID = r.Kind.Child(r.ID, elements[i])
			return document.View(call, r.Kind, elements[i])
		}})
	}
	return t.listStored(r, c, keep)
}

func (t reader) listStored(r *request, c *behaviour.Call, keep func(behaviour.Object) bool) (reply, error) {
	entries := make([]*store.Entry, 0, 16)
	for _, e := range t.docs.Entries(r.ID, r.Kind.Name) {
		if r.stale {
			e = e.Before
		}
		if e == nil || e.Hidden || r.onlyAllowed && !t.world.Allowed(r.caller.Principal, access.ActionOf(r.method, r.Kind, ""), e.ID) {
			continue
		}
		if r.query.Get("$filter") == "" || keep(t.docs.Doc(e)) {
			entries = append(entries, e)
		}
	}
	return page(r, items{n: len(entries), key: func(i int) string { return sequence(entries[i].Seq) }, view: func(i int) any {
		if !r.Kind.Shows() {
			return json.RawMessage(entries[i].Text)
		}
		call := *c
		call.ID = entries[i].ID
		return document.View(call, r.Kind, t.docs.Doc(entries[i]))
	}})
}

// sequence is the key of a stored resource: lists have them in the order of their creation.
func sequence(n uint64) string { return fmt.Sprintf("%020d", n) }

// names are the keys of resources in a document, or of resources that a type makes up.
func names(docs []behaviour.Object) func(i int) string {
	return func(i int) string { return strings.ToLower(behaviour.Text(docs[i], "id")) }
}

// pageSize is how many resources a page of a list has, unless the type says else.
const pageSize = 1000

// items are the resources of a list. The next page begins after the key of the last resource. No resource is skipped if
// that resource or another is deleted between two pages.
type items struct {
	n    int
	key  func(i int) string
	view func(i int) any
}

// page is the page of the items that the request's skip token asks for.
func page(r *request, all items) (reply, error) {
	size, err := top(r)
	if err != nil {
		return reply{}, err
	}
	from, err := all.after(r.query.Get("$skiptoken"))
	if err != nil {
		return reply{}, err
	}
	to := min(from+size, all.n)
	values := make([]any, 0, max(0, to-from))
	for i := from; i < to; i++ {
		values = append(values, all.view(i))
	}
	body := behaviour.Object{"value": values}
	if to < all.n || r.Kind.EmptyLast && from < all.n {
		body["nextLink"] = r.next(pageToken{to, all.key(to - 1)}.String())
	}
	return reply{status: http.StatusOK, body: body}, nil
}

// top is the size of a page: $top, or $maxpagesize of Microsoft.Storage, but no more than the type has on a page.
func top(r *request) (int, error) {
	size := cmp.Or(r.Kind.Page, pageSize)
	text := cmp.Or(r.query.Get("$top"), r.query.Get("$maxpagesize"))
	if text == "" {
		return size, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, behaviour.Gateway(http.StatusBadRequest, "InvalidTopInQueryString",
			"Invalid $top '%s' specified in the query string: it must be a whole number greater than 0.", text)
	}
	return min(n, size), nil
}

// pageToken says where a list goes on: after the resource with the key, which was before the position.
type pageToken struct {
	position int
	key      string
}

func (t pageToken) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(t.position) + " " + t.key))
}

// after returns the position of the first resource after the earlier pages.
func (all items) after(token string) (int, error) {
	if token == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	number, key, ok := strings.Cut(string(text), " ")
	position, numberErr := strconv.Atoi(number)
	if err != nil || numberErr != nil || !ok || position < 1 {
		return 0, behaviour.Gateway(http.StatusBadRequest, "InvalidSkipToken", "The skip token '%s' is invalid.", token)
	}
	for i := min(position, all.n); i > 0; i-- { // before the position only deletions can have changed the list
		if all.key(i-1) == key {
			return i, nil
		}
	}
	for i := 1; i < all.n; i++ {
		if all.key(i-1) > all.key(i) {
			return 0, nil // the resource is gone, and the order does not tell where it was: the list begins again
		}
	}
	return sort.Search(all.n, func(i int) bool { return all.key(i) > key }), nil
}
