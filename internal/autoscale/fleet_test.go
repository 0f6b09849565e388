package autoscale_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/autoscale"
	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/core/document"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is a local Azure with scale sets, and a provider with the flags of cluster-autoscaler. It lives in a synctest
// bubble.
type fleet struct {
	*testkit.Azure
	*autoscale.Server
	t      testing.TB
	config autoscale.Config
	reader hidden // in place of Azure's own, if it is given
	stop   func()
}

// pool is the scale set of most tests.
const pool = "pool"

// newFleet returns a world with a Uniform scale set of n machines. Values of flags begin with "label" for
// --node-group-auto-discovery; others are for --nodes.
func newFleet(t *testing.T, o core.Options, n int, flags ...string) *fleet {
	t.Helper()
	w := &fleet{Azure: testkit.NewAzure(t, o, 0), t: t}
	w.AddScaleSet(pool, testkit.Uniform, n)
	w.start(flags...)
	return w
}

// start starts a provider that knows nothing, as a new process.
func (w *fleet) start(flags ...string) {
	w.t.Helper()
	selection, err := selectionOf(flags...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.config.Azure = fresh{w.Client.Fresh(), w.Client}
	if w.reader.Reader != nil {
		w.config.Azure = w.reader
	}
	w.config.ResourceGroup, w.config.Location = testkit.Group, testkit.Location
	w.config.Selection, w.config.Log = selection, slog.New(slog.DiscardHandler)
	provider := autoscale.New(w.config)
	w.Server = &autoscale.Server{Provider: provider}
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		provider.Run(ctx)
	}()
	w.stop = func() {
		stop()
		<-done
		provider.Close()
	}
	const answered = 8 * time.Second // before the next tick
	pass(answered)
	w.Forget()
}

func selectionOf(flags ...string) (nodegroup.Selection, error) {
	var named, discoveries []string
	for _, flag := range flags {
		if strings.HasPrefix(flag, "label") {
			discoveries = append(discoveries, flag)
		} else {
			named = append(named, flag)
		}
	}
	return nodegroup.ParseSelection(named, discoveries)
}

type fresh struct {
	azure.Reader
	azure.Writer
}

// scenario runs a test in simulated time.
func scenario(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *fleet) target(group string) int {
	w.t.Helper()
	r, err := w.NodeGroupTargetSize(w.t.Context(), &externalgrpc.NodeGroupTargetSizeRequest{Id: group})
	if err != nil {
		w.t.Fatal(err)
	}
	return int(r.TargetSize)
}

func (w *fleet) instances(group string) []*externalgrpc.Instance {
	w.t.Helper()
	r, err := w.NodeGroupNodes(w.t.Context(), &externalgrpc.NodeGroupNodesRequest{Id: group})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Instances
}

// states returns how many instances of a group are in which state, such as "running 3, QuotaExceeded 2".
func (w *fleet) states(group string) string {
	w.t.Helper()
	count := map[string]int{}
	for _, i := range w.instances(group) {
		if code := i.GetStatus().GetErrorInfo().GetErrorCode(); code != "" {
			count[code]++
		} else {
			count[strings.ToLower(strings.TrimPrefix(i.Status.InstanceState.String(), "instance"))]++
		}
	}
	return sprint(count)
}

func (w *fleet) increase(group string, delta int) error {
	_, err := w.NodeGroupIncreaseSize(w.t.Context(), &externalgrpc.NodeGroupIncreaseSizeRequest{Id: group, Delta: int32(delta)})
	return err
}

func (w *fleet) decrease(group string, delta int) error {
	_, err := w.NodeGroupDecreaseTargetSize(w.t.Context(),
		&externalgrpc.NodeGroupDecreaseTargetSizeRequest{Id: group, Delta: int32(delta)})
	return err
}

