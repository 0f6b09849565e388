package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/step"
	"kaz/internal/cluster/workload"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit/clustertest"
)

// simulation simulates what runs in a cluster whose machines are documents of the local Azure. Each machine is a node as soon
// as it exists. Each member of the control plane is in etcd. Pods move when they are evicted.
type simulation struct {
	l         *lab
	names     naming.Names
	versions  map[string]string // of nodes, as their machine was made
	revisions map[string]string // of nodes, as their machine was made
	cordoned  map[string]bool
	excluded  map[string]string // why, from load balancers of Services
	forgotten map[string]bool   // nodes of machines that are still there
	removed   map[string]bool   // members that left etcd
	leader    string
	pods      map[string]string // nodes of pods
	bare      map[string]bool   // pods without a controller
	blocked   map[string]bool   // pods with a disruption budget that allows nothing
	absent    func(machine string) bool
	saved     int
	full      bool                       // the database of etcd has reached its quota
	answers   time.Time                  // when etcd answers again
	silent    error                      // until then, the error of a question for the members; nil if they answer
	keys      map[string]pki.AccountKeys // those of service accounts of members: what the key vault had when they booted
	trust     *trust                     // the certificate authorities of machines, nil if a test is not about them
	client    *fake.Clientset
	objects   *clustertest.Objects // of manifests
	metrics   string               // of an API server
}

func simulate(l *lab, n naming.Names) *simulation {
	s := &simulation{l: l, names: n, versions: map[string]string{}, revisions: map[string]string{}, cordoned: map[string]bool{},
		excluded: map[string]string{}, forgotten: map[string]bool{}, removed: map[string]bool{}, pods: map[string]string{},
		bare: map[string]bool{}, blocked: map[string]bool{}, absent: func(string) bool { return false },
		keys: map[string]pki.AccountKeys{}}
	s.objects = clustertest.NewObjects()
	s.client = fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config", Namespace: "kube-system"},
		Data:       map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"},
	})
	s.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.NodeList{}
		for _, name := range s.nodes() {
			list.Items = append(list.Items, *s.node(name))
		}
		return true, list, nil
	})
	s.client.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.GetAction).GetName()
		if !slices.Contains(s.nodes(), name) {
			return true, nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
		}
		return true, s.node(name), nil
	})
	s.client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.PatchAction)
		s.patch(p.GetName(), p.GetPatch())
		return true, &corev1.Node{}, nil
	})
	s.client.PrependReactor("delete", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if name := a.(clienttesting.DeleteAction).GetName(); slices.Contains(s.nodes(), name) {
			s.forgotten[name] = true
		}
		return true, nil, nil
	})
	s.client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, s.podList(), nil })
	s.client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		return true, nil, s.evict(a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name)
	})
	return s
}

// patch cordons a node, or excludes it from load balancers.
func (s *simulation) patch(name string, text []byte) {
	var patch struct {
		Metadata struct{ Labels map[string]*string }
		Spec     struct{ Unschedulable *bool }
	}
	if err := json.Unmarshal(text, &patch); err != nil {
		s.l.t.Error(err)
	}
	if patch.Spec.Unschedulable != nil {
		s.cordoned[name] = *patch.Spec.Unschedulable
	}
	if value, set := patch.Metadata.Labels[corev1.LabelNodeExcludeBalancers]; set {
		delete(s.excluded, name)
		if value != nil {
			s.excluded[name] = *value
		}
	}
}

// nodes are the names of the machines of the local Azure that have joined.
func (s *simulation) nodes() []string {
	ctx := context.Background()
	e := engineFor(s.l.client)
	var all []string
	there := map[string]bool{}
	add := func(name string, tags map[string]string) {
		there[name] = true
		if _, had := s.versions[name]; !had {
			s.versions[name], s.revisions[name] = tags[naming.VersionTag], tags[naming.RevisionTag]
			s.boot(name)
			s.bootAuthorities(name)
		}
		if !s.forgotten[name] && !s.absent(name) {
			all = append(all, name)
		}
	}
	machines, err := e.Machines(ctx, s.names)
	if err != nil {
		s.l.t.Fatal(err)
	}
	state, err := e.Read(ctx, s.names)
	if err != nil {
		s.l.t.Fatal(err)
	}
	for _, m := range machines {
		if set := m.Properties.ScaleSet.ID; set != "" {
			add(strings.ToLower(m.Properties.OS.Name), state.Resources[set.Key()].Tags)
		} else {
			add(m.ID.Name(), m.Tags)
		}
	}
	for _, r := range state.Resources {
		if r.Tags[naming.PoolTag] == "" || !strings.EqualFold(r.Type, record.ScaleSetType) {
			continue
		}
		instances, err := e.Instances(ctx, r.ID)
		if err != nil {
			s.l.t.Fatal(err)
		}
		for _, i := range instances {
			add(strings.ToLower(i.Properties.OS.Name), r.Tags)
		}
	}
	for name := range s.versions { // a later machine of this name is another one
		if !there[name] {
			delete(s.versions, name)
			delete(s.forgotten, name)
			delete(s.cordoned, name)
			delete(s.excluded, name)
			delete(s.removed, name)
			delete(s.keys, name)
			s.trust.forget(name)
		}
	}
	slices.Sort(all)
	s.accepted()
	s.trusted(all)
	return all
}

func (s *simulation) node(name string) *corev1.Node {
	labels := map[string]string{naming.RevisionLabel: s.revisions[name]}
	if why := s.excluded[name]; why != "" {
		labels[corev1.LabelNodeExcludeBalancers] = why
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Unschedulable: s.cordoned[name]},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v" + s.versions[name]},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func (s *simulation) member(name string) bool {
	_, _, ok := naming.MemberSlot(strings.TrimPrefix(name, s.names.Cluster+"-"))
	return ok
}

