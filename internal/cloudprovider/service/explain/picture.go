package explain

import (
	"slices"

	"kaz/internal/picture"
)

// columns are where the parts of a kind are in a picture. Packets go from left to right.
var columns = map[string]int{
	"public IP": 1, securityRule: 1, "private link service": 1, "frontend": 2, "rule": 3, "pool": 4, "probe": 4,
}

// states are how the states of Services and parts are drawn.
var (
	states     = map[State]picture.State{Settled: picture.Good, Pending: picture.Wait, Refused: picture.Bad, Leaving: picture.Delete}
	partStates = map[PartState]picture.State{
		UpToDate: picture.Good, ToCreate: picture.Create, ToDelete: picture.Delete, ToChange: picture.Change,
	}
)

// Picture is the explanation from the Services to what they have in Azure.
func (e Explanation) Picture() picture.Picture {
	title := "Services of type LoadBalancer in Azure"
	if len(e.Services) == 1 {
		title = "Service " + e.Services[0].Service + ": " + sentences[e.Services[0].State]
	}
	p := picture.New(title, "Kubernetes", "Addresses and access", "Frontends", "Rules", "Backends")
	for _, s := range slices.Concat(e.Services, e.Leftovers) {
		s.draw(p)
	}
	for _, s := range e.Services {
		p.Note("Problems of "+s.Service, picture.Bad, problemLines(s))
	}
	var steps []string
	for _, s := range e.Steps {
		steps = append(steps, s.Text)
	}
	p.Note("Steps in Azure", picture.Wait, steps)
	p.Note("Decided when the steps are done", picture.Wait, e.Then)
	return *p
}

// draw adds a Service with its parts to a picture.
func (s Explained) draw(p *picture.Picture) {
	own := picture.Box{Key: "Service " + s.Service + string(s.UID), Kind: "Service", Name: s.Service, State: states[s.State]}
	own.Lines = append(own.Lines, sentences[s.State])
	if s.State == "" {
		own.State, own.Lines = picture.Delete, []string{"is not in Kubernetes; drift repair removes what it has in Azure"}
	}
	for _, change := range s.Kubernetes {
		own.Lines = append(own.Lines, "in Kubernetes: "+change)
	}
	leads := []string{"public IP", securityRule}
	if !slices.ContainsFunc(s.Parts, func(part Part) bool { return part.Kind == "public IP" }) {
		leads = []string{"frontend", securityRule}
	}
	for _, part := range s.Parts {
		if slices.Contains(leads, part.Kind) {
			own.To = append(own.To, part.ID.Key())
		}
	}
	p.Add(0, own)
	for _, part := range s.Parts {
		p.Add(columns[part.Kind], part.box())
	}
}

func (part Part) box() picture.Box {
	b := picture.Box{Key: part.ID.Key(), Kind: part.Kind, Name: part.Name, State: partStates[part.State], Resource: string(part.ID)}
	for _, id := range part.refers {
		b.To = append(b.To, id.Key())
	}
	for _, text := range []string{part.Current, part.Desired} {
		if text != "" && !slices.Contains(b.Lines, text) {
			b.Lines = append(b.Lines, text)
		}
	}
	if len(b.Lines) == 2 {
		b.Lines[1] = "-> " + b.Lines[1]
	}
	return b
}

func problemLines(s Explained) (all []string) {
	for _, p := range s.Problems {
		all = append(all, problemLine(p))
	}
	return all
}
