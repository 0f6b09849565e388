package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
	"kaz/internal/cluster"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/lock"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/workload"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit/clustertest"
)

// etcd is an etcd that notes what is done with it.
type etcd struct {
	members []inspect.EtcdMember
	fault   error
	done    []string
}

func (e *etcd) Survey(context.Context) ([]inspect.EtcdMember, error) {
	return slices.Clone(e.members), e.fault
}

func (e *etcd) note(what string) error {
	e.done = append(e.done, what)
	return nil
}

func (e *etcd) Save(context.Context) (string, error) { return "blob", e.note("save") }
func (e *etcd) Compact(context.Context) error        { return e.note("compact") }
func (e *etcd) Defragment(_ context.Context, member string) error {
	return e.note("defragment " + member)
}
func (e *etcd) Disarm(context.Context) error { return e.note("disarm") }

// backups are backups of which the newest has a name.
type backups struct {
	engine.Backups
	latest string
}

func (b backups) Latest(context.Context) (string, error) { return b.latest, nil }

// ward is a cluster on a local Azure with an inside that is well.
type ward struct {
	Doctor
	plan   cluster.Plan
	etcd   *etcd
	client *fake.Clientset
	*members
}

func open(t *testing.T) *ward {
	t.Helper()
	p := clustertest.Plan(t, nil, "ha.yaml")
	local := clustertest.Start(t, core.Options{})
	m := &members{next: local.Transport(), df: map[string]string{}, asked: map[string]int{}}
	client := clustertest.Client(t, m)
	w := &ward{plan: p, etcd: &etcd{}, members: m}
	now := time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC)
	w.Engine = &engine.Engine{Backups: backups{latest: "etcd/20260102T030405Z-1234.db"}}
	w.Azure, w.Now = client, func() time.Time { return now }
	w.Etcd, w.Planes = w.etcd, local.Vaults()
	if _, err := w.Deploy(t.Context(), p, func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, name := range []string{"prod-cp-0", "prod-cp-1", "prod-cp-2"} {
		objects = append(objects, node(name), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-" + name, Namespace: "kube-system"}, Spec: corev1.PodSpec{NodeName: name},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		})
		w.etcd.members = append(w.etcd.members, inspect.EtcdMember{Name: name, ID: "id-" + name, Healthy: true, Leader: name == "prod-cp-1",
			Size: 20 << 20, InUse: 19 << 20, Quota: 2 << 30, Expires: now.AddDate(1, 0, 0)})
	}
	c := &clusterOf{t, w}
	for _, name := range c.pools() {
		objects = append(objects, node(name))
	}
	w.client = fake.NewClientset(objects...)
	w.Workload = &workload.Cluster{Client: w.client}
	// A member has renewed the join token.
	if err := w.Workload.AddToken(t.Context(), secret.New(w.Secrets(t.Context(), p.Names).Token+".0123456789abcdef")); err != nil {
		t.Fatal(err)
	}
	if err := w.Workload.EndToken(t.Context(), w.Secrets(t.Context(), p.Names).Token, now.Add(36*time.Hour)); err != nil {
		t.Fatal(err)
	}
	return w
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

type clusterOf struct {
	t *testing.T
	*ward
}

// pools are the names of the machines of pools.
func (c *clusterOf) pools() []string {
	c.t.Helper()
	found := &found{names: c.plan.Names, members: map[string]*health.Member{}, pools: map[string]*health.Machine{}}
	if err := c.machines(c.t.Context(), found); err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for name := range found.pools {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (w *ward) examine(t *testing.T) Report {
	t.Helper()
	r, err := w.Examine(t.Context(), w.plan.Names)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestExamine checks what is read of a cluster, and that what is missing on one side is found.
func TestExamine(t *testing.T) {
	w := open(t)
	r := w.examine(t)
	if len(r.Findings) > 0 || !r.Healthy || len(r.Members) != 3 || len(r.Nodes) != 2 || len(r.Certificates) != 3 {
		t.Fatalf("%+v", r)
	}
	want := health.Member{Machine: health.Machine{Name: "prod-cp-1", Power: "running", Node: true, Ready: true}, APIServer: true, Role: "leader",
		ID: "id-prod-cp-1", Healthy: true, Size: 20 << 20, InUse: 19 << 20, Quota: 2 << 30, Disks: []health.Disk{
			{Path: "/var/lib/etcddisk", Size: 65737856 << 10, Free: 62316428 << 10},
			{Path: "/", Size: 64915344 << 10, Free: 60140284 << 10}}}
	if diff := cmp.Diff(want, r.Members[1]); diff != "" {
		t.Error(diff)
	}
	group := w.plan.Names.Group()
	stop := azure.Request{Verb: azure.Post, ID: group.Resource(record.MachineType, "prod-cp-0"), Action: "deallocate"}
	for _, request := range []azure.Request{stop, {Verb: azure.Delete, ID: group.Resource(record.MachineType, "prod-cp-2")}} {
		if _, err := azure.Do(t.Context(), w.Azure, request); err != nil {
			t.Fatal(err)
		}
	}
	w.etcd.members[0].Healthy, w.etcd.members[0].Problem = false, "no answer"
	w.etcd.members[2].Healthy, w.etcd.members[2].Problem = false, "no answer"
	r = w.examine(t)
	for _, want := range []string{"✘ etcd: 1 of 3 members answer, which is no majority", "⚠ machines: prod-cp-0 is deallocated",
		"⚠ etcd: member prod-cp-2 has no machine", "kaz cluster restore prod"} {
		if r.Healthy || !strings.Contains(r.Findings.Error(), want) {
			t.Errorf("got\n%v\nwant %s", r.Findings, want)
		}
	}
	w.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	r = w.examine(t)
	if want := "✘ API server: it does not answer: nodes of the cluster: connection refused; machines: prod-cp-0 is deallocated, prod-cp-1 is " +
		"running"; !strings.Contains(r.Findings.Error(), want) {
		t.Errorf("got\n%v\nwant %s", r.Findings, want)
	}
}

// TestSecrets checks what is read of the secrets that are rotated, and that none of them is in the report.
func TestSecrets(t *testing.T) {
	w := open(t)
	r := w.examine(t)
	if s := r.Secrets; s.Fault != "" || len(s.Token) != 6 || !s.Taken || s.Ends.Sub(w.Now()) != 36*time.Hour || s.Former != 0 ||
		s.AuthorityEnds.Before(w.Now().AddDate(9, 0, 0)) {
		t.Errorf("%+v", s)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "0123456789abcdef") || strings.Contains(string(text), "PRIVATE") {
		t.Errorf("the report has a secret, or %v", err)
	}
	secrets := w.client.CoreV1().Secrets("kube-system")
	if err := secrets.Delete(t.Context(), "bootstrap-token-"+r.Secrets.Token, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r = w.examine(t)
	if want := "⚠ join token: the API server does not take " + r.Secrets.Token; !r.Healthy || !strings.Contains(r.Findings.Error(), want) {
		t.Errorf("got\n%v\nwant %s", r.Findings, want)
	}
	w.Planes.Token = func(context.Context, string) (string, error) { return "", errors.New("no right") }
	if r = w.examine(t); !strings.Contains(r.Findings.Error(), "⚠ secrets: they cannot be read: secret prod-bootstrap-token") {
		t.Errorf("without the right: %v", r.Findings)
	}
}

// TestFix checks that etcd is saved first, that the leader is defragmented last, and what is refused.
func TestFix(t *testing.T) {
	w := open(t)
	if did, err := w.Fix(t.Context(), w.plan.Names); did || err != nil || len(w.etcd.done) > 0 {
		t.Errorf("of a cluster that is well: %v %v %v", did, err, w.etcd.done)
	}
	w.etcd.members[0].Size = 100 << 20
	if did, err := w.Fix(t.Context(), w.plan.Names); !did || err != nil {
		t.Fatal(did, err)
	}
	want := []string{"save", "defragment prod-cp-0", "defragment prod-cp-2", "defragment prod-cp-1"}
	if diff := cmp.Diff(want, w.etcd.done); diff != "" {
		t.Error(diff)
	}
	w.etcd.done, w.etcd.members[2].Alarms = nil, []string{"NOSPACE"}
	if did, err := w.Fix(t.Context(), w.plan.Names); !did || err != nil {
		t.Fatal(did, err)
	}
	want = []string{"save", "compact", "defragment prod-cp-0", "defragment prod-cp-2", "defragment prod-cp-1", "disarm"}
	if diff := cmp.Diff(want, w.etcd.done); diff != "" {
		t.Error(diff)
	}
	w.etcd.done, w.etcd.members[0].Healthy = nil, false
	if _, err := w.Fix(t.Context(), w.plan.Names); err == nil || len(w.etcd.done) > 0 {
		t.Errorf("with a member that does not answer: %v %v", err, w.etcd.done)
	}
}

// taken is a lock that another process has.
type taken struct{ lock.Lease }

func (taken) Acquire(context.Context, string) (string, error) { return "alice@a", nil }

// TestFixAlone checks that etcd is not changed while another process changes the cluster.
func TestFixAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.Lock = taken{}
		if _, err := w.Fix(t.Context(), w.plan.Names); !errors.Is(err, lock.ErrHeld) || len(w.etcd.done) > 0 {
			t.Errorf("did %v: %v", w.etcd.done, err)
		}
	})
}
