package nodegroup_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
)

// reporting returns a node group of which Azure reports a capacity, none if it is negative.
func reporting(t *testing.T, capacity int) nodegroup.Group {
	t.Helper()
	sku := `{"name":"Standard_D2s_v5"}`
	if capacity >= 0 {
		sku = fmt.Sprintf(`{"name":"Standard_D2s_v5","capacity":%d}`, capacity)
	}
	var set azure.Resource[compute.ScaleSetModel]
	text := `{"name":"pool","etag":"e","tags":{"min":"0","max":"20"},"sku":` + sku + `,"properties":{"virtualMachineProfile":{}}}`
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	selection, err := nodegroup.ParseSelection([]string{"0:20:pool"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := selection.Read(set)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// machinesOf returns machines by letters: r for one that is well, d for one that is being deleted, f for a failed one and a
// blank for one that is gone.
func machinesOf(letters string) (all []azure.Resource[compute.ScaledInstance]) {
	for n, letter := range letters {
		state := map[rune]string{'r': "Succeeded", 'd': "Deleting", 'f': "Failed"}[letter]
		if state == "" {
			continue
		}
		m := azure.Resource[compute.ScaledInstance]{ID: azure.ID(fmt.Sprintf("/instances/%d", n))}
		m.Properties.ProvisioningState = state
		all = append(all, m)
	}
	return all
}

func TestStatus(t *testing.T) {
	const set = "set" // Azure shows the scale set without its machines
	type event struct {
		machines string // set, or those that Azure lists
		reported int
		leaving  string // the numbers of machines
		busy     bool
		accepted int // Azure accepts this capacity before
	}
	tests := []struct {
		name     string
		events   []event
		capacity int
		doubt    string
	}{
		{"agrees", []event{{machines: "rrr", reported: 3}}, 3, ""},
		{"grows by another client", []event{{machines: "rrr", reported: 3}, {machines: set, reported: 5}}, 5, ""},
		{"0 once", []event{{machines: "rrr", reported: 3}, {machines: set, reported: 0}}, 3, "a capacity of 0, and 3 of its machines exist"},
		{"0 and right again", []event{{machines: "rrr", reported: 3}, {machines: set, reported: 0}, {machines: set, reported: 3}}, 3, ""},
		{"0 always", []event{{machines: "rrr", reported: 3}, {machines: "rrr", reported: 0}, {machines: "rrr", reported: 0}}, 3, "0, and 3"},
		{"absent", []event{{machines: "rrr", reported: 3}, {machines: "rrr", reported: -1}}, 3, "reports no capacity"},
		{"absent, without machines", []event{{machines: "", reported: -1}}, 0, "reports no capacity"},
		{"0 at first", []event{{machines: "rrr", reported: 0}}, 3, "0, and 3"},
		{"shrinks by another client", []event{{machines: "rrr", reported: 3}, {machines: "rdd", reported: 1}}, 1, ""},
		{"shrinks and is seen without its machines", []event{{machines: "rrr", reported: 3}, {machines: set, reported: 1}, {machines: "rdd", reported: 1}},
			1, ""},
		{"a machine is evicted", []event{{machines: "rrr", reported: 3}, {machines: "rr", reported: 2}}, 2, ""},
		{"a deletion that the capacity does not count", []event{{machines: "rrr", reported: 3}, {machines: "rrr", reported: 2, leaving: "0"}}, 2, ""},
		{"0 beside a deletion", []event{{machines: "rrr", reported: 3}, {machines: "rrd", reported: 0, leaving: "2"}}, 2, "0, and 2"},
		{"0 after a deletion", []event{{machines: "rrd", reported: 2}, {machines: "rr", reported: 0}}, 2, "0, and 2"},
		{"0 while machines are made", []event{{machines: "", reported: 0}, {accepted: 5, machines: "", reported: 0, busy: true}}, 5, "0, and 5 were"},
		{"0 always while machines are made", []event{{machines: "", reported: 0}, {accepted: 5, machines: "", reported: 0, busy: true},
			{machines: "", reported: 0, busy: true}}, 5, "0, and 5 were"},
		{"machines that are not made are taken back", []event{{machines: "r", reported: 5}, {machines: "r", reported: 1}}, 5, "1, and 5 were"},
		{"taken back, twice", []event{{machines: "r", reported: 5}, {machines: "r", reported: 1}, {machines: "r", reported: 1}}, 1, ""},
		{"taken back, two different answers", []event{{machines: "r", reported: 5}, {machines: "r", reported: 1}, {machines: "r", reported: 2}},
			5, "2, and 5 were"},
		{"more machines than asked for", []event{{machines: "r", reported: 1}, {accepted: 3, machines: "rrrrr", reported: 3, busy: true}}, 3, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := nodegroup.NewStatus(reporting(t, test.events[0].reported))
			for _, e := range test.events {
				if e.accepted > 0 {
					s = s.Accepted(e.accepted)
				}
				c := nodegroup.Circumstances{
					Leaving: func(i nodegroup.Instance) bool {
						return e.leaving != "" && strings.Contains(e.leaving, i.Name())
					},
					Registered: func(azure.ID) bool { return true }, Busy: e.busy,
				}
				if e.machines == set {
					s = s.Shown(reporting(t, e.reported), c)
				} else {
					s = s.Listed(reporting(t, e.reported), machinesOf(e.machines), c)
				}
			}
			if s.Capacity != test.capacity || (s.Doubt == "") != (test.doubt == "") || !strings.Contains(s.Doubt, test.doubt) {
				t.Errorf("capacity %d, doubt %q, want %d, %q", s.Capacity, s.Doubt, test.capacity, test.doubt)
			}
			if (s.Etag == "") != (s.Doubt != "") {
				t.Errorf("etag %q with doubt %q", s.Etag, s.Doubt)
			}
		})
	}
}

// TestFailedMachines checks that failed machines keep the reason of the operation that failed to make them, in every later
// list, and that the status before an event stays as it was.
func TestFailedMachines(t *testing.T) {
	c := nodegroup.Circumstances{
		Leaving:    func(nodegroup.Instance) bool { return false },
		Registered: func(azure.ID) bool { return false },
	}
	codes := func(s nodegroup.Status) (all []string) {
		for _, i := range s.Instances {
			if i.Failure != nil {
				all = append(all, i.Failure.Code)
			}
		}
		return all
	}
	want := func(what string, s nodegroup.Status, want ...string) {
		t.Helper()
		if got := codes(s); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	const why, other = "AllocationFailed", "SkuNotAvailable"
	listed := nodegroup.NewStatus(reporting(t, 3)).Listed(reporting(t, 3), machinesOf("rff"), c)
	want("listed", listed, nodegroup.FailedState, nodegroup.FailedState)
	failed, n := listed.Failed(nodegroup.Failure{Code: why})
	if n != 2 {
		t.Errorf("%d machines have the reason, want 2", n)
	}
	want("after the operation failed", failed, why, why)
	want("the status before", listed, nodegroup.FailedState, nodegroup.FailedState)
	again := failed.Listed(reporting(t, 3), machinesOf("rff"), c).Listed(reporting(t, 3), machinesOf("rff"), c)
	want("the third list", again, why, why)
	more, n := again.Listed(reporting(t, 4), machinesOf("rfff"), c).Failed(nodegroup.Failure{Code: other})
	if n != 1 {
		t.Errorf("%d machines have another reason, want 1", n)
	}
	want("another operation failed", more, why, why, other)
	want("a machine is gone", more.Listed(reporting(t, 3), machinesOf("r ff"), c), why, other)
	back := more.Listed(reporting(t, 3), machinesOf("r ff"), c).Listed(reporting(t, 4), machinesOf("rfff"), c)
	want("another machine with its number", back, nodegroup.FailedState, why, other)
}
