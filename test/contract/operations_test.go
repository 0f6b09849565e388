package contract

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/localazure/core"
)

// noRetries shows what is refused at once.
func noRetries(o *arm.ClientOptions) { o.Retry.MaxRetries = -1 }

// TestOperationsAreResumed checks that any client with the resume token can wait for an operation.
func TestOperationsAreResumed(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		machines().given(a)
		begin := time.Now()
		first, err := a.compute.NewVirtualMachinesClient().BeginCreateOrUpdate(a.Context(), group, "one", machine("one"), nil)
		a.must(err)
		resume, err := first.ResumeToken()
		a.must(err)
		vm, err := machines().get(a, "one")
		a.must(err)
		has(a, "state while it is created", vm.Properties.ProvisioningState, "Creating")

		second := a.and().compute.NewVirtualMachinesClient()
		got, err := ended(second.BeginCreateOrUpdate(a.Context(), group, "one", armcompute.VirtualMachine{},
			&armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{ResumeToken: resume}))
		a.must(err)
		has(a, "state when it is done", got.Properties.ProvisioningState, "Succeeded")
		if took := time.Since(begin); took < 10*time.Second {
			a.Errorf("a machine with the latencies of Azure was there after %v", took)
		}

		removal, err := a.compute.NewVirtualMachinesClient().BeginDelete(a.Context(), group, "one", nil)
		a.must(err)
		resume, err = removal.ResumeToken()
		a.must(err)
		a.must(gone(second.BeginDelete(a.Context(), group, "one",
			&armcompute.VirtualMachinesClientBeginDeleteOptions{ResumeToken: resume})))
		_, err = machines().get(a, "one")
		a.refused(err, http.StatusNotFound, "ResourceNotFound")
	})
}

// An operation that fails says so in a poll with status 200.
func TestOperationsThatFail(t *testing.T) {
	for _, c := range []struct {
		fullType string
		try      func(a *local) error
	}{
		{"Microsoft.Network/publicIPAddresses", func(a *local) error {
			_, err := publicAddresses().put(a, "x", publicAddress())
			return err
		}},
		{"Microsoft.Compute/disks", func(a *local) error {
			_, err := disks().put(a, "x", disks().want(""))
			return err
		}},
	} {
		t.Run(c.fullType, func(t *testing.T) {
			fault := core.Fault{Method: http.MethodPut, Type: c.fullType, Fault: core.FaultOperation, Code: "AllocationFailed",
				Message: "no room", Times: 1}
			inBubble(t, core.Options{Latency: asOnAzure, Faults: []core.Fault{fault}}, func(a *local) {
				a.group()
				a.refused(c.try(a), http.StatusOK, "AllocationFailed")
				a.must(c.try(a))
			})
		})
	}
}

// A newer write takes the place of a write that is still running.
func TestOperationsThatAreSuperseded(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := a.network.NewSecurityGroupsClient()
		first, err := c.BeginCreateOrUpdate(a.Context(), group, "nsg", securityGroups().want(""), nil)
		a.must(err)
		newer := securityGroups().want("")
		newer.Properties.SecurityRules = append(newer.Properties.SecurityRules, allow("tls", 501, "443"))
		second, err := c.BeginCreateOrUpdate(a.Context(), group, "nsg", newer, nil)
		a.must(err)
		_, err = first.PollUntilDone(a.Context(), nil)
		a.refused(err, http.StatusOK, "Canceled")
		if !strings.Contains(err.Error(), "CanceledAndSupersededDueToAnotherOperation") {
			a.Errorf("the reason is not given: %v", err)
		}
		got, err := second.PollUntilDone(a.Context(), nil)
		a.must(err)
		if n := len(got.Properties.SecurityRules); n != 2 {
			a.Errorf("%d rules, want those of the newer write", n)
		}
	})
}