func (s *simulation) podList() *corev1.PodList {
	list := &corev1.PodList{}
	for _, name := range s.nodes() {
		if s.member(name) && !s.removed[name] {
			list.Items = append(list.Items, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-" + name, Namespace: "kube-system",
					Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
				Spec:   corev1.PodSpec{NodeName: name},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			})
		}
	}
	list.Items = append(list.Items, s.agents()...)
	for _, pod := range slices.Sorted(maps.Keys(s.pods)) {
		one := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: s.pods[pod]}}
		if !s.bare[pod] {
			one.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "app", Controller: new(true)}}
		}
		list.Items = append(list.Items, one)
	}
	return list
}

// evict moves a pod to another node.
func (s *simulation) evict(pod string) error {
	if s.trust.restart(pod) {
		return nil
	}
	if s.blocked[pod] {
		return apierrors.NewTooManyRequests("the disruption budget app needs 1 healthy pods", 1)
	}
	if s.excluded[s.pods[pod]] == "" {
		s.l.t.Errorf("pod %s is evicted while load balancers send requests to its node", pod)
	}
	for _, name := range s.nodes() {
		if name != s.pods[pod] && !s.cordoned[name] && !s.member(name) {
			s.pods[pod] = name
			return nil
		}
	}
	delete(s.pods, pod) // it waits for a node
	return nil
}

// Members implements [Etcd].
func (s *simulation) Members(context.Context) ([]inspect.EtcdMember, error) {
	if s.silent != nil && time.Now().Before(s.answers) {
		return nil, s.silent
	}
	var all []inspect.EtcdMember
	for _, name := range s.nodes() {
		if s.member(name) && !s.removed[name] {
			one := inspect.EtcdMember{Name: name, Healthy: !time.Now().Before(s.answers), Leader: name == s.leader}
			if s.full {
				one.Alarms = []string{"NOSPACE"}
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// Remove implements [Etcd].
func (s *simulation) Remove(ctx context.Context, name string) error {
	members, err := s.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name != name {
			s.leader = m.Name
			s.removed[name] = true
		}
	}
	if !s.removed[name] && len(members) == 1 && members[0].Name == name {
		return errors.New("the last member cannot be removed")
	}
	return nil
}

// Save implements [Etcd].
func (s *simulation) Save(context.Context) (string, error) {
	s.saved++
	return fmt.Sprintf("backup-%d", s.saved), nil
}

// connect connects an engine to the simulation.
func (s *simulation) connect(e *Engine) {
	e.Workload = &workload.Cluster{Client: s.client, Say: e.Sayf, Objects: s.objects, Kinds: clustertest.Kinds{Objects: s.objects},
		Metrics: func(context.Context) ([]byte, error) { return []byte(s.metrics), nil }}
	e.Etcd = s
	e.Planes = s.l.azure.Vaults()
	e.Patience = step.Patience{Join: time.Minute, Settle: time.Second, Drain: workload.DrainOptions{Timeout: time.Minute}}
}

// deployed deploys a definition and simulates its inside.
func deployed(t *testing.T, change func(*definition.Definition), files ...string) (*lab, *simulation, definition.Definition) {
	t.Helper()
	l := newLab(t, core.Options{Latency: 1})
	p := example(t, change, files...)
	l.deploy(p)
	s := simulate(l, p.Names)
	s.connect(l.Engine)
	for i, name := range s.nodes() {
		if !s.member(name) {
			s.pods[fmt.Sprintf("app-%d", i)] = name
		}
	}
	l.said = nil
	l.requests()
	return l, s, p.Definition
}

// copied is a definition that does not share its pools.
func copied(d definition.Definition) definition.Definition {
	d.Pools = slices.Clone(d.Pools)
	return d
}

// unchanged checks that a deployment of the definition d, made from the example files, changes nothing.
func (l *lab) unchanged(d definition.Definition, files ...string) {
	l.t.Helper()
	p := example(l.t, nil, files...)
	p.Definition = d
	if r, err := l.Deploy(l.t.Context(), p, l.save); err != nil || !r.Unchanged {
		l.t.Errorf("a deployment of the same definition: %v %+v", err, r)
	}
}

func (l *lab) change(d definition.Definition) {
	l.t.Helper()
	if err := l.Change(l.t.Context(), record.Change{Definition: d}); err != nil {
		l.t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
	}
}

// saysSteps checks that lines name each step of a change by its number, until the last one.
func saysSteps(t *testing.T, said []string) {
	t.Helper()
	last, all, estimated := 0, 0, 0
	for _, line := range said {
		_, count, isStep := strings.Cut(line, " (step ")
		if !isStep {
			continue
		}
		before := last
		if _, err := fmt.Sscanf(count, "%d of %d", &last, &all); err != nil || last != before+1 {
			t.Errorf("%q after step %d: %v", line, before, err)
		}
		if strings.Contains(count, " left)") {
			estimated++
		}
	}
	if last == 0 || last != all || estimated == 0 || estimated == all {
		t.Errorf("the last step was %d of %d, and the rest was estimated %d times\n%s", last, all, estimated, strings.Join(said, "\n"))
	}
}

// TestUpgrade checks scenario 33: all members and nodes get the version, and nothing of the old ones is left.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "ha.yaml", "team-b.yaml")
		before := len(s.nodes())
		dns := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "kube-system"}}
		dns.Spec.Template.Spec.Containers = []corev1.Container{{Name: "coredns", Image: "registry.k8s.io/coredns/coredns:v1.14.2"}}
		deployments := s.client.AppsV1().Deployments("kube-system")
		if _, err := deployments.Create(t.Context(), dns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		now := copied(d)
		now.Cluster.Spec.Kubernetes.Version = "1.37.1"
		l.change(now)
		dns, err := deployments.Get(t.Context(), "coredns", metav1.GetOptions{})
		if err != nil || dns.Spec.Template.Spec.Containers[0].Image != "registry.k8s.io/coredns/coredns:v1.14.6" {
			t.Errorf("CoreDNS: %v %v", err, dns.Spec.Template.Spec.Containers)
		}
		for _, name := range s.nodes() {
			if s.versions[name] != "1.37.1" {
				t.Errorf("node %s has %s", name, s.versions[name])
			}
		}
		if len(s.nodes()) != before || s.saved != 1 {
			t.Errorf("%d nodes, want %d; %d backups\n%s", len(s.nodes()), before, s.saved, strings.Join(l.said, "\n"))
		}
		saysSteps(t, l.said)
		members, _ := s.Members(t.Context())
		var want []inspect.EtcdMember
		for _, name := range []string{"prod-cp-0-1", "prod-cp-1-1", "prod-cp-2-1"} {
			want = append(want, inspect.EtcdMember{Name: name, Healthy: true})
		}
		for i := range members {
			members[i].Leader = false
		}
		if diff := cmp.Diff(want, members); diff != "" {
			t.Error(diff)
		}
		if left := l.named("cp-0-", "prod-cp-0/", "prod-cp-0-nic", "prod-cp-1-etcd"); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
		status, err := l.Status(t.Context(), s.names)
		if err != nil || status.Version != "1.37.1" {
			t.Errorf("status: %v %+v", err, status)
		}
		l.requests()
		r, err := l.Deploy(t.Context(), example(t, func(d *definition.Definition) { *d = now }, "ha.yaml"), l.save)
		if err != nil || !r.Unchanged {
			t.Errorf("a deployment after the upgrade: %v %+v", err, r)
		}
	})
}

