package local

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// laySite makes a cluster's infrastructure in a local Azure.
func laySite(t *testing.T, a *Azure, nodes int) Site {
	t.Helper()
	door, err := a.Door()
	if err != nil {
		t.Fatal(err)
	}
	site := newSite(a.Info().Tenant, a.Info().Subscription, 1)
	if err := site.lay(t.Context(), door, nodes, false, func(azure.ID, time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	return site
}

func post(t *testing.T, a *Azure, id azure.ID, action string) {
	t.Helper()
	door, err := a.Door()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := door.Post(t.Context(), id, action, nil); err != nil {
		t.Fatal(err)
	}
}

func TestMachines(t *testing.T) {
	a := startAzure(t, AzureOptions{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	changed := a.machineChanges(ctx)
	site := laySite(t, a, 2)
	awaitChange(t, changed)
	want := []machine{
		{Name: "nodes0-000000", Running: true, VCPUs: 2, Memory: 8 << 30, Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.4")}},
		{Name: "nodes0-000001", Running: true, VCPUs: 2, Memory: 8 << 30, Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.5")}},
	}
	for i := range want {
		want[i].ID = site.scaleSet("nodes0").Child("virtualMachines", strconv.Itoa(i))
		want[i].NICs = []azure.ID{want[i].ID.Child("networkInterfaces", "nic")}
	}
	var since []string
	check := func() {
		t.Helper()
		since = nil
		got, err := a.machines(t.Context())
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
	instance := site.scaleSet("nodes0").Child("virtualMachines", "1")
	post(t, a, instance, "powerOff")
	awaitChange(t, changed)
	want[1].Running = false
	check()
	post(t, a, instance, "start")
	awaitChange(t, changed)
	want[1].Running = true
	check()
	before := since[1]
	post(t, a, instance, "restart")
	awaitChange(t, changed)
	check()
	if since[1] == before {
		t.Error("a restart cannot be seen")
	}
	post(t, a, instance, "deallocate")
	awaitChange(t, changed)
	want[1].Running = false
	check()
	door, err := a.Door()
	if err != nil {
		t.Fatal(err)
	}
	if err := site.lay(t.Context(), door, 1, true, func(azure.ID, time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, changed)
	want = want[:1]
	check()
	want = append(want, layMachine(t, door, site, "Gateway"))
	awaitChange(t, changed)
	check()
}

// layMachine makes a virtual machine that belongs to no scale set.
func layMachine(t *testing.T, d door, site Site, name string) machine {
	t.Helper()
	nic, vm := site.network("networkInterfaces", name), site.group().Resource("Microsoft.Compute/virtualMachines", name)
	for _, s := range []seed{
		{nic, object{"location": site.Location, "properties": object{"ipConfigurations": []object{{"name": "ipconfig", "properties": object{
			"primary": true, "subnet": object{"id": site.network("virtualNetworks", site.VNet).Child("subnets", site.Subnet)},
		}}}}}},
		{vm, object{"location": site.Location, "properties": object{
			"hardwareProfile": object{"vmSize": "Standard_D4s_v5"},
			"osProfile":       object{"computerName": name, "adminUsername": "kaz", "adminPassword": "Pa55word-" + name},
			"storageProfile": object{
				"osDisk":         object{"createOption": "FromImage"},
				"imageReference": object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
			},
			"networkProfile": object{"networkInterfaces": []object{{"id": nic}}},
		}}},
	} {
		if _, err := create(t.Context(), d, s, func(azure.ID, time.Duration) {}); err != nil {
			t.Fatal(err)
		}
	}
	return machine{
		ID: vm, Name: strings.ToLower(name), Running: true, VCPUs: 4, Memory: 16 << 30,
		NICs: []azure.ID{nic}, Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.5")},
	}
}

func awaitChange(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("no change was heard of")
	}
}

// metadataOf asks as software on a machine does.
func metadataOf(t *testing.T, base, path string, header ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return resp.StatusCode, body
}

func TestInstanceMetadata(t *testing.T) {
	a := startAzure(t, AzureOptions{})
	site := laySite(t, a, 3)
	machine := site.scaleSet("nodes0").Child("virtualMachines", "1")
	base := a.Info().ARMHTTP + "/vm" + string(machine)
	status, body := metadataOf(t, base, "/metadata/instance?format=json&api-version=2021-10-01", "Metadata", "True")
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	got := map[string]any{}
	for _, path := range []string{
		"compute.azEnvironment", "compute.location", "compute.name", "compute.osType", "compute.platformFaultDomain", "compute.resourceGroupName",
		"compute.resourceId", "compute.subscriptionId", "compute.vmScaleSetName", "compute.vmSize", "compute.zone",
	} {
		got[path] = behaviour.At(body, path)
	}
	want := map[string]any{
		"compute.azEnvironment": "AzurePublicCloud", "compute.location": "westeurope", "compute.name": "nodes0_1", "compute.osType": "Linux",
		"compute.platformFaultDomain": "0", "compute.resourceGroupName": "kaz", "compute.resourceId": string(machine),
		"compute.subscriptionId": site.Subscription, "compute.vmScaleSetName": "nodes0", "compute.vmSize": "Standard_D2s_v5", "compute.zone": "2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	network, _ := behaviour.At(body, "network.interface").([]any)
	if len(network) != 1 {
		t.Fatalf("interfaces: %v", network)
	}
	nic := network[0].(map[string]any)
	if diff := cmp.Diff(map[string]any{
		"ipAddress": []any{map[string]any{"privateIpAddress": "10.240.0.5", "publicIpAddress": ""}},
		"subnet":    []any{map[string]any{"address": "10.240.0.0", "prefix": "16"}},
	}, nic["ipv4"]); diff != "" {
		t.Error(diff)
	}
	if mac, _ := nic["macAddress"].(string); len(mac) != 12 {
		t.Errorf("macAddress %q", mac)
	}
	for _, c := range []struct {
		path   string
		header []string
		status int
	}{
		{"/metadata/loadbalancer?format=json&api-version=2020-10-01", []string{"Metadata", "true"}, 200},
		{"/metadata/instance/compute?api-version=2021-10-01", []string{"Metadata", "true"}, 200},
		{"/metadata/instance?api-version=2021-10-01", nil, 400},
		{"/metadata/instance", []string{"Metadata", "true"}, 400},
		{"/metadata/instance?api-version=2021-10-01", []string{"Metadata", "true", "X-Forwarded-For", "1.2.3.4"}, 400},
		{"/metadata/nothing?api-version=2021-10-01", []string{"Metadata", "true"}, 404},
		{"/metadata/identity/oauth2/token?api-version=2018-02-01&resource=x", []string{"Metadata", "true"}, 400}, // it has no identity
	} {
		if status, body := metadataOf(t, base, c.path, c.header...); status != c.status {
			t.Errorf("%s %v: %d %v, want %d", c.path, c.header, status, body, c.status)
		}
	}
	if status, body := metadataOf(t, a.Info().ARMHTTP+"/vm"+string(machine)+"9", "/metadata/instance?api-version=2021-10-01", "Metadata", "true"); status != 404 {
		t.Errorf("no such machine: %d %v", status, body)
	}
}

// A machine's identity is its own, or that of its scale set.
func TestMachineIdentity(t *testing.T) {
	a := startAzure(t, AzureOptions{})
	site := laySite(t, a, 1)
	door, err := a.Door()
	if err != nil {
		t.Fatal(err)
	}
	named := site.group().Resource("Microsoft.ManagedIdentity/userAssignedIdentities", "nodes")
	other := site.group().Resource("Microsoft.ManagedIdentity/userAssignedIdentities", "other")
	for _, id := range []azure.ID{named, other} {
		if _, err := door.Put(t.Context(), azure.Write{ID: id, Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	identity := `{"identity":{"type":"UserAssigned","userAssignedIdentities":{"` + string(named) + `":{}}}}`
	if _, err := door.Patch(t.Context(), azure.Write{ID: site.scaleSet("nodes0"), Body: azure.Document(identity)}); err != nil {
		t.Fatal(err)
	}
	path := "/vm" + string(site.scaleSet("nodes0").Child("virtualMachines", "0")) + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/"
	for query, want := range map[string]int{"": 200, "&msi_res_id=" + string(named): 200, "&mi_res_id=" + string(other): 400, "&client_id=" + a.Info().ClientID: 400} {
		status, body := metadataOf(t, a.Info().ARMHTTP, path+query, "Metadata", "true")
		if status != want {
			t.Errorf("%q: %d %v, want %d", query, status, body, want)
		}
		if status != http.StatusOK {
			continue
		}
		if status, body := groups(t, client(t, a, false), a.Info().ARM, a.Info().Subscription, body["access_token"].(string)); status != http.StatusOK {
			t.Errorf("%q: with the token: %d %v", query, status, body)
		}
	}
}

func TestEndpointMetadata(t *testing.T) {
	a := startAzure(t, AzureOptions{})
	info := a.Info()
	var all []struct {
		Name            string
		ResourceManager string
		Authentication  struct {
			LoginEndpoint string
			Audiences     []string
		}
		Suffixes map[string]string
	}
	resp, err := client(t, a, false).Get(info.ARM + "/metadata/endpoints?api-version=2019-05-01")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, c := range all {
		names = append(names, c.Name)
		if c.ResourceManager != info.ARM || c.Authentication.LoginEndpoint != info.ARM+"/" || len(c.Authentication.Audiences) == 0 || c.Suffixes["acrLoginServer"] == "" || c.Suffixes["storage"] == "" {
			t.Errorf("%+v", c)
		}
	}
	if diff := cmp.Diff([]string{"AzurePublicCloud", "AzureCloud", "AzureChinaCloud", "AzureUSGovernmentCloud", "AzureUSGovernment", "AzureStackCloud"}, names); diff != "" {
		t.Error(diff)
	}
	// Without TLS clients are led to the login over TLS, which they insist on.
	status, body := metadataOf(t, info.ARMHTTP, "/metadata/endpoints?api-version=2022-09-01")
	if status != http.StatusOK || body["resourceManager"] != info.ARMHTTP || behaviour.Text(body, "authentication.loginEndpoint") != info.ARM+"/" {
		t.Errorf("%d %v", status, body)
	}
}
