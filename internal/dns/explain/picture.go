package explain

import (
	"cmp"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/picture"
)

// Picture is the explanation from what clusters contribute, by record sets and zones, to what is answered.
func (n Name) Picture() picture.Picture {
	p := picture.New("Name "+n.Name, "Name", "Zones", "Record sets", "Contributions", "Answers")
	own := picture.Box{Key: "name", Kind: "name", Name: n.Name, State: picture.Good}
	switch {
	case len(n.Problems) > 0:
		own.State = picture.Bad
	case len(n.Waits) > 0:
		own.State = picture.Wait
	}
	p.Add(0, own)
	for _, z := range n.Zones {
		z.draw(p)
	}
	p.Note("Problems", picture.Bad, n.Problems)
	p.Note("Waits for", picture.Wait, n.Waits)
	return *p
}

// draw adds a zone with what it has of the name to a picture.
func (z Zone) draw(p *picture.Picture) {
	box := picture.Box{Key: z.ID, Kind: z.kind() + " zone", Name: azure.ID(z.ID).Name(), Resource: z.ID, To: []string{"name"}}
	for _, o := range z.Owners {
		box.Lines = append(box.Lines, "owner "+o.Record+": "+o.Text)
	}
	p.Add(1, box)
	for _, s := range z.Sets {
		key := z.ID + "/" + s.Type
		set := picture.Box{Key: key, Kind: s.Type + " record set", Name: cmp.Or(azure.ID(s.Alias).Name(), strings.Join(s.Targets, ", ")),
			Lines: []string{fmt.Sprintf("%d s", s.TTL)}, Resource: s.Alias, To: []string{z.ID}}
		p.Add(2, set)
		for _, c := range s.Contributions {
			b := picture.Box{Key: key + "/" + c.SetIdentifier, Kind: "contribution", Name: c.SetIdentifier, State: c.drawn(),
				Lines: []string{strings.Join(c.Targets, ", "), c.State, c.origin()}, To: []string{key}}
			p.Add(3, b)
		}
	}
	for i, a := range z.Answers {
		b := picture.Box{Key: fmt.Sprint(z.ID, "/answer/", i), Kind: "answer", Name: a.Type, State: picture.Good, Lines: []string{a.text()},
			To: []string{z.ID + "/" + a.Type}}
		if a.Error != "" {
			b.State = picture.Bad
		} else if len(a.Targets) == 0 {
			b.State = picture.Wait
		}
		p.Add(4, b)
	}
}

// drawn is how the state of a contribution is drawn.
func (c Contribution) drawn() picture.State {
	switch {
	case strings.HasPrefix(c.State, "out"), strings.HasSuffix(c.State, "missing"):
		return picture.Bad
	case strings.HasPrefix(c.State, "answered"), strings.HasSuffix(c.State, "Online"):
		return picture.Good
	}
	return picture.Wait
}