// TestRevised checks scenario 37: changed sizes, labels and files replace only the machines that they are for, in pools of
// each kind. A deployment refuses such changes, and names the command that can make them.
func TestRevised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, func(d *definition.Definition) { d.Cluster.Spec.ControlPlane.Replicas = 1 }, "ha.yaml", "team-b.yaml")
		before := s.nodes()
		now := copied(d)
		db, general := &now.Pools[0].Spec, &now.Pools[1].Spec // standalone machines, and a scale set
		now.Cluster.Spec.ControlPlane.VMSize = "Standard_D8s_v5"
		db.VMSize = "Standard_D2s_v5"
		general.Labels, general.OSDisk.SizeGiB, general.Upgrade.MaxSurge = map[string]string{"tier": "small"}, 64, "100%"
		again := func() error {
			_, err := l.Deploy(t.Context(), example(t, func(d *definition.Definition) { *d = now }, "ha.yaml"), l.save)
			return err
		}
		err := again()
		for _, want := range []string{"and kaz cluster upgrade can", `spec.controlPlane.vmSize: "Standard_D4s_v5" -> "Standard_D8s_v5"`,
			"NodePool general: spec.labels"} {
			if !errors.Is(err, deploy.ErrFixed) || !strings.Contains(err.Error(), want) {
				t.Errorf("a deployment: got %v, want %s", err, want)
			}
		}
		l.change(now)
		for name, want := range map[string]string{"virtualMachines/prod-cp-0-1": "Standard_D8s_v5",
			"virtualMachines/prod-db-0": "Standard_D2s_v5", "virtualMachineScaleSets/prod-general": `"diskSizeGB":64`} {
			if doc, err := l.client.Get(t.Context(), s.names.Group()+"/providers/Microsoft.Compute/"+azure.ID(name)); err != nil ||
				!strings.Contains(string(doc), want) {
				t.Errorf("%s: %v\n%s\nwant %s", name, err, doc, want)
			}
		}
		if err := again(); err != nil {
			t.Errorf("a deployment after the change: %v", err)
		}
		for round := range 2 {
			for _, name := range s.nodes() {
				kept := strings.HasPrefix(name, "prod-db-") || round == 1 && s.member(name)
				if slices.Contains(before, name) != kept {
					t.Errorf("round %d: %v became %v\n%s", round, before, s.nodes(), strings.Join(l.said, "\n"))
					break
				}
			}
			if len(s.nodes()) != len(before) {
				t.Errorf("round %d: nodes %v, want %d", round, s.nodes(), len(before))
			}
			if round == 1 {
				return
			}
			before = s.nodes()
			now.Extensions = []definition.Extension{{Metadata: definition.Metadata{Name: "motd"},
				Spec: definition.ExtensionSpec{AppliesTo: definition.AppliesTo{Pools: []string{"general"}}, Commands: []string{"true"}}}}
			want := "pool general gets other files or commands of extensions"
			if err := again(); !errors.Is(err, deploy.ErrFixed) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("a deployment: got %v, want %s", err, want)
			}
			l.change(now)
		}
	})
}

