package picture_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/picture"
)

var update = flag.Bool("update", false, "write the golden files anew")

func example() *picture.Picture {
	p := picture.New("Service default/web: <pending> & more", "Kubernetes", "Empty", "Address", "Load balancer")
	p.Add(0, picture.Box{Key: "web", Kind: "Service", Name: "default/web", State: picture.Wait, Lines: []string{"changes are pending"}, To: []string{"IP"}})
	p.Add(2, picture.Box{Key: "ip", Kind: "public IP", Name: "kaz-a5bf994bb99ac4eb3940ee42dd656c60", State: picture.Create,
		Lines: []string{"a new IPv4 address of the prefix </text><script>alert(1)</script>"}, Resource: "/subscriptions/s/ip?a=1&b=2"})
	p.Add(3, picture.Box{Key: "frontend", Kind: "frontend", Name: "kaz/a5", State: picture.Good, To: []string{"ip", "nowhere"}})
	p.Add(3, picture.Box{Key: "rule", Kind: "rule", Name: "kaz/a5-TCP-80", State: picture.Bad, To: []string{"frontend"}})
	p.Add(3, picture.Box{Key: "IP", To: []string{"rule"}}) // there already
	p.Note("Problems", picture.Bad, []string{"a control character \x1b and a broken one \xff"})
	p.Note("Waits", picture.Wait, nil)
	p.Text = "the same in words"
	return p
}

// parsed returns the texts of an SVG by the classes of their elements, and the number of elements by name.
func parsed(t *testing.T, svg string) (texts map[string][]string, elements map[string]int) {
	t.Helper()
	texts, elements = map[string][]string{}, map[string]int{}
	in := xml.NewDecoder(strings.NewReader(svg))
	var class string
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return texts, elements
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			elements[e.Name.Local]++
			class = ""
			for _, a := range e.Attr {
				if a.Name.Local == "class" && e.Name.Local == "text" {
					class = a.Value
				}
			}
		case xml.CharData:
			if class != "" {
				texts[class] = append(texts[class], string(e))
				class = ""
			}
		}
	}
}

func TestSVG(t *testing.T) {
	for name, got := range map[string]string{
		"file.svg": example().SVG(),
		"part.svg": example().Inline(func(id string) string { return "/resource?id=" + id }),
	} {
		path := "testdata/" + name
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: run with -update if this is as it should be (-want +got):\n%s", name, diff)
		}
		texts, elements := parsed(t, got)
		if elements["script"] > 0 {
			t.Errorf("%s has a script", name)
		}
		if n := elements["path"]; n != 4 {
			t.Errorf("%s has %d lines, want 4", name, n)
		}
		if diff := cmp.Diff([]string{"Kubernetes", "Address", "Load balancer"}, texts["column"]); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", name, diff)
		}
	}
	if part := example().Inline(func(id string) string { return id }); strings.Contains(part, "<style>") {
		t.Error("the part of a page has a style of its own, which the page's policy forbids")
	}
}

// TestLimits draws more than a viewer can see: it is counted.
func TestLimits(t *testing.T) {
	p := picture.New(strings.Repeat("long ", 1000), "Many")
	for i := range 5000 {
		p.Add(0, picture.Box{Key: fmt.Sprint(i), Kind: "k", Name: fmt.Sprint("n", i), Lines: []string{strings.Repeat("x", 1<<16)}})
	}
	p.Note("Notes", "", make([]string, 5000))
	svg := p.SVG()
	texts, _ := parsed(t, svg)
	if names := texts["name"]; len(names) != 201 || names[200] != "4800 more" {
		t.Errorf("%d names, the last one is %q; want 201 and 4800 more", len(names), names[len(names)-1])
	}
	if len(svg) > 2<<20 {
		t.Errorf("%d bytes, want less than 2 MiB", len(svg))
	}
	for class, all := range texts {
		for _, text := range all {
			if n := len([]rune(text)); n > 90 {
				t.Errorf("%s has %d characters in a line: %s", class, n, text)
			}
		}
	}
}

func TestReword(t *testing.T) {
	p := example()
	upper := p.Reword(strings.ToUpper)
	if got := upper.Columns[0].Boxes[0]; got.Name != "DEFAULT/WEB" || got.Lines[0] != "CHANGES ARE PENDING" || got.Key != "web" {
		t.Errorf("%+v", got)
	}
	if p.Columns[0].Boxes[0].Name != "default/web" || p.Notes[0].Lines[0] != example().Notes[0].Lines[0] {
		t.Error("the picture itself has changed")
	}
}
