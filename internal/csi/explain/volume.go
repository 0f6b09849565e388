package explain

import (
	"fmt"
	"strings"
)

// Volume is the explanation of a claim.
type Volume struct {
	Claim       string       `json:"claim"` // NAMESPACE/NAME
	Phase       string       `json:"phase"`
	Class       string       `json:"storageClass,omitempty"`
	Requested   string       `json:"requested,omitempty"`
	Capacity    string       `json:"capacity,omitempty"`
	Volume      string       `json:"persistentVolume,omitempty"`
	Disk        *Disk        `json:"disk,omitempty"`
	Share       *Share       `json:"share,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	Pods        []Pod        `json:"pods,omitempty"`
	// Waits are what must happen next, and Problems what does not happen by itself.
	Waits    []string `json:"waits,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Said are what Azure, the driver and Kubernetes said last, as they said it.
	Said []string `json:"said,omitempty"`
}

// Disk is the disk of a volume in Azure.
type Disk struct {
	ID       string   `json:"id"`
	SKU      string   `json:"sku,omitempty"`
	SizeGiB  int64    `json:"sizeGiB,omitempty"`
	Zones    []string `json:"zones,omitempty"`
	State    string   `json:"state,omitempty"`    // as Azure says
	Machines []Holder `json:"machines,omitempty"` // that have the disk
}

// Holder is a machine that has a disk.
type Holder struct {
	ID   string `json:"id"`
	Node string `json:"node,omitempty"`
	// LUN is nil if the machine does not show the disk.
	LUN       *int `json:"lun,omitempty"`
	Detaching bool `json:"detaching,omitempty"`
}

// Attachment is a VolumeAttachment of a volume.
type Attachment struct {
	Name     string `json:"name"`
	Node     string `json:"node"`
	Attached bool   `json:"attached"`
	Deleted  bool   `json:"deleted,omitempty"` // its deletion has begun
}

// Pod is a pod that uses a volume.
type Pod struct {
	Name  string `json:"name"`
	Node  string `json:"node,omitempty"`
	Phase string `json:"phase"`
}

// String returns the explanation as text.
func (v Volume) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-18s %s\n", name, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	line("claim", "%s, %s", v.Claim, strings.ToLower(v.Phase))
	if v.Class != "" {
		line("storage class", "%s", v.Class)
	}
	line("size", "%s", v.size())
	if v.Volume != "" {
		line("persistent volume", "%s", v.Volume)
	}
	if v.Disk != nil {
		v.Disk.write(line)
	}
	if v.Share != nil {
		v.Share.write(line)
	}
	for _, a := range v.Attachments {
		line("attachment", "to node %s: %s (%s)", a.Node, a.state(), a.Name)
	}
	for _, p := range v.Pods {
		if p.Node == "" {
			line("pod", "%s, %s, on no node", p.Name, strings.ToLower(p.Phase))
		} else {
			line("pod", "%s, %s, on node %s", p.Name, strings.ToLower(p.Phase), p.Node)
		}
	}
	v.list(&b, "problems", v.Problems)
	v.list(&b, "waits for", v.Waits)
	v.list(&b, "last messages", v.Said)
	if len(v.Problems)+len(v.Waits) == 0 {
		b.WriteString("\nnothing is pending\n")
	}
	return b.String()
}

func (d Disk) write(line func(name, format string, args ...any)) {
	line("disk", "%s", d.ID)
	if d.State == "" {
		return
	}
	line("", "%s", d.properties())
	for _, h := range d.Machines {
		line("machine", "%s, %s", h.ID, h.at())
	}
}

func (Volume) list(b *strings.Builder, title string, all []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, text := range all {
		fmt.Fprintf(b, "  - %s\n", text)
	}
}