// TestInternal checks scenario 15: the API server is internal, and a change is started outside of its network. The change
// says so, and writes nothing.
func TestInternal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, func(d *definition.Definition) { d.Cluster.Spec.Network.APIServer.Access = "Internal" }, "dev.yaml")
		s.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, &url.Error{Op: "Get", URL: "https://api.dev.kaz.internal:6443/api/v1/nodes", Err: os.ErrDeadlineExceeded}
		})
		now := copied(d)
		now.Pools[0].Spec.Replicas++
		err := l.Change(t.Context(), record.Change{Definition: now})
		want := "https://api.dev.kaz.internal:6443/api/v1/nodes is reached from its network only"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if writes, _ := l.requests(); len(writes) > 0 {
			t.Errorf("wrote %v", writes)
		}
	})
}

// TestLimits checks scenario 30: changed limits of an autoscaled pool reach its scale set, and a pool that is no longer
// autoscaled has no limits. Nothing else of the scale set changes.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, func(d *definition.Definition) {
			d.Pools[0].Spec.Replicas, d.Pools[0].Spec.Autoscaling = 2, &definition.Autoscaling{Min: 1, Max: 3}
		}, "dev.yaml")
		set := s.names.Group().Resource(record.ScaleSetType, "dev-general")
		for _, limits := range []*definition.Autoscaling{{Min: 2, Max: 9}, nil} {
			now := copied(d)
			now.Pools[0].Spec.Autoscaling = limits
			if _, err := l.Deploy(t.Context(), example(t, func(d *definition.Definition) { *d = now }, "dev.yaml"), l.save); err != nil {
				t.Fatal(err)
			}
			state, err := l.Read(t.Context(), s.names)
			if err != nil {
				t.Fatal(err)
			}
			tags := state.Resources[set.Key()].Tags
			want := [2]string{}
			if limits != nil {
				want = [2]string{strconv.Itoa(limits.Min), strconv.Itoa(limits.Max)}
			}
			if got := [2]string{tags["min"], tags["max"]}; got != want || tags[naming.PoolTag] != "general" || len(s.nodes()) != 3 {
				t.Errorf("limits %v, want %v; tags %v, nodes %v", got, want, tags, s.nodes())
			}
		}
	})
}

// guests run what run commands send to machines of a simulation: an upgrade of the control plane.
type guests struct {
	*simulation
	next http.RoundTripper
	// fails is what the next machine reports instead, "" for success.
	fails string
	ran   []string
}

// RoundTrip implements http.RoundTripper.
func (g *guests) RoundTrip(r *http.Request) (*http.Response, error) {
	machine, isCommand := strings.CutSuffix(r.URL.Path, "/runCommand")
	if !isCommand {
		return g.next.RoundTrip(r)
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	machine = azure.ID(machine).Name()
	report := `{"failed": false, "phase": "complete", "message": ""}`
	if g.fails != "" {
		report, g.fails = g.fails, ""
	} else {
		const setting = "KAZ_VERSION="
		version, _, _ := strings.Cut(string(text[bytes.LastIndex(text, []byte(setting))+len(setting):]), "/")
		g.versions[machine] = version
		g.ran = append(g.ran, machine+" "+version)
	}
	answer, err := json.Marshal(map[string]any{"value": []any{map[string]any{"message": "Enable succeeded: \n[stdout]\nKAZ-STATUS " + report +
		"\n\n[stderr]\n"}}})
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
	return w.Result(), err
}

// TestInPlace checks scenario 33: members get another version on the same machines, one after the other. If the upgrade of a
// member fails, the member is not removed.
func TestInPlace(t *testing.T) {
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, d := deployed(t, func(d *definition.Definition) {
					d.Cluster.Spec.ControlPlane.Replicas, d.Cluster.Spec.ControlPlane.Upgrade.Strategy = members, "InPlace"
				}, "dev.yaml")
				var before []string
				for _, name := range s.nodes() {
					if s.member(name) {
						before = append(before, name)
					}
				}
				way := &guests{simulation: s, next: l.azure.Transport(), fails: `{"failed": true, "phase": "upgrade", "message": "no space left"}`}
				l.connect(way)
				s.connect(l.Engine)
				now := copied(d)
				now.Cluster.Spec.Kubernetes.Version = "1.37.1"
				if err := l.Change(t.Context(), record.Change{Definition: now}); err == nil || !strings.Contains(err.Error(), "phase upgrade: no space left") {
					t.Fatalf("an upgrade that fails: %v", err)
				}
				if found, err := l.Resume(t.Context(), s.names); !found || err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
				}
				var after []string
				for _, name := range s.nodes() {
					if s.versions[name] != "1.37.1" || s.cordoned[name] {
						t.Errorf("node %s has %s, cordoned %v", name, s.versions[name], s.cordoned[name])
					}
					if s.member(name) {
						after = append(after, name)
					}
				}
				if diff := cmp.Diff(before, after); diff != "" || len(way.ran) != members {
					t.Errorf("%s\nran %q", diff, way.ran)
				}
				for _, name := range after {
					nic, err := l.NIC(t.Context(), s.names, name)
					if err != nil || !nic.Balanced() {
						t.Errorf("the load balancer does not know %s: %v", name, err)
					}
				}
			})
		})
	}
}

// TestRemovedAPIs checks that an upgrade begins only if clients use no API that the version no longer has, or if that is allowed.
func TestRemovedAPIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		s.metrics = "# TYPE apiserver_requested_deprecated_apis gauge\n" +
			`apiserver_requested_deprecated_apis{group="example.com",removed_release="1.37",resource="widgets",version="v1"} 1` + "\n"
		now := copied(d)
		now.Cluster.Spec.Kubernetes.Version = "1.37.1"
		for _, try := range []func() error{
			func() error { return l.Change(t.Context(), record.Change{Definition: now}) },
			func() error { _, err := l.Steps(t.Context(), record.Change{Definition: now}); return err },
		} {
			if err := try(); err == nil || !strings.HasSuffix(err.Error(), "--allow-removed-apis:\nexample.com/v1 widgets (removed in 1.37)") {
				t.Errorf("got %v", err)
			}
		}
		if writes, _ := l.requests(); len(writes) > 0 {
			t.Errorf("wrote %v", writes)
		}
		if err := l.Change(t.Context(), record.Change{Definition: now, AllowRemoved: true}); err != nil {
			t.Error(err)
		}
	})
}

