package change

import (
	"fmt"
	"slices"

	"kaz/internal/cluster/naming"
)

// The actions of a restore.
const (
	MarkBackup    Action = "mark the backup for the first member"
	Found         Action = "restore etcd on member"
	ReleaseBackup Action = "release the backup"
)

// Loss is what Azure still has of a control plane that lost its members.
type Loss struct {
	// Left are the members of which something is left: a machine, a network interface, a disk or a deployment.
	Left []string
	// Marked says that the first member that is made begins with the backup.
	Marked bool
	// Founded says that this member is deployed and its boot is complete.
	Founded bool
}

// Restore is what a restore begins with. It does not change while the restore goes on.
type Restore struct {
	// From is the name of the backup.
	From string `json:"from"`
	// Lost are the members that were there when the restore began. Nothing of them may run when the new cluster begins: it would be a
	// second cluster with the same authority.
	Lost []string `json:"lost"`
	// Generation is that of the new first member, which has the index 0.
	Generation int `json:"generation"`
}

// NewRestore begins a restore of a cluster with members.
func NewRestore(from string, members []string) Restore {
	r := Restore{From: from, Lost: slices.Sorted(slices.Values(members))}
	for _, id := range members {
		if index, generation, ok := naming.MemberSlot(id); ok && index == 0 {
			r.Generation = max(r.Generation, generation+1)
		}
	}
	return r
}

// Founder is the member that begins with the backup.
func (r Restore) Founder() string { return naming.MemberUnit(0, r.Generation) }

// Next returns the next step, nil if the new first member runs and the others can join. What is left of lost members goes first.
func (r Restore) Next(l Loss) *Step {
	for _, id := range r.Lost {
		if slices.Contains(l.Left, id) {
			index, generation, _ := naming.MemberSlot(id)
			return &Step{Action: DeleteMember, Member: id, index: index, generation: generation}
		}
	}
	switch {
	case !l.Founded && !l.Marked:
		return &Step{Action: MarkBackup, Backup: r.From}
	case !l.Founded:
		return &Step{Action: Found, Member: r.Founder(), generation: r.Generation}
	case l.Marked:
		return &Step{Action: ReleaseBackup, Backup: r.From}
	}
	return nil
}

// Plan returns all steps of a restore, without those of the ordinary change with which the other members join.
func (r Restore) Plan(l Loss) ([]Step, error) {
	var steps []Step
	for range most {
		step := r.Next(l)
		if step == nil {
			return steps, nil
		}
		steps = append(steps, *step)
		l = r.Apply(l, *step)
	}
	return steps, fmt.Errorf("the restore has more than %d steps", most)
}

// Apply returns what there is after a step that succeeds.
func (r Restore) Apply(l Loss, s Step) Loss {
	switch s.Action {
	case DeleteMember:
		l.Left = slices.DeleteFunc(slices.Clone(l.Left), func(id string) bool { return id == s.Member })
	case MarkBackup:
		l.Marked = true
	case Found:
		l.Founded = true
		l.Left = append(slices.Clone(l.Left), s.Member)
	case ReleaseBackup:
		l.Marked = false
	}
	return l
}
