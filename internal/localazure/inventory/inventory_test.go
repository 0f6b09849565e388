package inventory_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/site"
)

func TestMachines(t *testing.T) {
	a, err := server.Start(t.Context(), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	client, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	changed := inventory.Changes(ctx, a.Emulator())
	cluster := site.New(a.Info().Tenant, a.Info().Subscription, 1)
	create := func(nodes int, scaleExisting bool) {
		t.Helper()
		if err := cluster.Create(t.Context(), client, nodes, scaleExisting, func(azure.ID, time.Duration) {}); err != nil {
			t.Fatal(err)
		}
		awaitChange(t, changed)
	}
	create(2, false)
	want := []inventory.Machine{
		{Name: "nodes0-000000", Running: true, VCPUs: 2, Memory: 8 << 30, DataDisks: 4,
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.4")}},
		{Name: "nodes0-000001", Running: true, VCPUs: 2, Memory: 8 << 30, DataDisks: 4,
			Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.5")}},
	}
	for i := range want {
		want[i].ID = cluster.ScaleSet("nodes0").Child("virtualMachines", strconv.Itoa(i))
		want[i].NICs = []azure.ID{want[i].ID.Child("networkInterfaces", "nic")}
	}
	var since []string
	check := func() {
		t.Helper()
		since = nil
		got, err := inventory.List(t.Context(), a.Emulator())
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			since = append(since, got[i].Since)
			got[i].Since = ""
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Error(diff)
		}
	}
	check()
	post := func(action string, running bool) {
		t.Helper()
		if _, err := client.Post(t.Context(), want[1].ID, action, nil); err != nil {
			t.Fatal(err)
		}
		awaitChange(t, changed)
		want[1].Running = running
		check()
	}
	post("powerOff", false)
	post("start", true)
	before := since[1]
	post("restart", true)
	if since[1] == before {
		t.Error("Since is the same after a restart")
	}
	post("deallocate", false)
	create(1, true)
	want = want[:1]
	check()
	want = append(want, createMachine(t, client, cluster, "Gateway"))
	awaitChange(t, changed)
	check()
}

// createMachine creates a virtual machine outside any scale set.
func createMachine(t *testing.T, client *arm.Client, s site.Site, name string) inventory.Machine {
	t.Helper()
	nic, vm := s.Network("networkInterfaces", name), s.Group().Resource("Microsoft.Compute/virtualMachines", name)
	subnet := s.Network("virtualNetworks", s.VNet).Child("subnets", s.Subnet)
	for _, w := range []azure.Write{
		{ID: nic, Body: fmt.Appendf(nil, `{"location":%q,"properties":{"ipConfigurations":[
			{"name":"ipconfig","properties":{"primary":true,"subnet":{"id":%q}}}]}}`, s.Location, subnet)},
		{ID: vm, Body: fmt.Appendf(nil, `{"location":%q,"properties":{
			"hardwareProfile":{"vmSize":"Standard_D4s_v5"},
			"osProfile":{"computerName":%q,"adminUsername":"kaz","adminPassword":"Pa55word-%s"},
			"storageProfile":{"osDisk":{"createOption":"FromImage"},
				"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts","sku":"server","version":"latest"}},
			"networkProfile":{"networkInterfaces":[{"id":%q}]}}}`, s.Location, name, name, nic)},
	} {
		if _, err := client.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	return inventory.Machine{
		ID: vm, Name: strings.ToLower(name), Running: true, VCPUs: 4, Memory: 16 << 30, DataDisks: 8,
		NICs: []azure.ID{nic}, Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.5")},
	}
}

func awaitChange(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("no change was reported")
	}
}
