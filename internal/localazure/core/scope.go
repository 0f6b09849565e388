package core

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/store"
)

// scopes checks the preconditions of a request: the existence of the group, the parent and the resource, and the etag of
// the request's condition.
type scopes struct {
	docs   *store.Transaction
	world  behaviour.World
	groups *kind.Kind
}

// call is the behaviour's view of a request, with the document of the parent.
func (s scopes) call(r *request, v behaviour.Verb) *behaviour.Call {
	c := r.call(s.world, v)
	s.addParent(r, c)
	return c
}

// addParent gives a call about a sub-resource its parent's document.
func (s scopes) addParent(r *request, c *behaviour.Call) {
	if r.Kind.Parent != nil {
		c.Parent, _ = s.docs.Get(parentOf(r))
	}
}

// parentOf is the parent of a request's resource; for a list, the parent of
// the listed resources.
func parentOf(r *request) azure.ID {
	if r.List {
		return r.ID
	}
	return r.ID.Parent()
}

// check refuses requests in groups and under parents that are not there.
func (s scopes) check(r *request) error {
	if r.Kind.AnyScope && r.method == http.MethodGet {
		return nil
	}
	if g := r.ID.Group(); g != "" && (r.Kind != s.groups || r.List) {
		if s.docs.Entry(azure.GroupID(r.ID.Subscription(), g)) == nil {
			return behaviour.GroupNotFound(g)
		}
	}
	if r.Kind.Parent == nil || r.Kind.Parent.Find != nil {
		return nil
	}
	parent := parentOf(r)
	e := s.docs.Holder(r.Kind.Parent, parent)
	if _, ok := s.docs.Get(parent); ok && e != nil && !e.Hidden {
		return nil
	}
	return s.parentMissing(r, parent)
}

func (s scopes) parentMissing(r *request, parent azure.ID) error {
	verb := "write"
	if r.reads() {
		verb = "read"
	}
	if r.List && r.Kind.Style.Missing != nil {
		return behaviour.NotFound(parent)
	}
	if r.List {
		return behaviour.ParentNotFound(verb, parent.Child(r.Kind.Segment(), "x"))
	}
	if r.Kind.Missing != nil {
		return r.Kind.Missing(r.call(s.world, ""))
	}
	if missing := r.Kind.Style.Missing; missing != nil && verb == "read" {
		return missing(r.ID)
	}
	return behaviour.ParentNotFound(verb, r.ID)
}

// missing is the refusal of a request to a resource that is not there.
func (s scopes) missing(r *request) error {
	switch {
	case r.Kind.Missing != nil:
		return r.Kind.Missing(r.call(s.world, ""))
	case r.Kind.Parent != nil && r.Kind.Style.Missing != nil:
		return r.Kind.Style.Missing(r.ID)
	case r.Kind.Parent != nil:
		return behaviour.Refusal(404, "NotFound", "Resource %s not found.", r.ID)
	}
	return behaviour.NotFound(r.ID)
}

// find is the document a request is about, or the error that it is not there.
func (s scopes) find(r *request) (behaviour.Object, error) {
	doc, ok := s.docs.Get(r.ID)
	if !ok && r.Kind.Find != nil {
		return s.made(r)
	}
	if ok && r.stale {
		doc, ok = s.before(r.ID)
	}
	if ok {
		if e := s.docs.Holder(r.Kind, r.ID); e == nil || !e.Hidden {
			return doc, nil
		}
	}
	if err := s.check(r); err != nil {
		return nil, err
	}
	return nil, s.missing(r)
}

// stored is the document that a request changes. One that its type makes up is stored first.
func (s scopes) stored(r *request) (behaviour.Object, bool, error) {
	doc, ok := s.docs.Get(r.ID)
	if ok || !r.Kind.Adopt {
		return doc, ok, nil
	}
	doc, err := r.Kind.Find(s.call(r, behaviour.Get))
	if err != nil || doc == nil {
		return nil, false, err
	}
	s.docs.Put(r.ID, doc)
	doc, ok = s.docs.Get(r.ID)
	return doc, ok, nil
}

// made is a document that its type makes up.
func (s scopes) made(r *request) (behaviour.Object, error) {
	if err := s.check(r); err != nil {
		return nil, err
	}
	doc, err := r.Kind.Find(s.call(r, behaviour.Get))
	if err == nil && doc == nil {
		err = s.missing(r)
	}
	return doc, err
}

// before is a document before its last change.
func (s scopes) before(id azure.ID) (behaviour.Object, bool) {
	e := s.docs.Entry(id)
	if e == nil || e.Before == nil {
		return nil, false
	}
	return e.Before.Fresh(), true
}

// precondition checks If-Match and If-None-Match. Types that do not know these headers ignore them.
func (s scopes) precondition(r *request) *behaviour.Error {
	match, none := r.http.Header.Get("If-Match"), r.http.Header.Get("If-None-Match")
	style := r.Kind.Style
	if match == "" && none == "" || !style.HasPreconditions() {
		return nil
	}
	_, exists := s.docs.Get(r.ID)
	have := ""
	if e := s.docs.Holder(r.Kind, r.ID); e != nil && exists {
		have = e.Etag
	}
	if none == "*" && exists {
		if style.Exists != nil {
			return style.Exists(r.ID)
		}
		return behaviour.Refusal(412, "PreconditionFailed", "The resource %s exists already.", r.ID)
	}
	if match == "" || exists && (match == "*" || sameEtag(match, have)) {
		return nil
	}
	if style.Mismatch != nil {
		return style.Mismatch(r.ID, match, have)
	}
	return behaviour.Refusal(412, "PreconditionFailed", "The condition '%s' in the If-Match header is not met.", match)
}

func sameEtag(a, b string) bool {
	bare := func(s string) string { return strings.Trim(strings.TrimPrefix(s, "W/"), `"`) }
	return bare(a) == bare(b)
}

// etagHeader adds the etag of a request's resource to a reply.
func (s scopes) etagHeader(r *request, to *reply) {
	e := s.docs.Holder(r.Kind, r.ID)
	if e == nil || e.Etag == "" {
		return
	}
	etag, bare := e.Etag, strings.Trim(e.Etag, `"`)
	switch r.Kind.Style.EtagHeaderForm {
	case behaviour.QuotedGUID:
		etag = `"` + bare + `"`
	case behaviour.BareGUID:
		etag = bare
	}
	to.set("ETag", etag)
}