// TestManifests checks that an upgrade brings other images of add-ons and other manifests of Extensions into a cluster, and replaces no
// machine for them.
func TestManifests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		before := s.nodes()
		now := copied(d)
		now.Cluster.Spec.Addons.Tag = "v9"
		now.Extensions = []definition.Extension{{Metadata: definition.Metadata{Name: "motd"}, Spec: definition.ExtensionSpec{
			Manifests: []string{"{apiVersion: v1, kind: ConfigMap, metadata: {name: motd}, data: {text: hello}}"}}}}
		_, err := l.Deploy(t.Context(), example(t, func(d *definition.Definition) { *d = now }, "dev.yaml"), l.save)
		if want := `and kaz cluster upgrade can:
Cluster dev: spec.addons.tag: "devel" -> "v9" (by an upgrade)`; !errors.Is(err, deploy.ErrFixed) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("a deployment: got %v\nwant %s", err, want)
		}
		l.change(now)
		done := s.objects.Done()
		for _, want := range []string{"apply deployments kube-system/cloud-controller-manager", "apply configmaps default/motd"} {
			if !slices.Contains(done, want) {
				t.Errorf("%q has no %s", done, want)
			}
		}
		now.Extensions = nil
		l.change(now)
		if done := s.objects.Done(); done[len(done)-1] != "delete configmaps default/motd" {
			t.Errorf("without the Extension: %q", done)
		}
		l.change(now)
		if done := s.objects.Done(); len(done) > 0 {
			t.Errorf("without a change: %q", done)
		}
		if diff := cmp.Diff(before, s.nodes()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestNewerManifests checks that an upgrade applies the add-ons of a newer kaz although the definition is the same. It also
// deletes the objects that these add-ons no longer have. Other changes and deployments leave the add-ons as they are.
func TestNewerManifests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		r := record.Change{Definition: d, Manifests: true}
		upgrade := func(want ...string) {
			t.Helper()
			steps, err := l.Steps(t.Context(), r)
			var texts []string
			for _, step := range steps {
				texts = append(texts, step.String())
			}
			if diff := cmp.Diff(want, texts); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
			if err := l.Change(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			done := s.objects.Done()
			if len(want) > 0 != slices.Contains(done, "apply deployments kube-system/cloud-controller-manager") {
				t.Errorf("want %q, did %q", want, done)
			}
			if len(want) > 1 != slices.Contains(done, "delete daemonsets kube-system/former") {
				t.Errorf("want %q, did %q", want, done)
			}
		}
		l.change(d) // and a cluster of an older kaz, which does not say what it has
		if done := s.objects.Done(); len(done) > 0 {
			t.Errorf("a change that is no upgrade: %q", done)
		}
		upgrade("apply the manifests of add-ons and extensions")
		upgrade()
		older, err := boot.Inventory([]boot.Manifest{
			{Text: "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: former, namespace: kube-system}}"}})
		if err != nil {
			t.Fatal(err)
		}
		maps := s.client.CoreV1().ConfigMaps("kube-system")
		m, err := maps.Get(t.Context(), boot.InventoryName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Data, _, _ = unstructured.NestedStringMap(older.Object, "data")
		if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if r, err := l.Deploy(t.Context(), example(t, nil, "dev.yaml"), l.save); err != nil || !r.Unchanged {
			t.Errorf("a deployment: %v %v", r, err)
		}
		upgrade("apply the manifests of add-ons and extensions",
			"delete what no manifest has any more: DaemonSet kube-system/former")
		upgrade()
	})
}

// TestFlags checks scenario 34: an upgrade applies changed flags of the control plane. It does so with the same version, and
// together with another version, so that a flag which that version no longer has can be removed.
func TestFlags(t *testing.T) {
	for _, version := range []string{"1.37.1", "1.36.3"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, d := deployed(t, func(d *definition.Definition) {
					d.Cluster.Spec.Kubernetes.Scheduler.ExtraArgs = map[string]string{"feature-gates": "APIServerTracing=true"}
				}, "dev.yaml")
				now := copied(d)
				now.Cluster.Spec.Kubernetes.Scheduler.ExtraArgs = map[string]string{"v": "4"}
				now.Cluster.Spec.Kubernetes.APIServer.CertSANs = []string{"api.example.com"}
				now.Cluster.Spec.Kubernetes.Version = version
				l.change(now)
				m, err := s.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				text := m.Data["ClusterConfiguration"]
				if strings.Contains(text, "APIServerTracing") || !strings.Contains(text, "- name: v\n    value: \"4\"") ||
					!strings.Contains(text, "- api.example.com\n") || !strings.Contains(text, "kubernetesVersion: v"+version) {
					t.Error(text)
				}
				if members, _ := s.Members(t.Context()); len(members) != 1 || members[0].Name != "dev-cp-0-1" {
					t.Errorf("members %v", members)
				}
			})
		})
	}
}

