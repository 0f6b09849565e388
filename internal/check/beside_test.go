package check_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/check"
	"kaz/internal/localazure/core"
	plan "kaz/internal/plan/check"
	"kaz/internal/plan/rights"
	"kaz/internal/testkit"
)

// podOf is a pod with a program and its arguments.
func podOf(program string, labels map[string]string, arguments ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: program, Labels: labels}}
	p.Spec.Containers = []v1.Container{{Image: "registry/kaz/" + program + ":v1.36.0", Args: arguments}}
	return p
}

// TestShares checks that the accounts of volumes are read with their shares.
func TestShares(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	account := testkit.Group.Resource(storage.Accounts, "files")
	a.Put(account, object{"location": testkit.Location, "kind": "StorageV2", "sku": object{"name": "Standard_LRS"}})
	a.Put(storage.ShareOf(account, "here"), object{"properties": object{"shareQuota": 5}})
	volume := func(name, handle string) *v1.PersistentVolume {
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "file.csi.azure.com", VolumeHandle: handle}
		return pv
	}
	group := testkit.Group.Group()
	c, _ := config(a.Client.Fresh(), volume("a", group+"#files#here#"), volume("b", group+"#files#gone#"), volume("c", group+"#none#x#"))
	report := check.Run(t.Context(), c, "switch")
	if got := lines(report, "shares"); got != "problem b, problem c" || !strings.Contains(report.String(), "its storage account is not in Azure") {
		t.Errorf("%s\n%s", got, report)
	}
}

// TestZones checks that the zones that the flags of the webhook select are read, and that their rights are asked for at their groups.
func TestZones(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	group := azure.GroupID(testkit.Subscription, "dns")
	a.Put(group, object{"location": testkit.Location})
	for _, name := range []string{"example.com", "other.org"} {
		a.Put(group.Resource(network.DNSZones, name), object{"location": "global"})
	}
	gone := group.Resource(network.DNSZones, "gone.net")
	labels := map[string]string{"app.kubernetes.io/name": "external-dns"}
	for arguments, want := range map[string]string{
		"--zone-resource-group=dns": "", "--zone-resource-group=dns --zone-name=example.net": "problem all", "--zone=" + string(gone): "problem gone.net",
	} {
		c, _ := config(a.Client.Fresh(), podOf("external-dns-webhook", labels, strings.Fields(arguments)...))
		var asked []check.Use
		c.Rights = func(_ context.Context, uses []check.Use) plan.Granted {
			asked = uses
			return plan.Granted{}
		}
		if got := lines(check.Run(t.Context(), c, "switch"), "DNS zones"); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
		if len(asked) != 2 || !asked[1].At.Equal(group) || asked[1].Scope != rights.RecordZones {
			t.Errorf("%s: rights are asked for as %+v", arguments, asked)
		}
	}
}

// TestGateways checks that the gateway of the controller's flags is read, and the health of its backends asked for.
func TestGateways(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	labels := map[string]string{"app": "application-gateway-controller"}
	gate := testkit.Group.Resource(network.ApplicationGateways, "gate")
	c, _ := config(reading{a.Client.Fresh(), gate}, podOf("application-gateway-controller", labels, "--gateway", "gate"))
	answer := `{"backendAddressPools":[{"backendAddressPool":{"id":"/p/web"},"backendHttpSettingsCollection":[
		{"servers":[{"address":"10.0.0.4","health":"Unhealthy"}]}]}]}`
	c.Health = func(_ context.Context, id azure.ID) (azure.Document, error) {
		if !id.Equal(gate) {
			t.Errorf("the health of %s is asked for", id)
		}
		return azure.Document(answer), nil
	}
	if got := lines(check.Run(t.Context(), c, "switch"), "gateways"); got != "problem gate/web" {
		t.Error(got)
	}
	c.Health = func(context.Context, azure.ID) (azure.Document, error) { return nil, errors.New("403") }
	if got := lines(check.Run(t.Context(), c, "switch"), "gateways"); got != "unknown gate" {
		t.Error(got)
	}
	c.Azure = a.Client.Fresh()
	if got := lines(check.Run(t.Context(), c, "switch"), "gateways"); got != "problem gate" {
		t.Error(got)
	}
}

// reading is an Azure with an application gateway that runs.
type reading struct {
	azure.Reader

	gateway azure.ID
}

func (r reading) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	if id.Equal(r.gateway) {
		return azure.Document(`{"id":"` + string(id) + `","name":"gate","properties":{"operationalState":"Running","provisioningState":"Succeeded"}}`), nil
	}
	return r.Reader.Get(ctx, id)
}

// TestPaths checks that each endpoint is asked, and that the kind of its error says what mends it.
func TestPaths(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	c, _ := config(a.Client.Fresh())
	errs := map[string]error{
		"ok": nil, "name": &net.DNSError{Err: "no such host", Name: "x"}, "certificate": x509.UnknownAuthorityError{},
		"refused": &net.OpError{Op: "dial", Err: errors.New("refused")}, "silent": context.DeadlineExceeded, "other": errors.New("odd"),
	}
	for name := range errs {
		c.Endpoints = append(c.Endpoints, check.Endpoint{Name: name, URL: "https://" + name})
	}
	c.Reach = func(ctx context.Context, url string) error {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 10*time.Second {
			t.Errorf("%s may take until %v", url, end)
		}
		return errs[strings.TrimPrefix(url, "https://")]
	}
	report := check.Run(t.Context(), c, "install")
	if got := lines(report, "network"); got != "problem certificate, problem name, problem other, problem refused, problem silent" {
		t.Error(got)
	}
	for _, want := range []string{"name server", "SSL_CERT_FILE", "firewalls", "curl -v https://other"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("%q is not in\n%s", want, report)
		}
	}
}

// TestOperations checks that a resource on which an operation failed is named once.
func TestOperations(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	c, _ := config(failed{a.Client.Fresh()})
	if got := lines(check.Run(t.Context(), c, "switch"), "operations"); got != "problem lb" {
		t.Error(got)
	}
}

// failed is an Azure with a load balancer of which the last write failed.
type failed struct{ azure.Reader }

func (f failed) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if q.Type == network.LoadBalancers {
		one := azure.Document(`{"id":"` + string(testkit.Group.Resource(network.LoadBalancers, "lb")) + `","properties":{"provisioningState":"Failed"}}`)
		return []azure.Document{one, one}, nil
	}
	return f.Reader.List(ctx, q)
}
