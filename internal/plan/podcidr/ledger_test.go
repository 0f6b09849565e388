package podcidr_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/podcidr"
)

func dual() []netip.Prefix { return []netip.Prefix{pfx("10.244.0.0/16"), pfx("fd00::/48")} }

func TestANodeGetsABlockOfEachFamily(t *testing.T) {
	l := podcidr.NewLedger(dual(), nil)
	got, err := l.Assign("a", "1", []int{24, 64})
	if err != nil || !slices.Equal(got, []netip.Prefix{pfx("10.244.0.0/24"), pfx("fd00::/64")}) {
		t.Fatal(got, err)
	}
	again, err := l.Assign("a", "1", []int{26, 64})
	if err != nil || !slices.Equal(got, again) {
		t.Errorf("asked again: %v %v", again, err)
	}
	other, err := l.Assign("a", "2", []int{24, 64}) // another node of the same name
	if err != nil || slices.Equal(got, other) {
		t.Errorf("another node of that name: %v %v", other, err)
	}
	if !l.Forget("a") || l.Forget("a") || l.Used(0) != 0 || l.Used(1) != 0 {
		t.Error("what was forgotten is held")
	}
}

func TestHalfANodesBlocksAreNotKept(t *testing.T) {
	l := podcidr.NewLedger([]netip.Prefix{pfx("10.244.0.0/24"), pfx("fd00::/64")}, nil)
	if _, err := l.Assign("a", "1", []int{25, 64}); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Assign("b", "2", []int{25, 64}); !errors.Is(err, podcidr.ErrExhausted) {
		t.Fatal(got, err)
	}
	if l.Used(0) != 0.5 {
		t.Errorf("%v of the first range is held", l.Used(0))
	}
	if _, err := l.Assign("c", "3", []int{8, 64}); err == nil || errors.Is(err, podcidr.ErrExhausted) {
		t.Errorf("a block larger than the range: %v", err)
	}
}

func TestNodesThatHaveBlocksAlready(t *testing.T) {
	l := podcidr.NewLedger(dual(), nil)
	for name, test := range map[string]struct {
		cidrs []string
		want  string // problem
	}{
		"fits":        {[]string{"10.244.0.0/24", "fd00::/64"}, ""},
		"of former":   {[]string{"192.168.1.0/24"}, podcidr.ReasonOutside},
		"garbage":     {[]string{"nonsense"}, podcidr.ReasonInvalid},
		"shared":      {[]string{"10.244.0.0/24"}, ""},
		"other sizes": {[]string{"10.244.2.0/25"}, ""},
	} {
		var reasons []string
		for _, p := range l.Record(name, name, test.cidrs) {
			reasons = append(reasons, p.Reason)
		}
		if strings.Join(reasons, " ") != test.want {
			t.Errorf("%s: %v", name, reasons)
		}
	}
	l.Forget("fits") // "shared" still holds it
	for i := range 4 {
		got, err := l.Assign(fmt.Sprint(i), "", []int{24, 64})
		if err != nil || got[0] == pfx("10.244.0.0/24") || got[0] == pfx("10.244.2.0/24") {
			t.Error(got, err)
		}
	}
}

// TestNothingIsGivenOutTwice checks that reserved and held blocks are never assigned, also if sizes
// change or the controller restarts.
func TestNothingIsGivenOutTwice(t *testing.T) {
	ranges, services := []netip.Prefix{pfx("10.0.0.0/16")}, pfx("10.0.0.0/20")
	rapid.Check(t, func(t *rapid.T) {
		l := podcidr.NewLedger(ranges, []netip.Prefix{services})
		has := map[string]netip.Prefix{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "node"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				l.Forget(name)
				delete(has, name)
			case 1: // the controller restarts
				l = podcidr.NewLedger(ranges, []netip.Prefix{services})
				for n, block := range has {
					l.Record(n, n, []string{block.String()})
				}
			default:
				got, err := l.Assign(name, name, []int{rapid.IntRange(20, 28).Draw(t, "bits")})
				if err != nil {
					t.Fatal(i, err)
				}
				if got[0].Overlaps(services) {
					t.Fatalf("%v is of the Services' %v", got[0], services)
				}
				for n, block := range has {
					if n != name && block.Overlaps(got[0]) {
						t.Fatalf("node %s has %v, node %s got %v", n, block, name, got[0])
					}
				}
				has[name] = got[0]
			}
		}
	})
}

func TestSizesFromTags(t *testing.T) {
	usual := []int{24, 64}
	for _, test := range []struct {
		tags     azure.Tags
		want     []int
		problems int
	}{
		{nil, []int{24, 64}, 0},
		{azure.Tags{"kubernetesNodeCIDRMaskIPV4": "26", "KUBERNETESNODECIDRMASKIPV6": "60"}, []int{26, 60}, 0},
		{azure.Tags{"kubernetesNodeCIDRMaskIPV4": "many"}, []int{24, 64}, 1},
		{azure.Tags{"kubernetesNodeCIDRMaskIPV4": "33", "kubernetesNodeCIDRMaskIPV6": "0"}, []int{24, 64}, 2},
	} {
		got, problems := podcidr.Sizes("n", test.tags, dual(), usual)
		if !slices.Equal(got, test.want) || len(problems) != test.problems {
			t.Errorf("%v: %v %v", test.tags, got, problems)
		}
	}
}

func TestTagsOfAMachinesSet(t *testing.T) {
	const group = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/"
	docs := []azure.Document{
		azure.Document(`{"id":"` + group + `virtualMachineScaleSets/uniform","tags":{"of":"uniform"}}`),
		azure.Document(`{"id":"` + group + `virtualMachineScaleSets/flex","tags":{"of":"flex"}}`),
		azure.Document(`{"id":"` + group + `availabilitySets/set","tags":{"of":"set"}}`),
		azure.Document(`{"id":"` + group + `virtualMachines/inflex","properties":{"virtualMachineScaleSet":{"id":"` + group +
			`virtualMachineScaleSets/FLEX"}}}`),
		azure.Document(`{"id":"` + group + `virtualMachines/inset","properties":{"availabilitySet":{"id":"` + group +
			`availabilitySets/set"}}}`),
		azure.Document(`{"id":"` + group + `virtualMachines/alone","properties":{}}`),
	}
	all := plan.NewSnapshot(docs...)
	for machine, want := range map[string]string{
		"virtualMachineScaleSets/uniform/virtualMachines/0": "uniform", "virtualMachines/inflex": "flex",
		"virtualMachines/inset": "set", "virtualMachines/alone": "", "virtualMachines/gone": "",
		"virtualMachineScaleSets/gone/virtualMachines/0": "",
	} {
		providerID := "azure://" + group + machine
		have := plan.NewSnapshot()
		for range 3 { // as the reads arrive
			for _, q := range podcidr.Needs(have, providerID) {
				have = have.With(all.List(q.Scope, q.Type)...)
			}
		}
		tags, err := podcidr.TagsOf(have, providerID)
		if err != nil || tags["of"] != want {
			t.Errorf("%s: %v %v", machine, tags, err)
		}
	}
	if q := podcidr.Needs(all, "aws:///eu-west-1a/i-1"); len(q) > 0 {
		t.Error(q)
	}
}
