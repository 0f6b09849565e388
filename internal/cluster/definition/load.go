package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is a document of a definition and its kind.
type document struct {
	kind, name string
	tree       *value
}

func (d document) String() string { return strings.TrimSpace(d.kind + " " + d.name) }

// Load reads a definition without charts from its layers, the base first. The error is [Problems].
func Load(layers ...Layer) (Definition, error) { return LoadCharts(nil, layers...) }

// LoadCharts reads a definition from its layers, the base first, and renders its charts. The error is [Problems].
func LoadCharts(render Renderer, layers ...Layer) (Definition, error) {
	var docs []*document
	var problems Problems
	for _, layer := range layers {
		trees, found := parse(layer)
		problems = append(problems, found...)
		for _, tree := range trees {
			doc, found := header(tree)
			problems = append(problems, found...)
			if len(found) > 0 {
				continue
			}
			var conflicts Problems
			docs, conflicts = place(docs, doc)
			problems = append(problems, conflicts...)
		}
	}
	for _, doc := range docs {
		c := checker{document: doc.String()}
		c.check(shapes()[doc.kind], doc.tree, doc.kind)
		problems = append(problems, c.problems...)
	}
	if !slices.ContainsFunc(docs, func(d *document) bool { return d.kind == "Cluster" }) {
		at := Position{"definition", 1}
		if len(layers) > 0 {
			at.File = layers[0].Name
		}
		problems = append(problems, Problem{At: at, Message: "has no document of the kind Cluster: want one"})
	}
	if len(problems) > 0 {
		return Definition{}, problems.sorted()
	}
	d, err := decode(docs)
	if err != nil {
		return Definition{}, err
	}
	v := &validator{d: d, docs: docs}
	if v.validate(); len(v.problems) == 0 {
		v.render(render)
	}
	if len(v.problems) > 0 {
		return Definition{}, v.problems.sorted()
	}
	return v.d, nil
}

// header checks apiVersion and kind, removes them, and names the document.
func header(tree *value) (*document, Problems) {
	var problems Problems
	at := func(name string) Position {
		if field := tree.get(name); field != nil {
			return field.at
		}
		return tree.at
	}
	if v := tree.get("apiVersion"); v == nil || v.text != APIVersion {
		problems = append(problems, Problem{At: at("apiVersion"), Path: "apiVersion", Value: shownOr(v), Message: "want " + APIVersion})
	}
	k := tree.get("kind")
	if k == nil || !slices.Contains(kinds(), k.text) {
		text := ""
		if k != nil {
			text = k.text
		}
		problems = append(problems, Problem{At: at("kind"), Path: "kind", Value: shownOr(k),
			Message: "want " + alternatives(kinds()) + hint(text, kinds())})
		return nil, problems
	}
	doc := &document{kind: k.text, tree: newMap(tree.at)}
	for _, name := range tree.order {
		if name != "apiVersion" && name != "kind" {
			doc.tree.set(name, tree.fields[name])
			doc.tree.keysAt[name] = tree.keysAt[name]
		}
	}
	if n := tree.find("metadata", "name"); n != nil {
		doc.name = n.text
	}
	return doc, problems
}

func shownOr(v *value) string {
	if v == nil {
		return ""
	}
	return v.shown()
}

// place adds a document. A further Cluster is joined with the first one; other documents exist once.
func place(docs []*document, doc *document) ([]*document, Problems) {
	i := slices.IndexFunc(docs, func(d *document) bool {
		return d.kind == doc.kind && (d.name == doc.name || doc.kind == "Cluster")
	})
	if i < 0 {
		return append(docs, doc), nil
	}
	had := docs[i]
	if doc.kind != "Cluster" {
		if had.tree.same(doc.tree) {
			return docs, nil
		}
		return docs, Problems{{At: doc.tree.at, Path: doc.String(),
			Message: fmt.Sprintf("conflicts with %s, which has the same kind and name: want another name", had.tree.at)}}
	}
	j := joiner{document: had.String()}
	j.join(shapes()[doc.kind], had.tree, doc.tree, "")
	return docs, j.problems
}

// decode makes the typed definition of checked documents.
func decode(docs []*document) (Definition, error) {
	d := Definition{Encrypted: true}
	for _, doc := range docs {
		text, err := json.Marshal(doc.tree.plain())
		if err == nil {
			switch doc.kind {
			case "Cluster":
				err = json.Unmarshal(text, &d.Cluster)
			case "NodePool":
				err = decodeTo(text, &d.Pools)
			case "Extension":
				err = decodeTo(text, &d.Extensions)
			default:
				err = decodeTo(text, &d.Patches)
			}
		}
		if err != nil {
			return d, Problems{{At: doc.tree.at, Path: doc.String(), Message: err.Error()}}
		}
	}
	slices.SortFunc(d.Pools, func(a, b NodePool) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	slices.SortFunc(d.Extensions, func(a, b Extension) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return d, nil
}

func decodeTo[T any](text []byte, into *[]T) error {
	var one T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	*into = append(*into, one)
	return nil
}
