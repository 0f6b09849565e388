package rewriteobject

import (
	"fmt"

	"kaz/internal/azure/network"
)

// Reader has the objects of a cluster as the API server has them. An implementation may be the cache of an informer.
type Reader interface {
	// Rewrite returns the content of an object, and false if there is none.
	Rewrite(namespace, name string) (content map[string]any, ok bool)
}

// Lookup finds rewrite rule sets of objects for one decision. It reads each object once.
type Lookup struct {
	from Reader
	made map[key]result
}

type key struct{ namespace, name string }

type result struct {
	set network.GatewayRewriteSet
	err error
}

// NewLookup returns a Lookup that reads from a Reader.
func NewLookup(from Reader) *Lookup { return &Lookup{from: from, made: map[key]result{}} }

// Find returns the rewrite rule set of an object. The error says why there is none. The method fits the field Rewrites of the planner's
// input.
func (l *Lookup) Find(namespace, name string) (network.GatewayRewriteSet, error) {
	at := key{namespace, name}
	if known, ok := l.made[at]; ok {
		return known.set, known.err
	}
	var r result
	content, ok := l.from.Rewrite(namespace, name)
	if !ok {
		r.err = fmt.Errorf("%s %s/%s does not exist", Kind, namespace, name)
	} else {
		var o Object
		if o, r.err = Decode(content); r.err == nil {
			r.set, r.err = o.Set()
		}
		if r.err != nil {
			r.err = fmt.Errorf("%s %s/%s: %w", Kind, namespace, name, r.err)
		}
	}
	l.made[at] = r
	return r.set, r.err
}
