package nodemanager_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/imds"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/identity"
	"kaz/internal/nodemanager"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// cluster is a local Azure with machines and their metadata services, and a Kubernetes with a new Node
// for each machine.
type cluster struct {
	*testkit.Azure
	client   *fake.Clientset
	services *services
	events   *record.FakeRecorder
	machines []azure.Resource[compute.Instance]
	config   nodemanager.Config
}

func newCluster(t *testing.T, count int) *cluster {
	t.Helper()
	w := &cluster{Azure: testkit.NewAzure(t, core.Options{}, count), client: fake.NewClientset(), events: record.NewFakeRecorder(100)}
	w.services = &services{plane: &identity.Service{Host: func(*http.Request) bool { return true }, World: func(f func(behaviour.World)) { w.Look(f) }}}
	w.machines = testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances)
	w.config = nodemanager.Config{Client: w.client, Period: period, Events: w.events}
	return w
}

// services are the metadata services of the machines, in process.
type services struct {
	plane *identity.Service

	mu    sync.Mutex
	asked []string
	// fault may replace a response.
	fault func(path string) (int, string)
}

func (s *services) set(fault func(path string) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// questions returns the documents read since the last call.
func (s *services) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *services) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	fault := s.fault
	s.asked = append(s.asked, r.URL.Path[strings.Index(r.URL.Path, "/metadata/"):])
	s.mu.Unlock()
	status, body := 0, ""
	if fault != nil {
		status, body = fault(r.URL.Path)
	}
	if status == hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if status != 0 {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	answer := httptest.NewRecorder()
	s.plane.Handler(r.URL.Path).ServeHTTP(answer, r)
	return &http.Response{StatusCode: answer.Code, Header: answer.Header(), Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())),
		Request: r}, nil
}

// hang is the status of a service that does not respond.
const hang = -1

// metadata returns a client of a machine's metadata service.
func (w *cluster) metadata(t *testing.T, machine azure.ID) *imds.Client {
	t.Helper()
	c, err := imds.New(imds.Config{Endpoint: "http://azure/vm" + string(machine), Transport: w.services})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// register creates the new Node of a machine, like a kubelet.
func (w *cluster) register(t *testing.T, machine azure.Resource[compute.Instance], change ...func(*corev1.Node)) string {
	t.Helper()
	name := nodes.NodeName(machine)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), Labels: map[string]string{"kubernetes.io/os": "linux"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}}},
	}
	for _, f := range change {
		f(node)
	}
	if _, err := w.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

func (w *cluster) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// start manages the members until the test ends, and waits until nothing more happens.
func (w *cluster) start(t *testing.T, members ...nodemanager.Member) (changes chan<- []nodemanager.Member, stop func()) {
	t.Helper()
	group, err := nodemanager.New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, list := make(chan error, 1), make(chan []nodemanager.Member)
	go func() { ended <- group.Run(ctx, members, list) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	pass(listed)
	return list, stop
}

// pass advances the time and waits for the effects.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// listed is how long the informer takes at most to sync.
const listed = 200 * time.Millisecond

// of returns a member that reads its machine's metadata service.
func (w *cluster) of(t *testing.T, machine azure.Resource[compute.Instance]) nodemanager.Member {
	t.Helper()
	return nodemanager.Member{Node: nodes.NodeName(machine),
		Source: nodemanager.FromMetadata{Service: w.metadata(t, machine.ID), Named: true}}
}

// eventTexts returns the Events since the last call.
func (w *cluster) eventTexts() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// writes returns the writes to Kubernetes since the last call, in order.
func (w *cluster) writes() []string {
	var all []string
	for _, a := range w.client.Actions() {
		if slices.Contains([]string{"update", "patch"}, a.GetVerb()) {
			what := a.GetVerb()
			if a.GetSubresource() != "" {
				what += " " + a.GetSubresource()
			}
			all = append(all, what)
		}
	}
	w.client.ClearActions()
	return all
}

// refuse fails the first requests of a verb.
func (w *cluster) refuse(verb string, times int, err error) {
	w.client.PrependReactor(verb, "nodes", func(clienttesting.Action) (bool, runtimeObject, error) {
		if times--; times < 0 {
			return false, nil, nil
		}
		return true, nil, err
	})
}

func isNew(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "node.cloudprovider.kubernetes.io/uninitialized"
	})
}

func texts(all []corev1.NodeAddress) []string {
	var list []string
	for _, a := range all {
		list = append(list, string(a.Type)+" "+a.Address)
	}
	return list
}
