package autoscale

import (
	"fmt"
	"strconv"
	"strings"

	"kaz/internal/picture"
)

// Picture is the view from the scale set to its instances and their nodes.
func (v View) Picture() picture.Picture {
	p := picture.New("Node group "+v.ScaleSet, "Scale set", "Next machine", "Instances", "Nodes")
	set := picture.Box{Key: "set", Kind: "scale set", Name: v.ScaleSet, Resource: v.ID, State: v.state()}
	if v.Ignored != "" {
		set.Lines = []string{"no node group: " + v.Ignored}
		p.Add(0, set)
		return *p
	}
	set.Lines = []string{strings.TrimPrefix(v.kind(), ": "), fmt.Sprintf("from %d to %d machines", v.Min, v.Max),
		fmt.Sprintf("target %d, capacity in Azure %d", v.Target, v.Capacity)}
	p.Add(0, set)
	if v.Next != nil {
		p.Add(1, v.Next.box())
	}
	for n, i := range v.Instances {
		b := picture.Box{Key: "instance " + strconv.Itoa(n), Kind: "instance", Name: i.name(), State: i.drawn(), Lines: []string{i.State},
			To: []string{"set", "node " + i.Node}}
		if i.Code != "" {
			b.Lines = append(b.Lines, i.Code+": "+i.Message)
		}
		if !i.Placeholder {
			b.Resource = strings.TrimPrefix(i.ID, "azure://")
		}
		p.Add(2, b)
		if i.Node != "" {
			p.Add(3, picture.Box{Key: "node " + i.Node, Kind: "Node", Name: i.Node})
		}
	}
	p.Note("Problems", picture.Bad, v.Problems)
	p.Note("Waits for", picture.Wait, v.Waits)
	p.Note("Warnings", picture.Change, v.Warnings)
	return *p
}

func (v View) state() picture.State {
	switch {
	case v.Ignored != "" || len(v.Problems) > 0:
		return picture.Bad
	case len(v.Waits) > 0:
		return picture.Wait
	}
	return picture.Good
}

// box is what an increase of the group would meet.
func (n *ViewNext) box() picture.Box {
	b := picture.Box{Key: "next", Kind: "next machine", Name: fmt.Sprintf("room for %d more", n.Room), Lines: []string{n.limit()},
		To: []string{"set"}}
	if n.From != "" {
		b.Lines = append(b.Lines, "like "+n.From)
		b.Lines = append(b.Lines, n.resources()...)
	}
	for _, t := range n.Taints {
		b.Lines = append(b.Lines, "taint "+t)
	}
	return b
}

// drawn is how the state of an instance is drawn.
func (i ViewInstance) drawn() picture.State {
	switch {
	case i.Code != "":
		return picture.Bad
	case i.State == stateCreating:
		return picture.Create
	case i.State == stateDeleting:
		return picture.Delete
	case i.State == StateRunning && i.Node == "":
		return picture.Wait
	case i.State == StateRunning:
		return picture.Good
	}
	return ""
}