// TestNoSpace checks that the control plane does not change while etcd takes no writes.
func TestNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		s.full = true
		now := copied(d)
		now.Cluster.Spec.Kubernetes.Version = "1.37.1"
		err := l.Change(t.Context(), record.Change{Definition: now})
		if err == nil || !strings.Contains(err.Error(), "the database of etcd at dev-cp-0 has reached its quota") {
			t.Errorf("got %v", err)
		}
		if writes, _ := l.requests(); len(writes) > 0 {
			t.Errorf("wrote %v", writes)
		}
	})
}

// named are resources of the group with a name that ends so.
func (l *lab) named(_ string, ends ...string) []string {
	var all []string
	for _, id := range l.all() {
		for _, end := range ends {
			if strings.HasSuffix(id, "/"+strings.TrimSuffix(end, "/")) {
				all = append(all, id)
			}
		}
	}
	return all
}

// all are the ids of the resources of the cluster with their versions.
func (l *lab) all() []string {
	l.t.Helper()
	resources, err := azure.ListAs[record.Resource](context.Background(), l.client,
		azure.Query{Scope: azure.SubscriptionID(core.DefaultSubscription), Type: "Microsoft.Resources/resources"})
	if err != nil {
		l.t.Fatal(err)
	}
	var all []string
	for _, r := range resources {
		all = append(all, string(r.ID))
	}
	slices.Sort(all)
	return all
}

// TestScale checks scenarios 26 and 31: pools of each kind grow, shrink, become empty and go away, and no pod is lost.
func TestScale(t *testing.T) {
	for _, backend := range []string{"VMSSUniform", "VMSSFlexible", "StandaloneVM"} {
		t.Run(backend, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, d := deployed(t, func(d *definition.Definition) {
					d.Pools[0].Spec.Backend, d.Pools[0].Spec.Replicas = backend, 2
				}, "dev.yaml")
				pods := len(s.pods)
				for _, count := range []int{4, 1, 2} {
					now := copied(d)
					now.Pools[0].Spec.Replicas = count
					l.change(now)
					if got := len(s.nodes()) - 1; got != count || len(s.pods) != pods {
						t.Fatalf("%d nodes, want %d; %d pods, want %d\n%s", got, count, len(s.pods), pods, strings.Join(l.said, "\n"))
					}
				}
				now := copied(d)
				now.Pools = nil
				l.change(now)
				if got := len(s.nodes()); got != 1 || len(l.named("", "dev-general")) > 0 {
					t.Errorf("the pool is there: %d nodes\n%s", got, strings.Join(l.said, "\n"))
				}
				if s.saved > 0 {
					t.Error("etcd was saved for a change of pools")
				}
			})
		})
	}
}

// trip is a function as an http.RoundTripper.
type trip func(r *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestEmptyNodes checks that nodes without pods, too, leave load balancers before their machines go: they may get requests for the pods
// of other nodes. Nodes that go together leave together. A wait that is interrupted begins anew.
func TestEmptyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 4 }, "dev.yaml")
		s.pods = nil
		var deletions []time.Duration
		began := time.Now()
		l.connect(trip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/delete") {
				deletions = append(deletions, time.Since(began))
				if len(deletions) == 1 && len(s.excluded) != 3 {
					t.Errorf("load balancers have left out %v", s.excluded)
				}
			}
			return l.azure.Transport().RoundTrip(r)
		}))
		s.connect(l.Engine)
		now := copied(d)
		now.Pools[0].Spec.Replicas = 1
		interrupted, cancel := context.WithCancel(t.Context())
		s.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			if len(s.excluded) > 0 {
				time.AfterFunc(step.Balancing/2, cancel)
			}
			return false, nil, nil
		})
		if err := l.Change(interrupted, record.Change{Definition: now}); err == nil || len(s.excluded) != 3 {
			t.Errorf("the wait was not interrupted: %v %v", err, s.excluded)
		}
		began = time.Now()
		if found, err := l.Resume(t.Context(), s.names); !found || err != nil {
			t.Fatal(found, err)
		}
		if len(deletions) != 3 || deletions[0] < step.Balancing {
			t.Errorf("deleted after %v\n%s", deletions, strings.Join(l.said, "\n"))
		}
	})
}

// TestBlockedDrain checks scenario 27: the error names what blocks a drain, and the node takes pods again.
func TestBlockedDrain(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*simulation, string)
		want    string
	}{
		"budget": {func(s *simulation, pod string) { s.blocked[pod] = true }, "allows no disruption"},
		"bare":   {func(s *simulation, pod string) { s.bare[pod] = true }, "has no controller"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, d := deployed(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 2 }, "dev.yaml")
				for pod := range s.pods {
					test.prepare(s, pod)
				}
				now := copied(d)
				now.Pools[0].Spec.Replicas = 1
				err := l.Change(t.Context(), record.Change{Definition: now})
				if _, ok := errors.AsType[*workload.BlockedError](err); !ok || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v", err)
				}
				for name, cordoned := range s.cordoned {
					if cordoned {
						t.Errorf("node %s takes no pods", name)
					}
				}
				for name, why := range s.excluded {
					if why != "" {
						t.Errorf("node %s gets no requests", name)
					}
				}
				if len(s.nodes()) != 3 {
					t.Error("a machine is gone")
				}
				clear(s.blocked)
				clear(s.bare)
				if found, err := l.Resume(t.Context(), s.names); !found || err != nil || len(s.nodes()) != 2 {
					t.Errorf("resume: %v %v", found, err)
				}
			})
		})
	}
}