// What is still being made cannot be referred to yet; the SDK tries again.
func TestReferencesToWhatIsBeingMade(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := a.network.NewPublicIPAddressesClient().BeginCreateOrUpdate(a.Context(), group, "ip-one", publicAddress(), nil)
		a.must(err)
		_, err = loadBalancers().put(a.and(noRetries), "one", loadBalancer("one"))
		a.refused(err, http.StatusTooManyRequests, "RetryableError")
		if !strings.Contains(err.Error(), "ReferencedResourceNotProvisioned") {
			a.Errorf("the reason is not given: %v", err)
		}
		_, err = loadBalancers().put(a, "one", loadBalancer("one"))
		a.must(err)
	})
}

// A reply that got lost is asked for again, and the second request finds done what
// the first one did.
func TestRepliesThatGetLost(t *testing.T) {
	lost := core.Fault{Method: http.MethodPut, Type: "Microsoft.Network/publicIPAddresses", Fault: core.FaultLost, Times: 1}
	unavailable := core.Fault{Method: http.MethodGet, Type: "Microsoft.Network/publicIPAddresses", Fault: core.FaultError,
		Status: http.StatusServiceUnavailable, Times: 2}
	inBubble(t, core.Options{Latency: asOnAzure, Faults: []core.Fault{lost, unavailable}}, func(a *local) {
		a.group()
		made, err := publicAddresses().put(a, "ip", publicAddress())
		a.must(err)
		got, err := publicAddresses().get(a, "ip")
		a.must(err)
		has(a, "address", got.Properties.IPAddress, *made.Properties.IPAddress)
	})
}

// A delete of a whole group goes through every provider.
func TestAGroupGoesWithEverythingInIt(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		givenMachine(a)
		loadBalancers().given(a)
		lb := loadBalancer("one")
		_, err := loadBalancers().put(a, "one", lb)
		a.must(err)
		givenScaleSet(a, 3)
		_, err = disks().put(a, "data", disks().want(""))
		a.must(err)

		c := a.resources.NewResourceGroupsClient()
		p, err := c.BeginDelete(a.Context(), group, nil)
		a.must(err)
		going, err := c.Get(a.Context(), group, nil)
		a.must(err)
		has(a, "state of the group", going.Properties.ProvisioningState, "Deleting")
		_, err = p.PollUntilDone(a.Context(), nil)
		a.must(err)
		there, err := c.CheckExistence(a.Context(), group, nil)
		a.must(err)
		if there.Success {
			a.Error("the group is still there")
		}
		_, err = c.Get(a.Context(), group, nil)
		a.refused(err, http.StatusNotFound, "ResourceGroupNotFound")

		_, err = c.CreateOrUpdate(a.Context(), group, armresources.ResourceGroup{Location: new(region)}, nil)
		a.must(err)
		for what, n := range map[string]int{
			"load balancers": count(loadBalancers().list(a)), "networks": count(virtualNetworks().list(a)),
			"interfaces": count(networkInterfaces().list(a)), "addresses": count(publicAddresses().list(a)),
			"machines": count(machines().list(a)), "scale sets": count(scaleSets().list(a)), "disks": count(disks().list(a)),
		} {
			if n != 0 {
				a.Errorf("%d %s (-1: cannot be listed) in a new group of the same name", n, what)
			}
		}
	})
}

func count[R any](items []*R, err error) int {
	if err != nil {
		return -1
	}
	return len(items)
}

// TestPollsAreAsFastAsToldTo checks that a client that waited longer than Retry-After need not wait
// again.
func TestPollsAreAsFastAsToldTo(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		begin := time.Now()
		_, err := ended(a.network.NewPublicIPAddressesClient().BeginCreateOrUpdate(a.Context(), group, "ip",
			armnetwork.PublicIPAddress{Location: new(region)}, nil))
		a.must(err)
		if took := time.Since(begin); took > 25*time.Second {
			a.Errorf("a public address took %v: its replies must have come without Retry-After", took)
		}
	})
}
