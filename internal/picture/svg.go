package picture

import (
	"cmp"
	_ "embed" // the style
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Style is the style sheet of a page with pictures.
//
//go:embed style.css
var Style string

// The measures of a picture, in the units of its view box. A character of the font is 6.62 wide.
const (
	margin    = 20
	boxWidth  = 250
	gap       = 46
	inset     = 12 // of the texts of a box
	lineStep  = 15
	columnTop = 66
	boxChars  = 34 // that fit in a line of a box
	character = 6.62
	leastWide = 2*boxWidth + gap
)

// The limits of a picture. What is beyond is counted.
const (
	mostBoxes     = 200 // of a column
	mostBoxLines  = 12
	mostNoteLines = 200
	mostText      = 1000 // characters of a text
)

// SVG returns the picture as a file of its own.
func (p Picture) SVG() string {
	d := drawing{picture: p}
	return d.draw("<style>\n" + Style + "</style>\n")
}

// Inline returns the picture as a part of a page that has [Style]. link returns the address of a resource.
func (p Picture) Inline(link func(resource string) string) string {
	d := drawing{picture: p, link: link}
	return d.draw("")
}

// drawing is a picture that is being drawn.
type drawing struct {
	picture       Picture
	link          func(string) string
	width, height int
	placed        []placed
	byKey         map[string]*placed
	out           strings.Builder
}

// placed is a box with its place.
type placed struct {
	Box
	lines        []string
	x, y, height int
	column       int
}

func (d *drawing) draw(style string) string {
	d.place()
	noteChars := int(float64(d.width-2*margin)/character) - 4
	notes := d.height
	for _, n := range d.picture.Notes {
		d.height += lineStep * (2 + len(noteLines(n, noteChars)))
	}
	d.height += margin
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d">`,
		d.width, d.height)
	d.printf("\n<title>%s</title>\n", escape(d.picture.Title))
	if d.picture.Text != "" {
		d.printf("<desc>%s</desc>\n", escape(d.picture.Text))
	}
	d.printf(`%s<rect class="back" width="%d" height="%d"/>`+"\n", style, d.width, d.height)
	d.text("title", margin, 28, cut(d.picture.Title, int(float64(d.width-2*margin)/character*11/14)))
	d.headings()
	for i := range d.placed {
		d.lines(&d.placed[i])
	}
	for i := range d.placed {
		d.box(&d.placed[i])
	}
	d.notes(notes, noteChars)
	d.printf("</svg>\n")
	return d.out.String()
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

func (d *drawing) text(class string, x, y int, text string) {
	d.printf(`<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, escape(text))
}

// place gives each box its place, and the picture its size without notes.
func (d *drawing) place() {
	column := 0
	d.height = columnTop
	for _, c := range d.picture.Columns {
		if len(c.Boxes) == 0 {
			continue
		}
		boxes := c.Boxes
		if more := len(boxes) - mostBoxes; more > 0 {
			boxes = append(boxes[:mostBoxes:mostBoxes], Box{Kind: "more", Name: fmt.Sprintf("%d more", more)})
		}
		y := columnTop
		for _, b := range boxes {
			p := placed{Box: b, lines: boxLines(b), x: margin + column*(boxWidth+gap), y: y, column: column}
			p.height = lineStep*(1+len(p.lines)) + inset
			y += p.height + inset
			d.placed = append(d.placed, p)
		}
		d.height = max(d.height, y+lineStep)
		column++
	}
	d.width = max(leastWide, column*(boxWidth+gap)-gap) + 2*margin
	d.byKey = make(map[string]*placed, len(d.placed))
	for i := range d.placed {
		d.byKey[strings.ToLower(d.placed[i].Key)] = &d.placed[i]
	}
}

// headings are the titles of the columns.
func (d *drawing) headings() {
	column := 0
	for _, c := range d.picture.Columns {
		if len(c.Boxes) > 0 {
			d.text("column", margin+column*(boxWidth+gap), columnTop-inset, cut(c.Title, boxChars))
			column++
		}
	}
}

// lines draws the lines of a box. They lead from left to right.
func (d *drawing) lines(p *placed) {
	seen := map[*placed]bool{p: true}
	for _, key := range p.To {
		to := d.byKey[strings.ToLower(key)]
		if to == nil || seen[to] {
			continue
		}
		seen[to] = true
		from := p
		if to.column < from.column {
			from, to = to, from
		}
		x, y, u, v := from.x+boxWidth, from.y+from.height/2, to.x, to.y+to.height/2
		if from.column == to.column {
			u += boxWidth
			d.printf(`<path class="line" d="M%d %d C%d %d %d %d %d %d"/>`+"\n", x, y, x+gap/2, y, u+gap/2, v, u, v)
			continue
		}
		bend := (u - x) / 2
		d.printf(`<path class="line" d="M%d %d C%d %d %d %d %d %d"/>`+"\n", x, y, x+bend, y, u-bend, v, u, v)
	}
}

// box draws a box.
func (d *drawing) box(p *placed) {
	link := ""
	if d.link != nil && p.Resource != "" {
		link = d.link(p.Resource)
		d.printf(`<a href="%s">`, escape(link))
	}
	d.printf(`<g class="box %s"><title>%s</title>`+"\n", escape(string(p.State)), escape(limit(p.whole())))
	d.printf(`<rect class="card" x="%d" y="%d" width="%d" height="%d" rx="5"/>`+"\n", p.x, p.y, boxWidth, p.height)
	d.printf(`<rect class="bar" x="%d" y="%d" width="4" height="%d" rx="2"/>`+"\n", p.x, p.y, p.height)
	d.text("kind", p.x+inset, p.y+lineStep, cut(strings.TrimSpace(marks[p.State]+" "+p.Kind), boxChars))
	class := "name"
	names := len(wrap(p.Name, boxChars))
	for i, line := range p.lines {
		if i == names {
			class = "fact"
		}
		d.text(class, p.x+inset, p.y+lineStep*(i+2), line)
	}
	d.printf("</g>")
	if link != "" {
		d.printf("</a>")
	}
	d.printf("\n")
}

// whole is all that a box says.
func (p *placed) whole() string {
	return strings.Join(append([]string{p.Kind + " " + p.Name, cmp.Or(p.Resource, string(p.State))}, p.Lines...), "\n")
}

// boxLines are the lines of a box below its kind.
func boxLines(b Box) []string {
	all := wrap(b.Name, boxChars)
	for _, line := range b.Lines {
		all = append(all, wrap(line, boxChars)...)
	}
	if len(all) > mostBoxLines {
		all = append(all[:mostBoxLines-1:mostBoxLines-1], "…")
	}
	return all
}

// notes draws the notes.
func (d *drawing) notes(y, chars int) {
	for _, n := range d.picture.Notes {
		d.printf(`<g class="note %s">`+"\n", escape(string(n.State)))
		d.text("heading", margin, y, strings.TrimSpace(marks[n.State]+" "+cut(n.Title, chars)))
		for _, line := range noteLines(n, chars) {
			y += lineStep
			d.text("fact", margin+inset, y, line)
		}
		y += 2 * lineStep
		d.printf("</g>\n")
	}
}

func noteLines(n Note, chars int) (all []string) {
	for i, line := range n.Lines {
		wrapped := wrap(line, chars)
		if len(all)+len(wrapped) > mostNoteLines {
			return append(all, fmt.Sprintf("%d more", len(n.Lines)-i))
		}
		all = append(all, wrapped...)
	}
	return all
}

// limit cuts what is longer than any reader needs.
func limit(text string) string { return cut(text, mostText) }

// cut returns a text of so many characters at most.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// wrap returns the lines of a text, at blanks if possible.
func wrap(text string, chars int) (all []string) {
	for line := range strings.Lines(limit(text)) {
		rest := []rune(strings.TrimRight(line, "\r\n"))
		for len(rest) > chars {
			at := chars
			for i := chars; i > chars/2; i-- {
				if rest[i] == ' ' {
					at = i
					break
				}
			}
			all = append(all, strings.TrimRight(string(rest[:at]), " "))
			rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
		}
		all = append(all, string(rest))
	}
	return all
}

// escape returns a text as it is written in XML. What XML does not allow is replaced.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}
