package check_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/check"
	"kaz/internal/localazure/core"
	plan "kaz/internal/plan/check"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

type object = map[string]any

// config returns what checks a local Azure, one hour after it was made.
func config(a azure.Reader, objects ...runtime.Object) (check.Config, *fake.Clientset) {
	client := fake.NewClientset(objects...)
	return check.Config{
		Now: time.Now().Add(time.Hour), Kubernetes: client, Azure: a,
		Group: testkit.Group, LoadBalancers: testkit.Group, PublicIPs: testkit.Group, Location: testkit.Location,
		ClusterName: testkit.ClusterName, Balancers: []string{testkit.ClusterName},
		SignIn: func(context.Context) error { return nil },
		Rights: func(context.Context, []check.Use) plan.Granted { return plan.Granted{} },
		Reach:  func(context.Context, string) error { return nil },
		Skew:   func() (time.Duration, error) { return time.Second, nil },
	}, client
}

// lines returns the findings of an area that are not ok.
func lines(r plan.Report, area string) string {
	var all []string
	for _, f := range r.Findings {
		if f.Area == area && f.State != plan.OK {
			all = append(all, string(f.State)+" "+f.Subject)
		}
	}
	return strings.Join(all, ", ")
}

// TestMachines checks that instances of both kinds of scale sets and machines without one are read, with their power.
func TestMachines(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 2)
	flexible := a.AddScaleSet("flex", testkit.Flexible, 1)
	alone := a.AddMachine(testkit.VirtualMachine{Name: "alone"})
	c, _ := config(a.Client.Fresh())
	if got := lines(check.Run(t.Context(), c, ""), "nodes"); strings.Count(got, "warning nodes0_") != 2 || strings.Count(got, "warning") != 3 {
		t.Errorf("without Nodes: %s", got)
	}
	var all []runtime.Object
	add := func(id azure.ID) {
		provider, err := nodes.ProviderID(id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(id.Name())}, Spec: v1.NodeSpec{ProviderID: provider}})
	}
	add(alone)
	for _, vm := range testkit.List[compute.Instance](a, testkit.Group, compute.VirtualMachines) {
		if vm.Properties.VirtualMachineScaleSet.To().Equal(flexible) {
			add(vm.ID)
		}
	}
	for _, vm := range testkit.List[compute.Instance](a, testkit.Nodes, compute.ScaleSetInstances) {
		add(vm.ID)
	}
	c, _ = config(a.Client.Fresh(), all...)
	if got := lines(check.Run(t.Context(), c, ""), "nodes"); got != "" || len(all) != 4 {
		t.Errorf("with %d Nodes: %s", len(all), got)
	}
	if writes := a.WritesBy("DELETE"); writes != 0 {
		t.Errorf("%d resources are deleted", writes)
	}
}

// TestDisks checks that a disk of a driver without a volume is named, and one of a user is not.
func TestDisks(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	for name, tags := range map[string]object{"pvc-1": {"k8s-azure-created-by": "kubernetes-azure-dd"}, "of-a-user": {}} {
		a.Put(testkit.Group.Resource(compute.Disks, name), object{"location": testkit.Location, "sku": object{"name": "Premium_LRS"}, "tags": tags,
			"properties": object{"creationData": object{"createOption": "Empty"}, "diskSizeGB": 4}})
	}
	c, _ := config(a.Client.Fresh())
	if got := lines(check.Run(t.Context(), c, ""), "volumes"); got != "warning pvc-1" {
		t.Error(got)
	}
	c.Now = time.Now() // the disk is new
	if got := lines(check.Run(t.Context(), c, ""), "volumes"); got != "" {
		t.Errorf("a new disk: %s", got)
	}
}

// TestAddressOfOtherGroup checks that the public IP of a frontend is read wherever it is.
func TestAddressOfOtherGroup(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	group := azure.GroupID(testkit.Subscription, "addresses")
	ip := group.Resource(network.PublicIPAddresses, "ip")
	a.Put(group, object{"location": testkit.Location})
	a.Put(ip, object{"location": testkit.Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}})
	a.Put(testkit.LoadBalancer, object{"location": testkit.Location, "sku": object{"name": "Standard"}, "properties": object{
		"frontendIPConfigurations": []object{{"name": "f", "properties": object{"publicIPAddress": object{"id": ip}}}},
	}})
	web := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	web.Spec.Type = v1.ServiceTypeLoadBalancer
	for address, want := range map[string]string{
		testkit.Must[network.PublicIPAddress](a, ip).Properties.IPAddress: "", "192.0.2.99": "problem default/web",
	} {
		web.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: address}}
		c, _ := config(a.Client.Fresh(), web)
		if got := lines(check.Run(t.Context(), c, ""), "services"); got != want {
			t.Errorf("%s: %s, want %q", address, got, want)
		}
	}
}

