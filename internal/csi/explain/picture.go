package explain

import (
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/picture"
)

// Picture is the explanation from the pods to the disk or share in Azure and the machines that have it.
func (v Volume) Picture() picture.Picture {
	p := picture.New("Claim "+v.Claim, "Pods", "Claim", "Volume", "Azure", "Machines")
	for _, pod := range v.Pods {
		where := "on no node"
		if pod.Node != "" {
			where = "on node " + pod.Node
		}
		p.Add(0, picture.Box{Key: "pod " + pod.Name, Kind: "Pod", Name: pod.Name, Lines: []string{strings.ToLower(pod.Phase), where},
			To: []string{"claim"}})
	}
	p.Add(1, picture.Box{Key: "claim", Kind: "PersistentVolumeClaim", Name: v.Claim, State: v.state(), Lines: v.claimLines(),
		To: []string{"volume", "resource"}})
	if v.Volume != "" {
		p.Add(2, picture.Box{Key: "volume", Kind: "PersistentVolume", Name: v.Volume, To: []string{"resource"}})
	}
	if v.Disk != nil {
		v.Disk.draw(p)
	}
	if s := v.Share; s != nil {
		p.Add(3, picture.Box{Key: "resource", Kind: "share", Name: azure.ID(s.ID).Name(), Resource: s.ID, Lines: s.lines()})
	}
	for _, a := range v.Attachments {
		b := picture.Box{Key: "attachment " + a.Name, Kind: "VolumeAttachment", Name: a.Name, State: picture.Wait,
			Lines: []string{"to node " + a.Node, a.state()}, To: []string{"volume", "machine " + a.Node}}
		if a.Attached && !a.Deleted {
			b.State = picture.Good
		}
		p.Add(2, b)
	}
	p.Note("Problems", picture.Bad, v.Problems)
	p.Note("Waits for", picture.Wait, v.Waits)
	p.Note("Last messages", "", v.Said)
	return *p
}

func (v Volume) state() picture.State {
	switch {
	case len(v.Problems) > 0:
		return picture.Bad
	case len(v.Waits) > 0:
		return picture.Wait
	}
	return picture.Good
}

func (v Volume) claimLines() []string {
	lines := []string{strings.ToLower(v.Phase), v.size()}
	if v.Class != "" {
		lines = append(lines, "storage class "+v.Class)
	}
	return lines
}

// draw adds the disk with its machines to a picture.
func (d Disk) draw(p *picture.Picture) {
	b := picture.Box{Key: "resource", Kind: "disk", Name: azure.ID(d.ID).Name(), Resource: d.ID}
	if d.State != "" {
		b.Lines = []string{d.properties()}
	}
	p.Add(3, b)
	for _, h := range d.Machines {
		key := "machine " + h.ID
		if h.Node != "" {
			key = "machine " + h.Node
		}
		m := picture.Box{Key: key, Kind: "machine", Name: azure.ID(h.ID).Name(), Resource: h.ID, State: picture.Good,
			Lines: []string{h.at()}, To: []string{"resource"}}
		if h.LUN == nil || h.Detaching {
			m.State = picture.Wait
		}
		p.Add(4, m)
	}
}

// properties are those of a disk that Azure shows.
func (d Disk) properties() string {
	zones := "in no zone"
	if len(d.Zones) > 0 {
		zones = "in zone " + strings.Join(d.Zones, ", ")
	}
	return fmt.Sprintf("%s, %d GiB, %s, state %s", d.SKU, d.SizeGiB, zones, d.State)
}

// at says where a machine has the disk.
func (h Holder) at() string {
	at := "which does not show it"
	if h.LUN != nil {
		at = fmt.Sprintf("at LUN %d", *h.LUN)
	}
	if h.Detaching {
		at += ", being detached"
	}
	if h.Node != "" {
		at += ", node " + h.Node
	}
	return at
}

// state says how far an attachment is.
func (a Attachment) state() string {
	state := "not attached"
	if a.Attached {
		state = "attached"
	}
	if a.Deleted {
		state += ", to be detached"
	}
	return state
}

// size is that of a claim, and what it asks for.
func (v Volume) size() string {
	switch {
	case v.Capacity == "":
		return v.Requested + " requested"
	case v.Capacity != v.Requested:
		return v.Capacity + ", " + v.Requested + " requested"
	}
	return v.Capacity
}
