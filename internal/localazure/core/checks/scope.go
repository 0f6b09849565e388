package checks

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
)

// ParentOf is the parent of a request's resource; for a list, the parent of
// the listed resources.
func ParentOf(r *message.Request) azure.ID {
	if r.List {
		return r.ID
	}
	return r.ID.Parent()
}

// group refuses requests in a group that is not there.
func (t Checks) group(r *message.Request, _ *behaviour.Call) error {
	if g := r.ID.Group(); g != "" && t.docs.Entry(azure.GroupID(r.ID.Subscription(), g)) == nil {
		return behaviour.GroupNotFound(g)
	}
	return nil
}

// scope refuses requests in groups and under parents that are not there.
func (t Checks) scope(r *message.Request, _ *behaviour.Call) error {
	if r.Kind.AnyScope && r.Method == http.MethodGet {
		return nil
	}
	if r.Kind != t.groups || r.List {
		if err := t.group(r, nil); err != nil {
			return err
		}
	}
	if r.Kind.Parent == nil || r.Kind.Parent.Find != nil {
		return nil
	}
	parent := ParentOf(r)
	e := t.docs.Holder(r.Kind.Parent, parent)
	if _, ok := t.docs.Get(parent); ok && e != nil && !e.Hidden {
		return nil
	}
	return t.parentMissing(r, parent)
}

func (t Checks) parentMissing(r *message.Request, parent azure.ID) error {
	verb := "write"
	if r.Reads() {
		verb = "read"
	}
	if r.List && r.Kind.Style.Missing != nil {
		return behaviour.NotFound(parent)
	}
	if r.List {
		return behaviour.ParentNotFound(verb, parent.Child(r.Kind.Segment(), "x"))
	}
	if r.Kind.Missing != nil && r.Reads() {
		return r.Kind.Missing(r.Call(t.world, ""))
	}
	if missing := r.Kind.Style.Missing; missing != nil && r.Reads() {
		return missing(r.ID)
	}
	return behaviour.ParentNotFound(verb, r.ID)
}

// Missing is the refusal of a request to a resource that is not there.
func (t Checks) Missing(r *message.Request) error {
	switch {
	case r.Kind.Missing != nil:
		return r.Kind.Missing(r.Call(t.world, ""))
	case r.Kind.Parent != nil && r.Kind.Style.Missing != nil:
		return r.Kind.Style.Missing(r.ID)
	case r.Kind.Parent != nil:
		return behaviour.Refusal(404, "NotFound", "Resource %s not found.", r.ID)
	}
	return behaviour.NotFound(r.ID)
}

// precondition checks If-Match and If-None-Match. Types that do not know these headers ignore them.
func (t Checks) precondition(r *message.Request, _ *behaviour.Call) error {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	style := r.Kind.Style
	if match == "" && none == "" || !style.HasPreconditions() {
		return nil
	}
	_, exists := t.docs.Get(r.ID)
	have := ""
	if e := t.docs.Holder(r.Kind, r.ID); e != nil && exists {
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