// join makes nodes of all machines of a group that are well, as the kubelet and the autoscaler would.
func (w *fleet) join(group string) {
	w.t.Helper()
	for _, i := range w.instances(group) {
		if i.Status.ErrorInfo != nil {
			continue
		}
		_, err := w.NodeGroupForNode(w.t.Context(), &externalgrpc.NodeGroupForNodeRequest{
			Node: &externalgrpc.ExternalGrpcNode{ProviderID: i.Id, Name: nameOf(i.Id)},
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func nameOf(providerID string) string { return providerID[strings.LastIndexByte(providerID, '/')+1:] }

// delete asks for the deletion of nodes by their provider ids.
func (w *fleet) delete(group string, ids ...string) error {
	r := &externalgrpc.NodeGroupDeleteNodesRequest{Id: group}
	for _, id := range ids {
		node := &externalgrpc.ExternalGrpcNode{ProviderID: id, Name: nameOf(id)}
		if strings.Contains(id, "placeholder") {
			node.Annotations = map[string]string{"k8s.io/cluster-autoscaler/fake-node-reason": "create-error"}
		}
		r.Nodes = append(r.Nodes, node)
	}
	_, err := w.NodeGroupDeleteNodes(w.t.Context(), r)
	return err
}

// failed returns the provider ids of the instances of a group with an error.
func (w *fleet) failed(group string) (ids []string) {
	w.t.Helper()
	for _, i := range w.instances(group) {
		if i.GetStatus().GetErrorInfo().GetErrorCode() != "" {
			ids = append(ids, i.Id)
		}
	}
	return ids
}

// well returns the provider ids of the instances of a group without an error.
func (w *fleet) well(group string) (ids []string) {
	w.t.Helper()
	for _, i := range w.instances(group) {
		if i.Status.ErrorInfo == nil && i.Status.InstanceState != externalgrpc.InstanceStatus_instanceDeleting {
			ids = append(ids, i.Id)
		}
	}
	return ids
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func setID(name string) azure.ID { return testkit.Group.Resource(compute.ScaleSets, name) }

// azureCapacity returns the capacity that Azure has for a scale set.
func (w *fleet) azureCapacity(name string) int {
	w.t.Helper()
	return int(*testkit.Must[compute.ScaleSetModel](w.Azure, setID(name)).SKU.Capacity)
}

// patch changes a scale set as a person would.
func (w *fleet) patch(name string, body map[string]any) {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = azure.Do(w.t.Context(), w.OtherClient(), azure.Request{Verb: azure.Patch, ID: setID(name), Body: text})
	if err != nil {
		w.t.Fatal(err)
	}
}

// replace writes a scale set with changes that a PATCH cannot make, such as its priority.
func (w *fleet) replace(name string, changes map[string]any) {
	w.t.Helper()
	text, err := w.OtherClient().Get(w.t.Context(), setID(name))
	if err != nil {
		w.t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		w.t.Fatal(err)
	}
	document.Merge(body, changes)
	if text, err = json.Marshal(body); err != nil {
		w.t.Fatal(err)
	}
	if _, err = azure.Do(w.t.Context(), w.OtherClient(), azure.Request{Verb: azure.Put, ID: setID(name), Body: text}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fleet) tag(name string, tags map[string]string) { w.patch(name, map[string]any{"tags": tags}) }

func wantCode(t *testing.T, row string, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%s: %v, want code %s", row, err, want)
	}
}

func want[T comparable](t *testing.T, what string, have, want T) {
	t.Helper()
	if have != want {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}

func wantWrites(t *testing.T, w *fleet, want ...string) {
	t.Helper()
	if have := w.Writes(); fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("writes:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

func machineOf(t *testing.T, providerID string) azure.ID {
	t.Helper()
	id, ok := nodes.MachineID(providerID)
	if !ok {
		t.Fatalf("%q is no provider id", providerID)
	}
	return id
}

func sprint(count map[string]int) string {
	var all []string
	for _, key := range sortedKeys(count) {
		all = append(all, fmt.Sprintf("%s %d", key, count[key]))
	}
	return strings.Join(all, ", ")
}
