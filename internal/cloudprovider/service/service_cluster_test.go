package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	kubetesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
	"kaz/internal/reconcile"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	watch.DefaultChanSize = 1 << 14 // the fake API server panics when a watcher falls behind
	goleak.VerifyTestMain(m)
}

const services = "services"

// serviceCluster is a cluster's API server and a local Azure. Controllers come and go.
type serviceCluster struct {
	*testkit.Azure
	t      testing.TB
	client *cluster
	events *events
	uids   int
	turns  int
}

func newServiceCluster(t testing.TB, o core.Options, count int) *serviceCluster {
	t.Helper()
	w := &serviceCluster{Azure: testkit.NewAzure(t, o, count), t: t, client: newCluster(), events: &events{}}
	w.client.PrependReactor("delete", services, w.finalizersHoldServices)
	w.client.PrependReactor("patch", services, w.servicesGoWithoutFinalizers)
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		w.addNode(vm)
	}
	return w
}

var servicesResource = corev1.SchemeGroupVersion.WithResource(services)

// finalizersHoldServices adds what the fake API server does not do: a deleted Service with finalizers is only marked.
func (w *serviceCluster) finalizersHoldServices(a kubetesting.Action) (bool, runtime.Object, error) {
	d := a.(kubetesting.DeleteAction)
	s, err := w.service(d.GetNamespace(), d.GetName())
	if err != nil || len(s.Finalizers) == 0 {
		return false, nil, err
	}
	s.DeletionTimestamp = new(metav1.Now())
	return true, nil, w.client.Tracker().Update(servicesResource, s, s.Namespace)
}

// servicesGoWithoutFinalizers adds two further things that the fake API server does not do. A deleted Service goes
// with its last finalizer. A patch may say by UID which Service it is for.
func (w *serviceCluster) servicesGoWithoutFinalizers(a kubetesting.Action) (bool, runtime.Object, error) {
	if err := w.isSuccessor(a.(kubetesting.PatchAction)); err != nil {
		return true, nil, err
	}
	_, out, err := kubetesting.ObjectReaction(w.client.Tracker())(a)
	if s, ok := out.(*corev1.Service); ok && err == nil && s.DeletionTimestamp != nil && len(s.Finalizers) == 0 {
		err = w.client.Tracker().Delete(servicesResource, s.Namespace, s.Name)
	}
	return true, out, err
}

// isSuccessor refuses a patch for a Service if only a later Service of the same name exists, as API servers do.
func (w *serviceCluster) isSuccessor(a kubetesting.PatchAction) error {
	var patch struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
		return err
	}
	meant := patch.Metadata.UID
	s, err := w.service(a.GetNamespace(), a.GetName())
	if err != nil || meant == "" || meant == s.UID {
		return nil
	}
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), a.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("metadata", "uid"), meant, "field is immutable"),
	})
}

func (w *serviceCluster) addNode(vm azure.Resource[compute.Instance]) {
	w.t.Helper()
	id, err := nodes.ProviderID(vm.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes.NodeName(vm)}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, card := range testkit.List[network.Interface](w.Azure, vm.ID, compute.ScaleSetInstances+"/networkInterfaces") {
		for _, c := range card.Properties.IPConfigurations {
			node.Status.Addresses = append(node.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: c.Properties.PrivateIPAddress})
		}
	}
	if err := w.client.Tracker().Add(node); err != nil {
		w.t.Fatal(err)
	}
}

func config() service.Config {
	return service.Config{
		Classes: service.Classes{"", service.Class}, Syncs: 64,
		LoadBalancer: loadbalancer.Config{
			ClusterName: testkit.ClusterName, LoadBalancerName: testkit.ClusterName,
			Location: testkit.Location, Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
			NetworkSubscription: testkit.Subscription, LoadBalancerResourceGroup: testkit.ResourceGroup,
			SecurityGroupName: testkit.SecurityGroup.Name(), SecurityGroupResourceGroup: testkit.ResourceGroup,
			Zones: []string{"1", "2", "3"}, VirtualNetwork: testkit.VNet.Name(), VirtualNetworkResourceGroup: testkit.ResourceGroup,
			Subnet:                   "nodes",
			PrivateLinkResourceGroup: testkit.ResourceGroup,
		},
	}
}

// start runs a controller until the test ends or stop is called.
func (w *serviceCluster) start(c service.Config) (stop func()) {
	w.t.Helper()
	return w.startWith(c, w.Client)
}

// startWith runs a controller with a client of its own.
func (w *serviceCluster) startWith(c service.Config, client reconcile.Azure) (stop func()) {
	w.t.Helper()
	return w.startAs(c, func(d *service.Deps) { d.Azure = client })
}

// startAs runs a controller with edited dependencies.
func (w *serviceCluster) startAs(c service.Config, edit func(*service.Deps)) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	factory := informers.NewSharedInformerFactory(w.client, 0)
	deps := service.Deps{Azure: w.Client, Client: w.client, Informers: factory, Events: w.events}
	edit(&deps)
	controller, err := service.New(c, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx) })
	factory.Start(ctx.Done())
	// The simulated API server does not send what changes between a list and the watch after it.
	synctest.Wait()
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	w.t.Cleanup(stop)
	return stop
}

// newService is a Service as an API server would complete it.
func (w *serviceCluster) newService(name string, ports ...int32) *corev1.Service {
	w.uids++
	var list []corev1.ServicePort
	for _, n := range ports {
		list = append(list, corev1.ServicePort{Name: fmt.Sprint(n), Protocol: corev1.ProtocolTCP, Port: n, NodePort: 30000 + n})
	}
	s := testkit.NewService(name, list...)
	s.UID = types.UID(fmt.Sprintf("3d2c1b0a-1111-2222-3333-%012x", w.uids<<4))
	return s
}

