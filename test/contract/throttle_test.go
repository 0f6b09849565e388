package contract

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/localazure/core"
)

// throttled tries until it is refused with 429 and returns how often it was not.
func throttled(a *local, code string, try func(i int) error) (passed int, refusal *azcore.ResponseError) {
	a.Helper()
	const most = 2000
	for i := range most {
		err := try(i)
		if got, ok := errors.AsType[*azcore.ResponseError](err); ok && got.StatusCode == http.StatusTooManyRequests {
			a.refused(err, http.StatusTooManyRequests, code)
			return i, got
		}
		a.must(err)
	}
	a.Fatalf("%d requests at once were not throttled", most)
	return 0, nil
}

// retryAfter is how long the refusal says to wait.
func retryAfter(a *local, refusal *azcore.ResponseError) time.Duration {
	a.Helper()
	seconds, err := strconv.Atoi(refusal.RawResponse.Header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		a.Fatalf("Retry-After %q: want whole seconds", refusal.RawResponse.Header.Get("Retry-After"))
	}
	return time.Duration(seconds) * time.Second
}

func TestReadsAreThrottled(t *testing.T) {
	inBubble(t, core.Options{Throttle: true}, func(a *local) {
		a.group()
		hasty := a.and(noRetries).resources.NewResourceGroupsClient()
		try := func(int) error {
			_, err := hasty.Get(a.Context(), group, nil)
			return err
		}
		passed, refusal := throttled(a, "SubscriptionRequestsThrottled", try)
		if passed != 250 {
			a.Errorf("%d reads at once passed, want the bucket's 250", passed)
		}
		<-time.After(retryAfter(a, refusal))
		a.must(try(0))
	})
}

// The SDK's own retries wait as long as they are told and then get through.
func TestThrottledRequestsAreRetried(t *testing.T) {
	inBubble(t, core.Options{Throttle: true}, func(a *local) {
		a.group()
		begin := time.Now()
		for i := range 450 {
			_, err := a.network.NewRouteTablesClient().BeginCreateOrUpdate(a.Context(), group, fmt.Sprint("rt-", i),
				armnetwork.RouteTable{Location: new(region)}, nil)
			a.must(err)
		}
		// 450 and the group are 251 more than the bucket holds, and 10 come back in a second.
		if took := time.Since(begin); took < 24*time.Second || took > time.Minute {
			a.Errorf("450 writes took %v, want about 25 s", took)
		}
	})
}

// Compute counts writes of each instance on its own, and its refusal has another
// form than ARM's.
func TestWritesOfAnInstanceAreThrottled(t *testing.T) {
	inBubble(t, core.Options{Throttle: true}, func(a *local) {
		a.group()
		givenScaleSet(a, 2)
		all := instances(a, "")
		hasty := a.and(noRetries).compute.NewVirtualMachineScaleSetVMsClient()
		write := func(one *armcompute.VirtualMachineScaleSetVM) error {
			_, err := hasty.BeginUpdate(a.Context(), group, "vmss", *one.InstanceID, *one, nil)
			return err
		}
		passed, refusal := throttled(a, "OperationNotAllowed", func(int) error { return write(all[0]) })
		if passed != 12 {
			a.Errorf("%d writes of an instance passed, want the bucket's 12", passed)
		}
		a.must(write(all[1]))
		<-time.After(retryAfter(a, refusal))
		a.must(write(all[0]))
	})
}
