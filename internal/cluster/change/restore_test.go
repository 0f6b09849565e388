package change

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func texts(steps []Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.String())
	}
	return all
}

// TestRestore checks scenario 39: nothing of the lost members is left when the new first member begins, which has a name of its own.
func TestRestore(t *testing.T) {
	lost := []string{"cp-1", "cp-0-2", "cp-0-1", "cp-2"}
	r := NewRestore("etcd/a.db", lost)
	steps, err := r.Plan(Loss{Left: []string{"cp-0-2", "cp-1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"delete the machine of member cp-0-2", "delete the machine of member cp-1", "mark the backup for the first member etcd/a.db",
		"restore etcd on member cp-0-3", "release the backup etcd/a.db"}
	if diff := cmp.Diff(want, texts(steps)); diff != "" {
		t.Error(diff)
	}
}

// TestRestoreStoppedAnywhere stops a restore before and after each step, and then continues with what exists. No order of
// stops makes two first members, or a first member that starts without the backup.
func TestRestoreStoppedAnywhere(t *testing.T) {
	r := NewRestore("etcd/a.db", []string{"cp-0", "cp-1", "cp-2"})
	begin := Loss{Left: []string{"cp-0", "cp-1", "cp-2"}}
	all, err := r.Plan(begin)
	if err != nil {
		t.Fatal(err)
	}
	for stop := range all {
		l := begin
		for _, s := range all[:stop] {
			l = r.Apply(l, s)
		}
		rest, err := r.Plan(l)
		if err != nil || !cmp.Equal(texts(all[stop:]), texts(rest)) {
			t.Errorf("after %d steps: %v %v, want %v", stop, err, texts(rest), texts(all[stop:]))
		}
	}
	for _, marked := range []bool{false, true} {
		for _, founded := range []bool{false, true} {
			l := Loss{Marked: marked, Founded: founded}
			for s := r.Next(l); s != nil; s = r.Next(l) {
				if s.Action == Found && (!l.Marked || slices.ContainsFunc(r.Lost, func(id string) bool { return slices.Contains(l.Left, id) })) {
					t.Errorf("%+v: the first member begins without the backup, or beside a lost one", l)
				}
				l = r.Apply(l, *s)
			}
			if !l.Founded || l.Marked {
				t.Errorf("the restore ends with %+v", l)
			}
		}
	}
}

// TestRotation checks scenario 43 for leaf certificates: each member is replaced, so that all members have new certificates.
// The number of members is never lower than before.
func TestRotation(t *testing.T) {
	for _, members := range []int{1, 3, 5} {
		c := Cluster{Version: "1.36.3"}
		target := Target{Version: "1.36.3", Members: members, Replace: map[string]bool{}}
		for i := range members {
			m := Member{Index: i, Version: "1.36.3", Machine: true, Balanced: true, Node: true, Voter: true, Healthy: true, Leader: i == 0}
			c.Members = append(c.Members, m)
			target.Replace[m.ID()] = true
		}
		steps, err := Plan(c, target)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			c = Apply(c, s)
			if voters, healthy := c.voters(); voters < members || voters > members+1 || healthy != voters {
				t.Errorf("%d members: after %s %d of %d answer", members, s, healthy, voters)
			}
		}
		for _, m := range c.Members {
			if m.Generation == 0 || len(c.Members) != members {
				t.Errorf("%d members: %s was not replaced", members, m.ID())
			}
		}
	}
}
