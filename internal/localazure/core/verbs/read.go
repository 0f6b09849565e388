package verbs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/store"
)

// reader answers GET and HEAD: of resources, views and lists.
type reader struct{ finder }

func (t reader) read(r *message.Request, latency latency.Model) (message.Reply, error) {
	if r.List {
		r.Wait = latency.Reply(r.Kind, behaviour.List)
		return t.list(r)
	}
	r.Wait = latency.Reply(r.Kind, behaviour.Get)
	return t.get(r)
}

func (t reader) get(r *message.Request) (message.Reply, error) {
	doc, err := t.find(r)
	if err != nil {
		return message.Reply{}, err
	}
	c := t.call(r, behaviour.Get)
	c.Old = doc
	if r.Kind.Version != nil {
		if doc, err = r.Kind.Version(c); err != nil {
			return message.Reply{}, err
		}
	}
	if r.Action != "" {
		body, err := r.Kind.View(r.Action)(c)
		if err == nil && r.Element != "" {
			body, err = element(body, r.ID.Child(r.Action, r.Element))
		}
		return message.Reply{Status: http.StatusOK, Body: body}, err
	}
	answer := message.Reply{Status: http.StatusNoContent}
	if r.Method != http.MethodHead {
		answer = message.Reply{Status: http.StatusOK, Body: t.view(r, c, doc)}
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
func (t reader) view(r *message.Request, c *behaviour.Call, doc behaviour.Object) any {
	if e := t.docs.Entry(r.ID); e != nil && !r.Stale && !r.Kind.Shows() {
		return json.RawMessage(e.Text)
	}
	return document.View(*c, r.Kind, doc)
}

func (t reader) list(r *message.Request) (message.Reply, error) {
	if err := t.checks.Pass(checks.Placed, r, nil); err != nil {
		return message.Reply{}, err
	}
	c := t.call(r, behaviour.List)
	keep := func(behaviour.Object) bool { return true }
	if filter := r.Query.Get("$filter"); filter != "" && r.Kind.Filter != nil {
		test, err := r.Kind.Filter(c, filter)
		if err != nil {
			return message.Reply{}, err
		}
		keep = test
	}
	drop := func(o behaviour.Object) bool { return !keep(o) }
	switch {
	case r.Kind.All != nil:
		docs, err := r.Kind.All(c)
		if err != nil {
			return message.Reply{}, err
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

func (t reader) listStored(r *message.Request, c *behaviour.Call, keep func(behaviour.Object) bool) (message.Reply, error) {
	entries := make([]*store.Entry, 0, 16)
	for _, e := range t.docs.Entries(r.ID, r.Kind.Name) {
		if r.Stale {
			e = e.Before
		}
		if e == nil || e.Hidden || r.OnlyAllowed && !t.world.Allowed(r.Caller.Principal, r.Right(), e.ID) {
			continue
		}
		if r.Query.Get("$filter") == "" || keep(t.docs.Doc(e)) {
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
func page(r *message.Request, all items) (message.Reply, error) {
	size, err := top(r)
	if err != nil {
		return message.Reply{}, err
	}
	from, err := all.after(r.Query.Get("$skiptoken"))
	if err != nil {
		return message.Reply{}, err
	}
	to := min(from+size, all.n)
	values := make([]any, 0, max(0, to-from))
	for i := from; i < to; i++ {
		values = append(values, all.view(i))
	}
	body := behaviour.Object{"value": values}
	if to < all.n || r.Kind.EmptyLast && from < all.n {
		body["nextLink"] = next(r, pageToken{to, all.key(to - 1)}.String())
	}
	return message.Reply{Status: http.StatusOK, Body: body}, nil
}

// top is the size of a page: $top, or $maxpagesize of Microsoft.Storage, but no more than the type has on a page.
func top(r *message.Request) (int, error) {
	size := cmp.Or(r.Kind.Page, pageSize)
	text := cmp.Or(r.Query.Get("$top"), r.Query.Get("$maxpagesize"))
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

// next is the URL of the list's next page.
func next(r *message.Request, token string) string {
	query := maps.Clone(r.Query)
	query.Set("$skiptoken", token)
	if r.Kind.Style.RawNextLink {
		return withPort(r.Host) + r.URL.EscapedPath() + "?" + rawQuery(query)
	}
	return r.Host + r.URL.EscapedPath() + "?" + query.Encode()
}

// withPort adds the default port of the scheme to a host that names no port.
func withPort(host string) string {
	u, err := url.Parse(host)
	switch {
	case err != nil || u.Port() != "":
		return host
	case u.Scheme == "https":
		return host + ":443"
	}
	return host + ":80"
}

// rawQuery writes a query without encoding it, but for the characters that have a meaning in a
// query.
func rawQuery(query url.Values) string {
	meaning := strings.NewReplacer("%", "%25", "&", "%26", "#", "%23", "+", "%2B", ";", "%3B")
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[key] {
			pairs = append(pairs, key+"="+meaning.Replace(value))
		}
	}
	return strings.Join(pairs, "&")
}
