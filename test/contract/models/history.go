package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"os/exec"
	"strings"
)

//go:embed history.txt
var history string

// addHistory reads the earlier modules and notes which members of the table they lack.
func (t *table) addHistory() error {
	for line := range strings.Lines(history) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) == 4 {
			s := t.sight(place{words[0], words[1]})
			s.without[answers] = words[2]
			s.with = earliest(s.with, words[3])
			continue
		}
		if len(words) != 3 {
			return fmt.Errorf("history.txt: %q is neither MODULE VERSION SUM nor STRUCTURE MEMBER VERSION VERSION", line)
		}
		dir, err := download(sdk+words[0]+"@"+words[1], words[2])
		if err != nil {
			return err
		}
		s, err := readSource(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
		t.compare(words[0], words[1], s)
	}
	return nil
}

// download returns the folder of a module that go.mod does not require.
func download(module, sum string) (string, error) {
	text, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(text, &got); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	if got.Sum != sum {
		return "", fmt.Errorf("module %s has the sum %s, history.txt has %s", module, got.Sum, sum)
	}
	return got.Dir, nil
}

// place is a member of a structure of the newest module.
type place struct{ structure, member string }

// answers are a module of their own: what recorded answers of Azure show and do not show.
const answers = "answers"

// sightings are what the earlier modules say of a member. A module has types with several API versions: the earliest counts.
type sightings struct {
	with    string            // the earliest API version with the member
	without map[string]string // the API versions without it, by module
}

// last is the last API version that is known to lack the member, none if no API version or one before is known to.
func (s *sightings) last() (last string) {
	for _, version := range s.without {
		if s.with == "" || version < s.with {
			last = max(last, version)
		}
	}
	return last
}

// compare walks through the bodies of each type in the newest module and in an earlier one. The same API version in both says
// nothing.
func (t *table) compare(module, release string, s *source) {
	t.earlier[short(module)] = true
	for _, o := range s.operations {
		for _, of := range t.names(o) {
			newest, ok := t.writes[o.verb+" "+of]
			if name := short(module); ok && o.version < newest.version && strings.HasPrefix(newest.body, name+".") {
				c := comparison{table: t, earlier: s, release: module + " " + release, version: o.version, module: name,
					seen: map[[2]string]bool{}}
				c.structures(newest.body, o.body)
			}
		}
	}
}

// comparison is a walk through two models of a type at once.
type comparison struct {
	table   *table
	earlier *source
	release string // of the earlier module
	version string // the API version of the earlier model
	module  string
	seen    map[[2]string]bool
}

func (c *comparison) structures(newest, earlier string) {
	now, then := c.table.structs[newest], c.earlier.structs[earlier]
	if now == nil || then == nil || c.seen[[2]string{newest, earlier}] {
		return
	}
	c.seen[[2]string{newest, earlier}] = true
	for _, f := range now.fields {
		if f.jsonName == "" {
			continue
		}
		s := c.table.sight(place{newest, f.jsonName})
		old, ok := then.folded(f.jsonName)
		switch {
		case ok:
			s.with = earliest(s.with, c.version)
			c.structures(c.module+"."+elementOf(f.goType), elementOf(old.goType))
		case !then.open:
			s.without[c.release] = earliest(s.without[c.release], c.version)
		}
	}
}

func earliest(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// elementOf is the name of a Go type, for lists and maps that of their elements.
func elementOf(of ast.Expr) string {
	switch v := of.(type) {
	case *ast.StarExpr:
		return elementOf(v.X)
	case *ast.ArrayType:
		return elementOf(v.Elt)
	case *ast.MapType:
		return elementOf(v.Value)
	case *ast.Ident:
		return v.Name
	}
	return ""
}
