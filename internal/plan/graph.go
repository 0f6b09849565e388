package plan

import (
	"fmt"
	"maps"
	"strings"

	"kaz/internal/azure"
)

// Snapshot is what Azure is known to hold, by id. A resource that is absent from
// the snapshot is taken not to exist, so a snapshot must hold all that its graph
// is about. Of what could not be read it tells that, and why: it may be there.
type Snapshot struct {
	docs   map[string]azure.Document
	unread map[string]azure.Kind // by scope and type; never changed
	absent map[string]string     // what Azure said of what is not there; never changed
}

// NewSnapshot holds the given documents under their own ids.
func NewSnapshot(docs ...azure.Document) Snapshot {
	return Snapshot{}.With(docs...)
}

// With is the snapshot with docs added or replaced.
func (s Snapshot) With(docs ...azure.Document) Snapshot {
	next := Snapshot{docs: maps.Clone(s.docs), unread: s.unread, absent: s.absent}
	if next.docs == nil {
		next.docs = make(map[string]azure.Document, len(docs))
	}
	for _, d := range docs {
		next.docs[d.ID().Key()] = d
	}
	return next
}

// Merge is the snapshot with all of other's documents added or replaced.
func (s Snapshot) Merge(other Snapshot) Snapshot {
	return Snapshot{docs: united(s.docs, other.docs), unread: united(s.unread, other.unread), absent: united(s.absent, other.absent)}
}

// united is a with all of b added or replaced.
func united[V any](a, b map[string]V) map[string]V {
	if len(a) == 0 {
		return b
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// Without is the snapshot without the resource id.
func (s Snapshot) Without(id azure.ID) Snapshot {
	next := Snapshot{docs: maps.Clone(s.docs), unread: s.unread, absent: s.absent}
	delete(next.docs, id.Key())
	return next
}

// WithUnread is the snapshot that tells why what is in scope of a full type could not be
// read; of a resource, the scope is its id.
func (s Snapshot) WithUnread(scope azure.ID, fullType string, why azure.Kind) Snapshot {
	return Snapshot{docs: s.docs, unread: united(s.unread, map[string]azure.Kind{unreadKey(scope, fullType): why}), absent: s.absent}
}

// WithAbsent is the snapshot that tells what Azure said of a resource that was asked for and
// is not there.
func (s Snapshot) WithAbsent(id azure.ID, said string) Snapshot {
	return Snapshot{docs: s.docs, unread: s.unread, absent: united(s.absent, map[string]string{id.Key(): said})}
}

// Absent tells what Azure said of a resource that is not there, and false for one that is, or
// that nobody asked for. It may be the resource group that is missing, which only Azure's
// words tell.
func (s Snapshot) Absent(id azure.ID) (said string, absent bool) {
	said, absent = s.absent[id.Key()]
	if _, made := s.Get(id); made {
		return "", false
	}
	return said, absent
}

// Unread tells why what is in scope of a full type could not be read, and false where
// nothing stood in the way; of a resource, the scope is its id.
func (s Snapshot) Unread(scope azure.ID, fullType string) (why azure.Kind, unread bool) {
	why, unread = s.unread[unreadKey(scope, fullType)]
	return why, unread
}

func unreadKey(scope azure.ID, fullType string) string {
	return scope.Key() + " " + strings.ToLower(fullType)
}

// Get returns the document of id.
func (s Snapshot) Get(id azure.ID) (azure.Document, bool) {
	d, ok := s.docs[id.Key()]
	return d, ok
}

// Len counts the documents.
func (s Snapshot) Len() int { return len(s.docs) }

// View decodes the document of id as a Resource[P]. It reports false for one that
// does not exist and an error for one that has another shape.
func View[P any](s Snapshot, id azure.ID) (azure.Resource[P], bool, error) {
	d, ok := s.Get(id)
	if !ok {
		return azure.Resource[P]{}, false, nil
	}
	r, err := azure.Decode[P](d)
	return r, err == nil, err
}

// Node is one resource of a [Graph]: wanted as given, or wanted gone. Nodes are
// made by [Wanted] and [Gone].
type Node struct {
	ID azure.ID
	// Why says in a person's words what the resource is for, or why it goes.
	Why string
	// For names the Kubernetes objects on whose behalf ("default/web").
	For []string
	// Patch sends only the changed sections of an update, by PATCH; Only sends
	// these dotted paths, by PUT. Both are for providers that refuse their own
	// documents back, or take rights for sections that do not change.
	Patch bool
	Only  []string
	// After names resources whose steps must succeed before this one's, beyond
	// what references tell.
	After []azure.ID

	action string                                   // that is run of the resource, "" for none
	body   azure.Document                           // of the action
	want   any                                      // Resource[P], nil when gone
	refer  func(azure.Document) ([]azure.ID, error) // what the document refers to, seen as Resource[P]
}

// Wanted is a resource that shall be as r says. r.ID names it.
func Wanted[P any](r azure.Resource[P], why string, forObjects ...string) Node {
	return Node{ID: r.ID, Why: why, For: forObjects, want: r, refer: referencesAs[P]}
}

// Gone is a resource that shall not exist. P tells how its present document is
// read for references, which decide the order of deletions.
func Gone[P any](id azure.ID, why string, forObjects ...string) Node {
	return Node{ID: id, Why: why, For: forObjects, refer: referencesAs[P]}
}

// Action is an action that is run of a resource. Nothing tells whether it was: who wants
// it wants it as long as the snapshot shows that it was not.
func Action(id azure.ID, action string, body azure.Document, why string, forObjects ...string) Node {
	return Node{ID: id, Why: why, For: forObjects, action: action, body: body}
}

// Want is the wanted view, a Resource[P], or nil.
func (n Node) Want() any { return n.want }

func referencesAs[P any](d azure.Document) ([]azure.ID, error) {
	r, err := azure.Decode[P](d)
	if err != nil {
		return nil, err
	}
	return azure.References(r), nil
}

// Graph is what a planner wants of Azure. Its zero value wants nothing.
type Graph struct {
	nodes []Node
	index map[string]int
	// Pending names facts that only applying this graph will bring, such as the
	// address of a new public IP. Where there are any, take a new snapshot after
	// applying and plan again.
	Pending []string
}

// Add puts a node into the graph. The same resource twice is a mistake of the
// planner and an error.
func (g *Graph) Add(n Node) error {
	if n.ID == "" {
		return fmt.Errorf("node %q has no id", n.Why)
	}
	key := n.ID.Key()
	if i, ok := g.index[key]; ok {
		return fmt.Errorf("%s is in the graph twice: %q and %q", n.ID, g.nodes[i].Why, n.Why)
	}
	if g.index == nil {
		g.index = map[string]int{}
	}
	g.index[key] = len(g.nodes)
	g.nodes = append(g.nodes, n)
	return nil
}

// Nodes are the graph's nodes in the order in which they were added.
func (g Graph) Nodes() []Node { return g.nodes }

// Problem is something in one Kubernetes object that keeps a planner from doing
// what the object asks. It never blocks other objects.
type Problem struct {
	Object  string // "default/web"
	Reason  string // an event reason: "InvalidAnnotation"
	Message string // what is wrong, with the value and what is allowed
	// Warning says that the object is served all the same.
	Warning bool
}

func (p Problem) Error() string { return p.Object + ": " + p.Message }