// TestEndlessList checks that a list of Kubernetes that does not end is unknown.
func TestEndlessList(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	c, client := config(a.Client.Fresh())
	pages := 0
	client.PrependReactor("list", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		pages++
		return true, &v1.NodeList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
	})
	report := check.Run(t.Context(), c, "")
	if got := lines(report, "nodes"); got != "unknown Nodes" || pages != 20 || !strings.Contains(report.String(), "there are more than 10000") {
		t.Errorf("%s after %d pages", got, pages)
	}
}

// failing is an Azure of which one list fails.
type failing struct {
	azure.Reader

	fullType string
}

func (f failing) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if q.Type == f.fullType {
		return nil, &azure.Error{Status: 403, Code: "AuthorizationFailed", Kind: azure.Denied}
	}
	return f.Reader.List(ctx, q)
}

// TestFailedReads checks that one failed read makes the areas unknown that need it, and no other.
func TestFailedReads(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	for fullType, areas := range map[string]string{
		compute.ScaleSets: "nodes node groups operations", compute.VirtualMachines: "nodes node groups operations",
		network.LoadBalancers: "services operations orphans", network.PublicIPAddresses: "services operations orphans",
		compute.Disks: "volumes operations", "Microsoft.Compute/locations/usages": "quotas",
		"Microsoft.Network/locations/usages": "quotas",
	} {
		c, _ := config(failing{a.Client.Fresh(), fullType})
		var unknown []string
		for _, f := range check.Run(t.Context(), c, "switch").Findings {
			if f.State == plan.Unknown {
				unknown = append(unknown, f.Area)
			}
			if f.State == plan.Problem {
				t.Errorf("%s: %+v", fullType, f)
			}
		}
		if got := strings.Join(unknown, " "); got != areas {
			t.Errorf("%s: %q is unknown, want %q", fullType, got, areas)
		}
	}
}

// TestSilentAPIServer checks that an API server that lets a read wait is not asked again, and that Azure still is.
func TestSilentAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testkit.NewAzure(t, core.Options{}, 0)
		c, client := config(a.Client.Fresh())
		start, asked := time.Now(), 0
		client.PrependReactor("*", "*", func(ktesting.Action) (bool, runtime.Object, error) {
			asked++
			<-time.After(40 * time.Second)
			return true, nil, context.DeadlineExceeded
		})
		report := check.Run(t.Context(), c, "switch")
		if took := time.Since(start); took > time.Minute || asked != 1 {
			t.Errorf("%v and %d requests", took, asked)
		}
		if got := lines(report, "services"); got != "unknown Services, unknown warning Events" || !strings.Contains(report.String(), "an earlier read") {
			t.Errorf("%s\n%s", got, report)
		}
		if got := lines(report, "quotas"); got != "" {
			t.Errorf("quotas: %s", got)
		}
	})
}

// TestNothingIsOpen checks that an Azure that is not open is unknown.
func TestNothingIsOpen(t *testing.T) {
	c, _ := config(nil)
	c.Azure = nil
	if got := lines(check.Run(t.Context(), c, ""), "quotas"); got != "unknown usages" {
		t.Error(got)
	}
}

// TestLogin checks that a refused login is a problem, and one without an answer is unknown. Nothing is then asked of Azure.
func TestLogin(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for want, ctx := range map[string]context.Context{"problem token": t.Context(), "unknown token": ended} {
		c, _ := config(nil)
		c.Azure = failing{} // a request would panic
		c.SignIn = func(context.Context) error { return errors.New("no login") }
		report := check.Run(ctx, c, "")
		if got := lines(report, "identity"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := lines(report, "quotas"); got != "unknown usages" {
			t.Errorf("quotas after %s: %s", want, got)
		}
	}
}