// TestNoRoom checks scenario 28: if Azure has no room, the capacity becomes the number of existing machines.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		before := len(s.nodes())
		faults := core.Fault{Method: "PATCH", Type: record.ScaleSetType, Times: 1, Fault: "operation", Code: "AllocationFailed", Message: "no room"}
		if err := l.azure.SetFaults([]core.Fault{faults}); err != nil {
			t.Fatal(err)
		}
		now := copied(d)
		now.Pools[0].Spec.Replicas += 3
		if err := l.Change(t.Context(), record.Change{Definition: now}); err == nil || !strings.Contains(err.Error(), "AllocationFailed") {
			t.Fatalf("got %v", err)
		}
		if !slices.ContainsFunc(l.said, func(s string) bool { return strings.Contains(s, "stays at") }) {
			t.Errorf("said %q", l.said)
		}
		if found, err := l.Resume(t.Context(), s.names); !found || err != nil || len(s.nodes()) != before+3 {
			t.Errorf("resume: %v %v, %d nodes", found, err, len(s.nodes()))
		}
	})
}

// TestRecovery checks scenario 11: after the death of the leader the other members of etcd do not answer for a moment. A
// repair begins nevertheless. If they never answer, the change fails with the reason.
func TestRecovery(t *testing.T) {
	const short, long = 30 * time.Second, time.Hour
	refused := errors.New("etcd of cp-2: connection refused")
	for name, test := range map[string]struct {
		after  time.Duration
		silent error
		want   string
		waits  bool // until the error
	}{
		"no majority for a moment": {short, nil, "", true},
		"no majority":              {long, nil, "0 of 3 members of etcd answer, which is no majority", true},
		"silent for a moment":      {short, refused, "", true},
		"silent":                   {long, refused, "members of etcd: etcd of cp-2: connection refused", true},
		"no certificate":           {long, fmt.Errorf("%w: 403", inspect.ErrEtcdAccess), "no certificate for etcd: 403", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, d := deployed(t, nil, "ha.yaml")
				began := time.Now()
				s.answers, s.silent = began.Add(test.after), test.silent
				err := l.Change(t.Context(), record.Change{Definition: d, Replace: []string{"cp-1"}})
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %s\n%s", err, test.want, strings.Join(l.said, "\n"))
				}
				if took := time.Since(began); test.waits != (took > time.Minute) && test.want != "" {
					t.Errorf("the error after %s, want that it waits: %v", took, test.waits)
				}
			})
		})
	}
}

// TestMembers checks that members are added and removed one by one, and that a broken one is replaced.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		for _, count := range []int{3, 5, 3, 1} {
			now := copied(d)
			now.Cluster.Spec.ControlPlane.Replicas = count
			l.change(now)
			if members, _ := s.Members(t.Context()); len(members) != count {
				t.Fatalf("%d members, want %d", len(members), count)
			}
		}
		now := copied(d)
		now.Cluster.Spec.ControlPlane.Replicas = 3
		l.change(now)
		if err := l.Change(t.Context(), record.Change{Definition: now, Replace: []string{"cp-1"}}); err != nil {
			t.Fatal(err)
		}
		members, _ := s.Members(t.Context())
		var names []string
		for _, m := range members {
			names = append(names, m.Name)
		}
		if diff := cmp.Diff([]string{"dev-cp-0", "dev-cp-1-1", "dev-cp-2"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

// TestNeverJoins checks scenario 36: a member that does not join is removed, and the cluster is as before.
func TestNeverJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		before := l.all()
		s.absent = func(machine string) bool { return strings.HasSuffix(machine, "-cp-0-1") }
		now := copied(d)
		now.Cluster.Spec.Kubernetes.Version = "1.37.0"
		if err := l.Change(t.Context(), record.Change{Definition: now}); err == nil || !strings.Contains(err.Error(), "not ready after 1m0s: dev-cp-0-1") {
			t.Fatalf("got %v", err)
		}
		if diff := cmp.Diff(before, l.all()); diff != "" {
			t.Error(diff)
		}
		if members, _ := s.Members(t.Context()); len(members) != 1 || members[0].Name != "dev-cp-0" {
			t.Errorf("members %v", members)
		}
	})
}

// TestBadNode checks scenario 37: an upgrade of a pool stops if its first new node does not become ready. The new node is
// removed, no old node goes, and the scale set has its previous model. Later the upgrade goes on.
func TestBadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 2 }, "dev.yaml")
		var old []string
		for _, name := range s.nodes() {
			if !s.member(name) {
				old = append(old, name)
			}
		}
		set := s.names.Group().Resource(record.ScaleSetType, "dev-general")
		before := l.model(set)
		way := &patches{next: l.azure.Transport()}
		l.connect(way)
		s.connect(l.Engine)
		s.absent = func(machine string) bool { return !s.member(machine) && !slices.Contains(old, machine) }
		now := copied(d)
		now.Cluster.Spec.Kubernetes.Version = "1.37.1"
		err := l.Change(t.Context(), record.Change{Definition: now})
		for _, want := range []string{"pool general: new nodes of version 1.37.1 are not ready, and are taken away: dev-general",
			"new nodes are made as before again, with version 1.36.3: end the change with kaz cluster abort", "not ready after 1m0s"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		}
		var left []string
		for _, name := range s.nodes() {
			if !s.member(name) && s.versions[name] == "1.36.3" && !s.cordoned[name] {
				left = append(left, name)
			}
		}
		if diff := cmp.Diff(old, left); diff != "" {
			t.Error(diff)
		}
		if after := l.model(set); after != before {
			t.Errorf("the model is\n%.300s\nwant\n%.300s", after, before)
		}
		_, r := step.ScaleSet(example(t, func(was *definition.Definition) { *was = d }, "dev.yaml"), "general")
		profile := []string{"properties", "virtualMachineProfile", "osProfile", "customData"}
		want, _, _ := unstructured.NestedFieldNoCopy(r.Body, profile...)
		if got, _, err := unstructured.NestedFieldNoCopy(way.last, profile...); err != nil || want == nil || got != want {
			t.Error("new machines do not get the boot files of before")
		}
		s.absent = func(string) bool { return false }
		if found, err := l.Resume(t.Context(), s.names); !found || err != nil {
			t.Fatalf("resume: %v %v", found, err)
		}
		for _, name := range s.nodes() {
			if s.versions[name] != "1.37.1" {
				t.Errorf("node %s has %s", name, s.versions[name])
			}
		}
	})
}