func (w *serviceCluster) create(s *corev1.Service) *corev1.Service {
	w.t.Helper()
	if err := w.client.Tracker().Create(servicesResource, s, s.Namespace); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// change edits a Service as a user would.
func (w *serviceCluster) change(name string, edit func(*corev1.Service)) {
	w.t.Helper()
	s := w.get(name)
	edit(s)
	if err := w.client.Tracker().Update(servicesResource, s, s.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func (w *serviceCluster) remove(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().Services(corev1.NamespaceDefault).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *serviceCluster) service(namespace, name string) (*corev1.Service, error) {
	o, err := w.client.Tracker().Get(servicesResource, namespace, name)
	if err != nil {
		return nil, err
	}
	return o.(*corev1.Service).DeepCopy(), nil
}

func (w *serviceCluster) get(name string) *corev1.Service {
	w.t.Helper()
	s, err := w.service(corev1.NamespaceDefault, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *serviceCluster) gone(name string) bool {
	_, err := w.service(corev1.NamespaceDefault, name)
	return apierrors.IsNotFound(err)
}

func (w *serviceCluster) address(name string) string {
	w.t.Helper()
	return addressOf(w.get(name))
}

func addressOf(s *corev1.Service) string {
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		return ""
	}
	return s.Status.LoadBalancer.Ingress[0].IP
}

// until waits in simulated time, and longer while an operation is under way in Azure. One write of a subnet in a
// thousand takes half an hour and more.
func (w *serviceCluster) until(what string, is func() bool) {
	w.t.Helper()
	const patience, step, most = 30 * time.Minute, 100 * time.Millisecond, 10
	waits := 1
	for waited := time.Duration(0); !is(); waited += step {
		switch {
		case waited > patience && waits < most && w.UnderWay():
			waited, waits = 0, waits+1
		case waited > patience:
			w.t.Fatalf("still not after %v: %s\n%s", patience, what, strings.Join(w.events.list(""), "\n"))
		}
		<-time.After(step)
	}
}

// settle waits until nothing is going on and nothing is about to.
func (w *serviceCluster) settle() {
	w.t.Helper()
	<-time.After(time.Minute)
	if w.isBusy() { // a scale set's slow write
		w.until("nothing is under way in Azure", func() bool { return !w.UnderWay() })
		for w.isBusy() { // it copies all requests
			<-time.After(betweenPolls / 3)
		}
		<-time.After(time.Minute)
	}
}

const betweenPolls = 15 * time.Second

// isBusy reports whether an operation is under way, or was a moment ago. A caller that waits for such an operation
// may not know yet that it is over.
func (w *serviceCluster) isBusy() bool {
	return w.UnderWay() ||
		slices.ContainsFunc(w.Requests(), func(r testkit.Request) bool { return r.IsPoll() && time.Since(r.At) < betweenPolls })
}

func (w *serviceCluster) served(name string) {
	w.t.Helper()
	w.until(name+" has an address", func() bool { return w.address(name) != "" })
}

// count counts requests by the name of what was written.
func count(lines []string) map[string]int {
	all := map[string]int{}
	for _, line := range lines {
		name := strings.Fields(line)[1]
		if strings.HasPrefix(name, testkit.ClusterName+"-") {
			name = "public IP"
		}
		all[name]++
	}
	return all
}

// events records the events of all objects.
type events struct {
	mu  sync.Mutex
	all []event
}

type event struct{ object, kind, reason, message string }

func (e *events) Event(o runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := ""
	if m, ok := o.(metav1.Object); ok {
		name = m.GetName()
	}
	e.all = append(e.all, event{name, kind, reason, message})
}

func (e *events) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	e.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (e *events) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(o, kind, reason, format, args...)
}

// list is the reasons and messages of an object's events, or those of all.
func (e *events) list(object string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, v := range e.all {
		if object == "" || v.object == object {
			lines = append(lines, v.reason+": "+v.message)
		}
	}
	return lines
}

func (e *events) reasons(object string) []string {
	var all []string
	for _, line := range e.list(object) {
		reason, _, _ := strings.Cut(line, ":")
		all = append(all, reason)
	}
	return all
}

func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// scale sets the capacity of the scale set, and registers the new machines as nodes.
func (w *serviceCluster) scale(capacity int) {
	w.t.Helper()
	known := map[string]bool{}
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		known[vm.Name] = true
	}
	body := fmt.Sprintf(`{"sku":{"name":"Standard_D2s_v5","tier":"Standard","capacity":%d}}`, capacity)
	if _, err := w.Client.Patch(context.WithoutCancel(w.t.Context()),
		azure.Write{ID: testkit.Nodes, Body: azure.Document(body)}); err != nil {
		w.t.Fatal(err)
	}
	w.Forget()
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		if !known[vm.Name] {
			w.addNode(vm)
		}
	}
}

func (w *serviceCluster) editNode(name string, edit func(*corev1.Node)) {
	w.t.Helper()
	resource := corev1.SchemeGroupVersion.WithResource("nodes")
	o, err := w.client.Tracker().Get(resource, "", name)
	if err != nil {
		w.t.Fatal(err)
	}
	n := o.(*corev1.Node).DeepCopy()
	edit(n)
	if err := w.client.Tracker().Update(resource, n, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *serviceCluster) exclude(name, value string) {
	w.editNode(name, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: value} })
}

func (w *serviceCluster) markNotReady(name string) {
	w.editNode(name, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	})
}

// members counts the pool's members as Azure shows them.
func (w *serviceCluster) members() int {
	w.t.Helper()
	total := 0
	for _, pool := range testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties.BackendAddressPools {
		total += len(pool.Properties.BackendIPConfigurations)
	}
	return total
}
