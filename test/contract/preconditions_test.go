package contract

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

// ifMatch sends the etag of a document that a PUT sends as the If-Match of the request. The cloud providers of Kubernetes
// do this, too. The network clients have no option for it.
type ifMatch struct{}

func (ifMatch) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().Method == http.MethodPut && r.Body() != nil {
		text, err := io.ReadAll(r.Body())
		if err != nil {
			return nil, err
		}
		if err := r.RewindBody(); err != nil {
			return nil, err
		}
		var document struct {
			Etag string `json:"etag"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return nil, err
		}
		if document.Etag != "" {
			r.Raw().Header.Set("If-Match", document.Etag)
		}
	}
	return r.Next()
}

// precondition sends a header with every write.
type precondition struct{ name, value string }

func (p precondition) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().Method == http.MethodPut {
		r.Raw().Header.Set(p.name, p.value)
	}
	return r.Next()
}

func with(p policy.Policy) func(*arm.ClientOptions) {
	return func(o *arm.ClientOptions) { o.PerCallPolicies = append(o.PerCallPolicies, p) }
}

// TestNetworkPreconditions checks that the second of two concurrent writers is rejected.
func TestNetworkPreconditions(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(plain *local) {
		plain.group()
		a := plain.and(with(ifMatch{}))
		loadBalancers().given(a)
		_, err := loadBalancers().put(a, "one", loadBalancer("one"))
		a.must(err)
		mine, err := loadBalancers().get(a, "one")
		a.must(err)
		theirs, err := loadBalancers().get(a, "one")
		a.must(err)
		theirs.Properties.LoadBalancingRules[0].Properties.FrontendPort = new(int32(81))
		_, err = loadBalancers().put(a, "one", theirs)
		a.must(err)
		mine.Properties.LoadBalancingRules[0].Properties.FrontendPort = new(int32(82))
		_, err = loadBalancers().put(a, "one", mine)
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		mine, err = loadBalancers().get(a, "one")
		a.must(err)
		has(a, "port of the first one", mine.Properties.LoadBalancingRules[0].Properties.FrontendPort, 81)
		mine.Properties.LoadBalancingRules[0].Properties.FrontendPort = new(int32(82))
		_, err = loadBalancers().put(a, "one", mine)
		a.must(err)
	})
}

// A child that is written changes its parent's etag.
func TestEtagsOfParentsAndChildren(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(plain *local) {
		plain.group()
		a := plain.and(with(ifMatch{}))
		_, err := routeTables().put(a, "rt", routeTables().want(""))
		a.must(err)
		before, err := routeTables().get(a, "rt")
		a.must(err)
		_, err = routes().put(a, "one", *route("one", "10.244.9.0/24", "10.1.0.9"))
		a.must(err)
		_, err = routeTables().put(a, "rt", before)
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		after, err := routeTables().get(a, "rt")
		a.must(err)
		for _, r := range after.Properties.Routes {
			has(a, "etag of a route", r.Etag, *after.Etag)
		}
	})
}

func TestWhatMustAndMustNotExist(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		existing, absent := a.and(with(precondition{"If-Match", "*"})), a.and(with(precondition{"If-None-Match", "*"}))
		_, err := routeTables().put(existing, "rt", routeTables().want(""))
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		_, err = routeTables().put(absent, "rt", routeTables().want(""))
		a.must(err)
		_, err = routeTables().put(absent, "rt", routeTables().want(""))
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		_, err = routeTables().put(existing, "rt", routeTables().want(""))
		a.must(err)
	})
}

func TestComputePreconditions(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		givenScaleSet(a, 1)
		c := a.compute.NewVirtualMachineScaleSetsClient()
		_, err := ended(c.BeginCreateOrUpdate(a.Context(), group, "vmss", scaleSet(1),
			&armcompute.VirtualMachineScaleSetsClientBeginCreateOrUpdateOptions{IfNoneMatch: new("*")}))
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		set, err := scaleSets().get(a, "vmss")
		a.must(err)
		conditional := func(etag *string, capacity int64) error {
			set.SKU.Capacity = &capacity
			_, err := ended(c.BeginCreateOrUpdate(a.Context(), group, "vmss", set,
				&armcompute.VirtualMachineScaleSetsClientBeginCreateOrUpdateOptions{IfMatch: etag}))
			return err
		}
		etag := set.Etag
		a.must(conditional(etag, 2))
		a.refused(conditional(etag, 3), http.StatusPreconditionFailed, "PreconditionFailed")

		vms := a.compute.NewVirtualMachineScaleSetVMsClient()
		one := *instances(a, "")[0]
		one.Properties.ProtectionPolicy = &armcompute.VirtualMachineScaleSetVMProtectionPolicy{ProtectFromScaleIn: new(true)}
		_, err = ended(vms.BeginUpdate(a.Context(), group, "vmss", *one.InstanceID, one,
			&armcompute.VirtualMachineScaleSetVMsClientBeginUpdateOptions{IfMatch: new(`"999"`)}))
		a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
		_, err = ended(vms.BeginUpdate(a.Context(), group, "vmss", *one.InstanceID, one,
			&armcompute.VirtualMachineScaleSetVMsClientBeginUpdateOptions{IfMatch: one.Etag}))
		a.must(err)
	})
}

// TestTypesWithPreconditions checks that a type heeds If-None-Match if the official model of its creation has that header,
// and that other types change the resource that exists.
func TestTypesWithPreconditions(t *testing.T) {
	in := func(properties map[string]any) armresources.GenericResource {
		return armresources.GenericResource{Location: new(region), Properties: properties}
	}
	empty := map[string]any{"creationData": map[string]any{"createOption": "Empty"}, "diskSizeGB": 4}
	for _, c := range []struct {
		id      azure.ID
		options any
		version string
		body    armresources.GenericResource
	}{
		{id("Microsoft.Compute/disks", "d"), armcompute.DisksClientBeginCreateOrUpdateOptions{}, "2025-01-02", in(empty)},
		{id("Microsoft.Compute/snapshots", "s"), armcompute.SnapshotsClientBeginCreateOrUpdateOptions{}, "2025-01-02", in(empty)},
		{id("Microsoft.Compute/availabilitySets", "a"), armcompute.AvailabilitySetsClientCreateOrUpdateOptions{}, "2025-04-01", in(nil)},
		{id("Microsoft.Storage/storageAccounts", "account"), armstorage.AccountsClientBeginCreateOptions{}, "2025-06-01",
			armresources.GenericResource{Location: new(region), Kind: new("StorageV2"), SKU: &armresources.SKU{Name: new("Standard_LRS")},
				Properties: map[string]any{}}},
		{id("Microsoft.Network/dnsZones", "two.test"), armdns.ZonesClientCreateOrUpdateOptions{}, "2018-05-01",
			armresources.GenericResource{Location: new("global")}},
	} {
		inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
			a.group()
			absent := a.and(with(precondition{"If-None-Match", "*"})).resources.NewClient()
			put := func() error {
				_, err := ended(absent.BeginCreateOrUpdateByID(a.Context(), string(c.id), c.version, c.body, nil))
				return err
			}
			a.must(put())
			err := put()
			if _, has := reflect.TypeOf(c.options).FieldByName("IfNoneMatch"); has {
				a.refused(err, http.StatusPreconditionFailed, "PreconditionFailed")
			} else {
				a.must(err)
			}
		})
	}
}
