package reconcile_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// What follows is a small component that is no load balancer: volumes on a machine. Each volume is a disk, and an
// element of the machine's list of data disks. The list is keyed by the logical unit number (lun) and holds disks of
// others too. The component shows what the core offers: a planner, group commit, ownership, outputs and resources
// made anew.
type (
	disk struct {
		SizeGB   int    `json:"diskSizeGB,omitempty"`
		Grade    string `json:"grade,omitempty"` // cannot be changed
		UniqueID string `json:"uniqueId,omitempty" azure:"read"`
	}
	host struct {
		DataDisks []dataDisk `json:"dataDisks,omitempty" azure:"key=lun"`
	}
	dataDisk struct {
		LUN     int              `json:"lun"`
		Name    string           `json:"name,omitempty"`
		Managed *azure.Reference `json:"managedDisk,omitempty" azure:"required"`
		// Serial is the disk's name inside the machine, which Azure chooses.
		Serial string `json:"serial,omitempty"`
	}
)

var hostID = group.Resource("C/virtualMachines", "vm")

func diskID(volume string) azure.ID { return group.Resource("C/disks", "pvc-"+volume) }

// volume is what a caller wants of a volume.
type volume struct {
	Name, Grade string
	SizeGB      int
	Gone        bool
}

// isVolume is the owner of the machine's list.
func isVolume(d dataDisk) bool { return strings.HasPrefix(d.Name, "pvc-") }

// desired is the planner: the state after the changes.
func desired(have plan.Snapshot, changes []volume) (plan.Graph, error) {
	var g plan.Graph
	vm, _, err := plan.View[host](have, hostID)
	if err != nil {
		return g, err
	}
	changed := func(name string) bool {
		return slices.ContainsFunc(changes, func(v volume) bool { return "pvc-"+v.Name == name })
	}
	used, luns, attached := map[int]bool{}, map[string]int{}, []dataDisk{}
	for _, d := range vm.Properties.DataDisks {
		used[d.LUN], luns[d.Name] = true, d.LUN
		if isVolume(d) && !changed(d.Name) {
			attached = append(attached, d)
		}
	}
	free := func() (lun int) {
		for ; used[lun]; lun++ {
		}
		used[lun] = true
		return lun
	}
	for _, v := range changes {
		id := diskID(v.Name)
		if v.Gone {
			if err := g.Add(plan.Gone[disk](id, "volume "+v.Name+" was deleted", v.Name)); err != nil {
				return g, err
			}
			continue
		}
		n := plan.Wanted(azure.Resource[disk]{ID: id, Properties: disk{SizeGB: v.SizeGB, Grade: v.Grade}}, "disk of volume "+v.Name, v.Name)
		n.Immutable = []string{"properties.grade"}
		if err := g.Add(n); err != nil {
			return g, err
		}
		lun, there := luns[id.Name()]
		if !there {
			lun = free()
		}
		attached = append(attached,
			dataDisk{LUN: lun, Name: id.Name(), Managed: azure.Ref(id), Serial: plan.Output(id, "properties.uniqueId")})
	}
	return g, g.Add(plan.Wanted(azure.Resource[host]{ID: hostID, Properties: host{DataDisks: attached}}, "volumes of the machine").
		Owning(azure.Ours(isVolume)))
}

// volumes is the component: callers that come together are served by one write.
func volumes(w reconcile.Azure) *reconcile.Coalescer[volume, string] {
	return reconcile.NewCoalescer(func(ctx context.Context, _ string, batch []volume) ([]string, error) {
		needs := reconcile.Needs{Resources: []azure.ID{hostID}}
		for _, v := range batch {
			needs.Resources = append(needs.Resources, diskID(v.Name))
		}
		have, err := reconcile.Take(ctx, w, needs)
		if err != nil {
			return nil, err
		}
		g, err := desired(have, batch)
		if err != nil {
			return nil, err
		}
		p, err := plan.Diff(have, g)
		if err != nil {
			return nil, err
		}
		if err := reconcile.Apply(ctx, w, p).Err(); err != nil {
			return nil, err
		}
		answers := make([]string, len(batch))
		for i, v := range batch {
			answers[i] = diskID(v.Name).Name()
		}
		return answers, nil
	})
}

