package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/record"
)

// archive is the container with the backups of a cluster.
type archive struct {
	names          []string
	unsigned       []string
	marked         string
	marks, release int
}

func (a *archive) Latest(context.Context) (string, error) {
	if len(a.names) == 0 {
		return "", nil
	}
	return a.names[len(a.names)-1], nil
}

func (a *archive) Has(_ context.Context, name string) (bool, error) {
	return slices.Contains(a.names, name), nil
}

func (a *archive) Verify(_ context.Context, name string) error {
	if slices.Contains(a.unsigned, name) {
		return dataplane.ErrUnsigned
	}
	return nil
}

func (a *archive) Adopt(_ context.Context, name string) error {
	a.unsigned = slices.DeleteFunc(a.unsigned, func(other string) bool { return other == name })
	return nil
}

func (a *archive) Marked(context.Context) (string, error) { return a.marked, nil }

func (a *archive) Mark(_ context.Context, name string) error {
	a.marked = name
	a.marks++
	return nil
}

func (a *archive) Release(context.Context) error {
	a.marked = ""
	a.release++
	return nil
}

// lose deletes the machines of all members of the control plane. The API server answers again when a new member is there.
func (s *simulation) lose() {
	s.l.t.Helper()
	var lost []azure.ID
	for _, name := range s.nodes() {
		if s.member(name) {
			lost = append(lost, s.names.Group().Resource(record.MachineType, name))
		}
	}
	for _, id := range lost {
		if _, err := azure.Do(s.l.t.Context(), s.l.client, azure.Request{Verb: azure.Delete, ID: id}); err != nil {
			s.l.t.Fatal(err)
		}
	}
	s.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if slices.ContainsFunc(s.nodes(), s.member) {
			return false, nil, nil
		}
		return true, nil, errors.New("connection refused")
	})
}

// TestRestore checks scenario 39: after the loss of every member the newest backup is restored, and all members exist again.
// The first member has a new name. Nothing of the lost members is left, the nodes of pools stay, and a further deployment
// changes nothing.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "ha.yaml")
		var pools []string
		for _, name := range s.nodes() {
			if !s.member(name) {
				pools = append(pools, name)
			}
		}
		s.lose()
		a := &archive{names: []string{"etcd/1.db", "etcd/2.db"}}
		l.Backups = a
		if err := l.Restore(t.Context(), s.names, ""); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		if want := append(append([]string{}, "prod-cp-0-1", "prod-cp-1", "prod-cp-2"), pools...); !cmp.Equal(want, s.nodes()) {
			t.Errorf("nodes: %s", cmp.Diff(want, s.nodes()))
		}
		if a.marks != 1 || a.release != 1 || a.marked != "" {
			t.Errorf("%+v: want one mark, which is released", a)
		}
		if !strings.Contains(strings.Join(l.said, "\n"), "mark the backup for the first member etcd/2.db") {
			t.Errorf("not the newest backup:\n%s", strings.Join(l.said, "\n"))
		}
		if left := l.named("", "prod-cp-0", "prod-cp-0-nic", "prod-cp-0-etcd"); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
		if s.saved != 1 {
			t.Errorf("%d backups before the other members joined, want 1", s.saved)
		}
		l.unchanged(d, "ha.yaml")
	})
}

// TestRestoreRefused checks what a restore needs, and that nothing is written without it.
func TestRestoreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, _ := deployed(t, nil, "dev.yaml")
		a := &archive{names: []string{"etcd/1.db"}}
		l.Backups = a
		for _, test := range []struct {
			prepare    func()
			from, want string
		}{
			{func() {}, "", "the API server answers, so the control plane is not lost"},
			{s.lose, "etcd/9.db", `--from "etcd/9.db": there is no such backup`},
			{func() { a.unsigned = []string{"etcd/1.db"} }, "",
				"nothing proves that this cluster made the backup: take another one, or --allow-unsigned"},
			{func() { a.names = nil }, "", "has no backup of etcd: want --from"},
			{func() { l.Backups = nil }, "", "needs the backups in the cluster's storage account"},
		} {
			test.prepare()
			l.requests()
			if err := l.Restore(t.Context(), s.names, test.from); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if writes, _ := l.requests(); len(writes) > 0 {
				t.Errorf("%s: wrote %v", test.want, writes)
			}
		}
	})
}

// TestRestoreKilled checks scenario 24: a restore that is killed before or after any write can be resumed, and reaches the
// same end.
func TestRestoreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want []string
		for kill := 0; ; kill++ {
			l, s, _ := deployed(t, nil, "dev.yaml")
			s.lose()
			a := &archive{names: []string{"etcd/1.db"}}
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill, late: kill%2 == 1}
			if kill == 0 {
				k.left = 10000
			}
			l.connect(k)
			s.connect(l.Engine)
			victim := l.Engine
			victim.Backups = a
			l.connect(healthy)
			s.connect(l.Engine)
			l.Backups = a
			err := victim.Restore(t.Context(), s.names, "")
			switch {
			case kill == 0 && err != nil:
				t.Fatal(err)
			case kill == 0:
				want = l.all()
				continue
			case err == nil && !k.spent:
				t.Logf("%d places to die", kill)
				return
			}
			open, err := l.Open(t.Context(), s.names)
			if err == nil && open != nil {
				_, err = l.Resume(t.Context(), s.names)
			} else if err == nil {
				err = l.Restore(t.Context(), s.names, "") // it died before it was recorded, or when all was done
				if errors.Is(err, errAnswers) {
					err = nil
				}
			}
			if err != nil {
				t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
			}
			if diff := cmp.Diff(shape(want), shape(l.all())); diff != "" || a.marked != "" {
				t.Fatalf("died at %d: marked %q\n%s", kill, a.marked, diff)
			}
		}
	})
}

// TestRotation checks scenario 43 for leaf certificates: every member is replaced, and the change can be resumed as any other.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, _ := deployed(t, nil, "ha.yaml")
		r, err := l.Rotation(t.Context(), s.names)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"cp-0", "cp-1", "cp-2"}; !cmp.Equal(want, r.Replace) {
			t.Errorf("replaces %v, want %v", r.Replace, want)
		}
		if err := l.Change(t.Context(), r); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		members, _ := s.Members(t.Context())
		for i, want := range []string{"prod-cp-0-1", "prod-cp-1-1", "prod-cp-2-1"} {
			if len(members) != 3 || members[i].Name != want {
				t.Fatalf("members %+v, want %s", members, want)
			}
		}
	})
}
