package nodegroup_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/poolnode"
)

// TestReadInstance has the scenarios S28, S29 and S30.
func TestReadInstance(t *testing.T) {
	tests := []struct {
		name, state, statuses, extension string
		before                           nodegroup.State
		isNode                           bool
		want                             nodegroup.State
		code, called, kind               string
		class                            nodegroup.Class
	}{
		{name: "made", state: "Succeeded", statuses: "PowerState/running", want: nodegroup.Running},
		{name: "being made", state: "Creating", want: nodegroup.Creating},
		{name: "being deleted", state: "Deleting", statuses: "PowerState/running", want: nodegroup.Deleting},
		{name: "S28 updated", state: "Updating", before: nodegroup.Running, want: nodegroup.Running},
		{name: "S28 updated while it was made", state: "Updating", before: nodegroup.Creating, want: nodegroup.Creating},
		{name: "updated, new", state: "Updating", want: nodegroup.Running},
		{name: "S29 failed, never a node", state: "Failed", statuses: "PowerState/stopped", want: nodegroup.Creating,
			code: nodegroup.FailedState, class: nodegroup.OutOfResources},
		{name: "S29 failed, runs", state: "Failed", statuses: "PowerState/running", want: nodegroup.Running},
		{name: "failed, a node", state: "Failed", isNode: true, want: nodegroup.Running},
		{name: "S30 the node did not boot", state: "Succeeded", statuses: "PowerState/running", extension: "Error", want: nodegroup.Creating,
			code: "VMExtensionProvisioningFailed", class: nodegroup.Other},
		{name: "the node of kaz cluster did not boot", state: "Succeeded", statuses: "PowerState/running", extension: "Error",
			called: poolnode.BootExtension, want: nodegroup.Creating, code: "VMExtensionProvisioningFailed", class: nodegroup.Other},
		{name: "the script of another distribution failed", state: "Succeeded", statuses: "PowerState/running", extension: "Error",
			called: "cse0", kind: "Microsoft.Azure.Extensions.CustomScript", want: nodegroup.Creating, code: "VMExtensionProvisioningFailed",
			class: nodegroup.Other},
		{name: "an extension that does not boot a node failed", state: "Succeeded", statuses: "PowerState/running", extension: "Error",
			called: "monitor", kind: "Microsoft.Azure.Monitor.AzureMonitorLinuxAgent", want: nodegroup.Running},
		{name: "an extension that is well", state: "Succeeded", extension: "Info", want: nodegroup.Running},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			machine := azure.Resource[compute.ScaledInstance]{ID: "/subscriptions/s/resourceGroups/g/providers/x"}
			machine.Properties.ProvisioningState = test.state
			machine.Properties.InstanceView = &compute.InstanceHealth{Statuses: []compute.HealthStatus{{Code: test.statuses}}}
			if test.extension != "" {
				machine.Properties.InstanceView.Extensions = []compute.ExtensionHealth{{Name: cmp.Or(test.called, "vmssCSE"), Type: test.kind,
					Statuses: []compute.HealthStatus{{Level: test.extension, Message: strings.Repeat("exit 50 ", 200)}}}}
			}
			i := nodegroup.ReadInstance(machine, nodegroup.Observed{
				Before:     func(azure.ID) nodegroup.State { return test.before },
				Registered: func(azure.ID) bool { return test.isNode },
				Reason:     func(azure.ID) (nodegroup.Failure, bool) { return nodegroup.Failure{}, false },
			})
			if i.State != test.want || (i.Failure == nil) != (test.code == "") {
				t.Fatalf("%+v", i)
			}
			if f := i.Failure; f != nil && (f.Code != test.code || f.Class != test.class || len(f.Message) > 1024) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestFailureOf checks which errors are failures, and of which class.
func TestFailureOf(t *testing.T) {
	tests := []struct {
		status        int
		code, message string
		want          string
		class         nodegroup.Class
	}{
		{409, "OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota", "QuotaExceeded", nodegroup.OutOfResources},
		{409, "AllocationFailed", "", "AllocationFailed", nodegroup.OutOfResources},
		{409, "ZonalAllocationFailed", "", "ZonalAllocationFailed", nodegroup.OutOfResources},
		{409, "OverconstrainedAllocationRequest", "", "OverconstrainedAllocationRequest", nodegroup.OutOfResources},
		{409, "SkuNotAvailable", "", "SkuNotAvailable", nodegroup.OutOfResources},
		{400, "SubnetIsFull", "", "QuotaExceeded", nodegroup.OutOfResources},
		{0, "SpotEvicted", "", "SpotEvicted", nodegroup.OutOfResources},
		{403, "AuthorizationFailed", "", "AuthorizationFailed", nodegroup.Other},
		{403, "RequestDisallowedByPolicy", "", "RequestDisallowedByPolicy", nodegroup.Other},
		{409, "ScopeLocked", "", "ScopeLocked", nodegroup.Other},
		{400, "InvalidParameter", "", "InvalidParameter", nodegroup.Other},
		{429, "TooManyRequests", "", "", 0},
		{500, "InternalServerError", "", "", 0},
		{409, "Conflict", "", "", 0},
		{412, "PreconditionFailed", "", "", 0},
		{0, "OperationPreempted", "", "", 0},
	}
	for _, test := range tests {
		err := &azure.Error{
			Kind: azure.ClassifyText(test.status, []string{test.code}, []string{test.message}), Code: test.code, Message: test.message,
		}
		f := nodegroup.FailureOf(errors.Join(errors.New("grow"), err))
		switch {
		case f == nil && test.want != "", f != nil && test.want == "":
			t.Errorf("%s: %+v", test.code, f)
		case f != nil && (f.Code != test.want || f.Class != test.class):
			t.Errorf("%s: %+v", test.code, f)
		}
	}
}

// TestAccount checks sizes of groups, and the scenario S27.
func TestAccount(t *testing.T) {
	instances := func(states string) (all []nodegroup.Instance) {
		for n, s := range states {
			i := nodegroup.Instance{ID: azure.ID("/i/" + string(rune('a'+n))), State: nodegroup.Running}
			switch s {
			case 'd':
				i.State = nodegroup.Deleting
			case 'o':
				i.Deallocated = true
			case 'l':
				i.Key = "leaves"
			}
			all = append(all, i)
		}
		return all
	}
	tests := []struct {
		name            string
		account         nodegroup.Account
		target, surplus int
	}{
		{"quiet", nodegroup.Account{Capacity: 3, Instances: instances("rrr")}, 3, 0},
		{"growing", nodegroup.Account{Capacity: 5, Instances: instances("rrr")}, 5, 0},
		{"queued", nodegroup.Account{Capacity: 3, Instances: instances("rrr"), Queued: 2}, 5, 0},
		{"deallocated machines count for the capacity alone", nodegroup.Account{Capacity: 4, Instances: instances("rroo")}, 2, 0},
		{"deletion that the capacity still counts", nodegroup.Account{Capacity: 3, Instances: instances("rrd")}, 2, 0},
		{"deletion that it does not count", nodegroup.Account{Capacity: 2, Instances: instances("rrd")}, 2, 0},
		{"leaving", nodegroup.Account{Capacity: 3, Instances: instances("rrl")}, 2, 0},
		{"waived", nodegroup.Account{Capacity: 5, Instances: instances("rrr"), Waived: 2}, 3, 0},
		{"refused", nodegroup.Account{Capacity: 3, Instances: instances("rrr"), Refused: 2}, 5, 0},
		{"S27 overprovisioned", nodegroup.Account{Capacity: 3, Instances: instances("rrrrr")}, 3, 2},
	}
	for _, test := range tests {
		test.account.Leaving = func(i nodegroup.Instance) bool { return i.Key == "leaves" }
		if target, surplus := test.account.Target(), len(test.account.Surplus()); target != test.target || surplus != test.surplus {
			t.Errorf("%s: target %d, surplus %d, want %d and %d", test.name, target, surplus, test.target, test.surplus)
		}
	}
	if got := nodegroup.Lower(10, 8, 3); got != 8 {
		t.Errorf("lowered to %d: some of 8 machines would be deleted", got)
	}
}