// patches notes the last change of a part of a resource.
type patches struct {
	next http.RoundTripper
	last map[string]any
}

// RoundTrip implements http.RoundTripper.
func (p *patches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		p.last = nil
		if err := json.Unmarshal(text, &p.last); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
	}
	return p.next.RoundTrip(r)
}

// model is what a scale set gives new machines, with its number of machines and its version.
func (l *lab) model(set azure.ID) string {
	l.t.Helper()
	doc, err := l.client.Get(l.t.Context(), set)
	if err != nil {
		l.t.Fatal(err)
	}
	var one struct {
		SKU        struct{ Capacity int }
		Tags       map[string]string
		Properties struct{ VirtualMachineProfile map[string]any }
	}
	if err := json.Unmarshal(doc, &one); err != nil {
		l.t.Fatal(err)
	}
	return fmt.Sprint(one.SKU.Capacity, one.Tags[naming.VersionTag], one.Properties.VirtualMachineProfile)
}

// TestScaleKaz checks that the record of a change is no unit, also of a cluster whose name begins the names of all deployments.
func TestScaleKaz(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, d := deployed(t, func(d *definition.Definition) { d.Cluster.Metadata.Name = "kaz" }, "dev.yaml")
		now := copied(d)
		now.Pools[0].Spec.Replicas = 2
		l.change(now)
		if said := strings.Join(l.said, "\n"); strings.Contains(said, "not in the definition") {
			t.Error(said)
		}
	})
}

// TestOpenChange checks that a second change waits for the first.
func TestOpenChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		for pod := range s.pods {
			s.blocked[pod] = true
		}
		now := copied(d)
		now.Cluster.Spec.Kubernetes.Version = "1.36.4"
		if err := l.Change(t.Context(), record.Change{Definition: now}); err == nil {
			t.Fatal("the blocked upgrade ended")
		}
		other := copied(d)
		other.Pools[0].Spec.Replicas = 7
		if err := l.Change(t.Context(), record.Change{Definition: other}); !errors.Is(err, record.ErrOpen) {
			t.Errorf("got %v", err)
		}
		if err := l.Close(t.Context(), s.names); err != nil {
			t.Error(err)
		}
		if r, err := l.Open(t.Context(), s.names); r != nil || err != nil {
			t.Errorf("still open: %v %v", r, err)
		}
	})
}

// killed is a transport that kills an engine: from a write on nothing reaches Azure. If late is true, that write reaches
// Azure, and its answer is lost.
type killed struct {
	next  http.RoundTripper
	left  int
	late  bool
	spent bool
}

// RoundTrip implements http.RoundTripper.
func (k *killed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.spent {
		return nil, io.ErrUnexpectedEOF
	}
	if r.Method != http.MethodGet && k.dies() {
		if k.late {
			if answer, err := k.next.RoundTrip(r); err == nil {
				_ = answer.Body.Close()
			}
		}
		return nil, io.ErrUnexpectedEOF
	}
	return k.next.RoundTrip(r)
}

// dies reports whether the engine dies at this write.
func (k *killed) dies() bool {
	k.left--
	k.spent = k.spent || k.left < 0
	return k.spent
}

// stride is the number of writes between two at which a change is killed. Short mode tries a third of the writes.
func stride() int {
	if testing.Short() {
		return 3
	}
	return 1
}

// TestKilled checks scenarios 24 and 35: a change that is killed before or after any write can be resumed from another
// machine. It reaches the same end, and leaves nothing over.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want []string
		for kill := 0; ; kill += stride() {
			l, s, d := deployed(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 2 }, "dev.yaml")
			now := copied(d)
			now.Cluster.Spec.Kubernetes.Version = "1.37.1"
			now.Pools[0].Spec.Replicas = 1
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill, late: kill%2 == 1}
			if kill == 0 {
				k.left = 10000
			}
			l.connect(k)
			s.connect(l.Engine)
			victim := l.Engine
			l.connect(healthy)
			s.connect(l.Engine)
			err := victim.Change(t.Context(), record.Change{Definition: now})
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
			if err != nil {
				t.Fatal(err)
			}
			if open == nil {
				err = l.Change(t.Context(), record.Change{Definition: now}) // it died before it was recorded, or when all was done
			} else {
				_, err = l.Resume(t.Context(), s.names)
			}
			if err != nil {
				t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
			}
			if diff := cmp.Diff(shape(want), shape(l.all())); diff != "" {
				t.Fatalf("died at %d:\n%s", kill, diff)
			}
		}
	})
}

// shape are ids without the numbers of the machines of scale sets, which depend on how many were made.
func shape(ids []string) []string {
	var all []string
	for _, id := range ids {
		if i := strings.Index(id, "dev-general_"); i >= 0 {
			id = id[:i]
		}
		all = append(all, id)
	}
	return all
}
