package verbs

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/checks"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/store"
)

// finder finds the documents of requests.
type finder struct {
	docs   *store.Transaction
	world  behaviour.World
	checks checks.Checks
}

// call is the behaviour's view of a request, with the document of the parent.
func (s finder) call(r *message.Request, v behaviour.Verb) *behaviour.Call {
	c := r.Call(s.world, v)
	s.addParent(r, c)
	return c
}

// addParent gives a call about a sub-resource its parent's document.
func (s finder) addParent(r *message.Request, c *behaviour.Call) {
	if r.Kind.Parent != nil {
		c.Parent, _ = s.docs.Get(checks.ParentOf(r))
	}
}

// find is the document a request is about, or the error that it is not there.
func (s finder) find(r *message.Request) (behaviour.Object, error) {
	doc, ok := s.docs.Get(r.ID)
	if !ok && r.Kind.Find != nil {
		return s.made(r)
	}
	if ok && r.Stale {
		doc, ok = s.before(r.ID)
	}
	if ok {
		if e := s.docs.Holder(r.Kind, r.ID); e == nil || !e.Hidden {
			return doc, nil
		}
	}
	if err := s.checks.Pass(checks.Placed, r, nil); err != nil {
		return nil, err
	}
	return nil, s.checks.Missing(r)
}

// stored is the document that a request changes. One that its type makes up is stored first.
func (s finder) stored(r *message.Request) (behaviour.Object, bool, error) {
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
func (s finder) made(r *message.Request) (behaviour.Object, error) {
	if err := s.checks.Pass(checks.Placed, r, nil); err != nil {
		return nil, err
	}
	doc, err := r.Kind.Find(s.call(r, behaviour.Get))
	if err == nil && doc == nil {
		err = s.checks.Missing(r)
	}
	return doc, err
}

// before is a document before its last change.
func (s finder) before(id azure.ID) (behaviour.Object, bool) {
	e := s.docs.Entry(id)
	if e == nil || e.Before == nil {
		return nil, false
	}
	return e.Before.Fresh(), true
}

// etagHeader adds the etag of a request's resource to a reply.
func (s finder) etagHeader(r *message.Request, to *message.Reply) {
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
	to.Set("ETag", etag)
}