// machineWithForeignDisk is an Azure that has a machine with a foreign disk, and that refuses to
// delete a disk which is attached.
func machineWithForeignDisk() *ledger {
	l := newLedger()
	l.store(hostID, map[string]any{"location": "westeurope", "properties": map[string]any{"dataDisks": []any{
		map[string]any{"lun": 1, "name": "theirs", "caching": "None", "toBeDetached": false},
	}}})
	l.before = func(l *ledger, op string, id azure.ID) error {
		text, err := json.Marshal(l.docs[hostID.Key()])
		if op == "delete" && strings.Contains(string(text), string(id)) {
			return &azure.Error{Kind: azure.InUse, ID: id}
		}
		return err
	}
	return l
}

// attachments are the machine's data disks as "lun name serial", and how often the
// machine was written.
func (l *ledger) attachments(t *testing.T) (disks []string, writes int) {
	t.Helper()
	text, err := json.Marshal(l.docs[hostID.Key()])
	if err != nil {
		t.Fatal(err)
	}
	vm, err := azure.Decode[host](text)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(vm.Properties.DataDisks, func(a, b dataDisk) int { return cmp.Compare(a.LUN, b.LUN) })
	for _, d := range vm.Properties.DataDisks {
		disks = append(disks, fmt.Sprintf("%d %s %s", d.LUN, d.Name, d.Serial))
	}
	if !strings.Contains(string(text), `{"caching":"None","lun":1,"name":"theirs","toBeDetached":false}`) {
		t.Errorf("the foreign disk was touched: %s", text)
	}
	for _, line := range l.log {
		if line == "put vm" {
			writes++
		}
	}
	return disks, writes
}

func (l *ledger) serial(volume string) string {
	properties, _ := l.docs[diskID(volume).Key()]["properties"].(map[string]any)
	return fmt.Sprint(properties["uniqueId"])
}

func TestComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := machineWithForeignDisk()
		c := volumes(l)
		defer c.Close()
		submit := func(all ...volume) {
			var callers sync.WaitGroup
			for _, v := range all {
				callers.Go(func() {
					if name, err := c.Submit(t.Context(), "vm", v); err != nil || name != "pvc-"+v.Name {
						t.Errorf("volume %s: %q, %v", v.Name, name, err)
					}
				})
				synctest.Wait() // in this order
			}
			callers.Wait()
		}
		check := func(when string, most int, want ...string) {
			t.Helper()
			got, writes := l.attachments(t)
			if !slices.Equal(got, want) || writes > most {
				t.Errorf("%s: %d writes, want at most %d; disks %q, want %q", when, writes, most, got, want)
			}
			l.log = nil
		}
		const theirs = "1 theirs "

		// The first volume is served alone, the others together meanwhile. An attachment names the serial that Azure
		// chose for its disk.
		submit(volume{Name: "a", SizeGB: 8}, volume{Name: "b", SizeGB: 8}, volume{Name: "c", SizeGB: 8}, volume{Name: "d", SizeGB: 8})
		check("attached", 2, "0 pvc-a "+l.serial("a"), theirs, "2 pvc-b "+l.serial("b"), "3 pvc-c "+l.serial("c"), "4 pvc-d "+l.serial("d"))

		// The same request once more causes no write.
		submit(volume{Name: "b", SizeGB: 8})
		check("again", 0, "0 pvc-a "+l.serial("a"), theirs, "2 pvc-b "+l.serial("b"), "3 pvc-c "+l.serial("c"), "4 pvc-d "+l.serial("d"))

		// A disk with another grade is made anew: detached, deleted, created, and attached where it was.
		before := l.serial("c")
		submit(volume{Name: "c", SizeGB: 8, Grade: "premium"})
		if want := []string{"put vm", "delete pvc-c", "put pvc-c", "put vm"}; !slices.Equal(l.log, want) {
			t.Errorf("another grade: %q, want %q", l.log, want)
		}
		if l.serial("c") == before {
			t.Error("the disk is the same as before")
		}
		check("another grade", 2, "0 pvc-a "+l.serial("a"), theirs, "2 pvc-b "+l.serial("b"), "3 pvc-c "+l.serial("c"), "4 pvc-d "+
			l.serial("d"))

		// A deleted volume is detached before it is deleted.
		submit(volume{Name: "a", Gone: true})
		if want := []string{"put vm", "delete pvc-a"}; !slices.Equal(l.log, want) {
			t.Errorf("gone: %q, want %q", l.log, want)
		}
		check("gone", 1, theirs, "2 pvc-b "+l.serial("b"), "3 pvc-c "+l.serial("c"), "4 pvc-d "+l.serial("d"))
	})
}
