package plan

import (
	"fmt"

	"kaz/internal/azure"
)

// View decodes the document of id as a Resource[P]. It reports false if the document does not exist, and an error if
// the document has another shape.
//
// A snapshot and the snapshots derived from it decode a document once. What a view points to is shared and must not
// be changed.
func View[P any](s Snapshot, id azure.ID) (azure.Resource[P], bool, error) {
	d, ok := s.Get(id)
	if !ok {
		return azure.Resource[P]{}, false, nil
	}
	r, err := decoded[P](s, d)
	return r, err == nil, err
}

// Views decodes the documents of a type in a scope, in the order of their ids; see [View].
func Views[P any](s Snapshot, scope azure.ID, fullType string) ([]azure.Resource[P], error) {
	var all []azure.Resource[P]
	for _, d := range s.List(scope, fullType) {
		r, err := decoded[P](s, d)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// viewKey tells the views of documents apart. A document's text is never changed, so its place says which it is.
type viewKey[P any] struct{ text *byte }

func decoded[P any](s Snapshot, d azure.Document) (azure.Resource[P], error) {
	if len(d) == 0 || s.views == nil {
		return azure.Decode[P](d)
	}
	key := viewKey[P]{&d[0]}
	if known, ok := s.views.Load(key); ok {
		return *known.(*azure.Resource[P]), nil
	}
	r, err := azure.Decode[P](d)
	if err == nil {
		s.views.Store(key, &r)
	}
	return r, err
}

// Node is one resource of a [Graph]: wanted as given, or wanted gone. Nodes are
// made by [Wanted] and [Gone].
type Node struct {
	ID azure.ID
	// Why says in words for people what the resource is for, or why it goes.
	Why string
	// For names the Kubernetes objects that need it ("default/web").
	For []string
	// Patch sends only the changed sections of an update, by PATCH. Only sends these dotted paths, by PUT. Both are
	// for providers that refuse their own documents, or that demand rights for sections that do not change.
	Patch bool
	Only  []string
	// PatchTags sends an update of tags alone by PATCH: the rest of a large document is not written.
	PatchTags bool
	// Immutable are dotted paths that Azure does not allow to change. If one differs, the resource is deleted and
	// made anew from the wanted view. Resources that refer to it drop the reference before and take it back after.
	Immutable []string
	// After names resources that must be written before this one, beyond
	// what references tell.
	After []azure.ID

	shared bool                              // the document has elements of others; see Owning
	owners []azure.Owner                     // of the elements that are ours
	action string                            // that is run of the resource, "" for none
	body   azure.Document                    // of the action
	want   any                               // Resource[P], nil when gone
	view   func(azure.Document) (any, error) // the document as Resource[P]
}

// Wanted is a wanted resource, with the content r. r.ID names it.
func Wanted[P any](r azure.Resource[P], why string, forObjects ...string) Node {
	return Node{ID: r.ID, Why: why, For: forObjects, want: r, view: viewAs[P]}
}

// Gone is an unwanted resource. P says how its present document is read for references, which decide the order of
// deletions.
func Gone[P any](id azure.ID, why string, forObjects ...string) Node {
	return Node{ID: id, Why: why, For: forObjects, view: viewAs[P]}
}

// Action is a node that runs an action of a resource. Nothing in Azure tells whether the action was run. So a planner
// wants it for as long as the snapshot shows that it was not.
func Action(id azure.ID, action string, body azure.Document, why string, forObjects ...string) Node {
	return Node{ID: id, Why: why, For: forObjects, action: action, body: body}
}

// Owning is the node for a document that is shared with others. Of each list, the view states only the elements that
// are ours, as the owner of the list's element type tells. All other elements stay as they are; see [azure.Merge]. A
// node without Owning states the whole membership of each list that its view has.
func (n Node) Owning(owners ...azure.Owner) Node {
	n.shared, n.owners = true, owners
	return n
}

// Want is the wanted view, a Resource[P], or nil.
func (n Node) Want() any { return n.want }

func viewAs[P any](d azure.Document) (any, error) {
	r, err := azure.Decode[P](d)
	return r, err
}

// Graph is what a planner wants of Azure. Its zero value wants nothing.
type Graph struct {
	nodes []Node
	index map[string]int
	// Pending names facts that only applying this graph brings, such as the address of a new public IP. If there are
	// any, take a new snapshot after applying and plan again.
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

// Only returns a graph of the nodes for which the predicate returns true. It has no pending facts.
func (g Graph) Only(which func(Node) bool) Graph {
	var some Graph
	for _, n := range g.nodes {
		if which(n) {
			_ = some.Add(n) // it was added to a graph before
		}
	}
	return some
}

// Problem is something in one Kubernetes object that keeps a planner from doing what the object asks. It never blocks
// other objects.
type Problem struct {
	Object  string `json:"object"`  // "default/web"
	Reason  string `json:"reason"`  // an event reason: "InvalidAnnotation"
	Message string `json:"message"` // what is wrong, with the value and what is allowed
	// Warning says that the object is served nevertheless.
	Warning bool `json:"warning,omitempty"`
}

func (p Problem) Error() string { return p.Object + ": " + p.Message }
