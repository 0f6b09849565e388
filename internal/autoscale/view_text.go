package autoscale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// String returns the view as text.
func (v View) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("scale set", "%s", v.ScaleSet+v.kind())
	if v.Source == SourceAzure {
		line("seen by", "Azure and Kubernetes alone: requests under way and refused machines are not known")
	} else {
		line("seen by", "%s", v.Source)
	}
	if v.Ignored != "" {
		line("node group", "no: %s", v.Ignored)
		return b.String()
	}
	line("node group", "yes, from %d to %d machines", v.Min, v.Max)
	line("next loop", "target %d, capacity in Azure %d", v.Target, v.Capacity)
	line("read", "%s ago", seconds(v.ReadAge))
	switch {
	case v.Source == SourceAzure:
	case v.LoopAge == nil:
		line("last loop", "none: cluster-autoscaler has not asked this provider")
	default:
		line("last loop", "%s ago", seconds(*v.LoopAge))
	}
	v.Next.write(line)
	v.table(&b)
	for _, part := range []struct {
		title string
		lines []string
	}{{"problems", v.Problems}, {"waits for", v.Waits}, {"warnings", v.Warnings}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&b, "\n%s:\n  - %s\n", part.title, strings.Join(part.lines, "\n  - "))
		}
	}
	if len(v.Problems)+len(v.Waits) == 0 {
		b.WriteString("\nnothing is pending\n")
	}
	return b.String()
}

// kind says what the machines are, "" for a scale set that is no node group.
func (v View) kind() string {
	if v.Ignored != "" {
		return ""
	}
	text := fmt.Sprintf(": %s, %s", v.Mode, v.Size)
	if v.Spot {
		text += ", Spot"
	}
	if len(v.Zones) > 0 {
		text += ", zones " + strings.Join(v.Zones, ", ")
	}
	return text
}

func seconds(n float64) string {
	return (time.Duration(n * float64(time.Second))).Round(time.Second).String()
}

func (n *ViewNext) write(line func(name, format string, args ...any)) {
	if n == nil {
		return
	}
	line("room", "for %d more: %s", n.Room, n.limit())
	if n.From == "" {
		return
	}
	line("next node", "like %s: %s", n.From, strings.Join(n.resources(), ", "))
	if len(n.Taints) > 0 {
		line("", "taints %s", strings.Join(n.Taints, ", "))
	}
}

// limit says what the room is limited by.
func (n *ViewNext) limit() string {
	if n.Code != "" {
		return n.Code + ": " + n.Message
	}
	return "the greatest size"
}

// resources are what the next node has for pods.
func (n *ViewNext) resources() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(n.Allocatable)) {
		all = append(all, name+" "+n.Allocatable[name])
	}
	return all
}

// name is that of the machine, or says that there is none.
func (i ViewInstance) name() string {
	if i.Placeholder {
		return "(placeholder)"
	}
	return i.ID[strings.LastIndexByte(i.ID, '/')+1:]
}

// table writes the instances: the machines by their names, then the placeholders.
func (v View) table(b *strings.Builder) {
	if len(v.Instances) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "INSTANCE\tSTATE\tNODE\tERROR") // a strings.Builder has no errors
	for _, i := range v.Instances {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.name(), i.State, i.Node, i.Code)
	}
	_ = w.Flush()
}
