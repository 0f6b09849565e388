package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localcluster/site"
)

// createSite creates the resources of a cluster in a local Azure.
func createSite(t *testing.T, a *Server, nodes int) site.Site {
	t.Helper()
	arm, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	s := site.New(a.Info().Tenant, a.Info().Subscription, 1)
	if err := s.Create(t.Context(), arm, nodes, false, func(azure.ID, time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	return s
}

// metadataOf sends a request as programs on a machine do.
func metadataOf(t *testing.T, base, path string, header ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return readJSON(t, http.DefaultClient, r)
}

// A single value of the metadata is a text, also one inside of another.
func TestLeafMetadata(t *testing.T) {
	a := startServer(t, Options{})
	cluster := createSite(t, a, 1)
	base := a.Info().ARMHTTP + "/vm" + string(cluster.ScaleSet("nodes0").Child("virtualMachines", "0"))
	_, body := metadataOf(t, base, "/metadata/instance?api-version=2021-02-01", "Metadata", "True")
	for path, want := range map[string]any{
		"name": behaviour.At(body, "compute.name"), "osProfile/computerName": behaviour.At(body, "compute.osProfile.computerName"),
		"osProfile": nil, "osProfile/none": nil, "name/none": nil, "osProfile/computerName/none": nil,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			base+"/metadata/instance/compute/"+path+"?api-version=2021-02-01&format=text", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Metadata", "true")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if want == nil && answer.StatusCode != http.StatusNotFound || want != nil && (want == "" || string(text) != want) {
			t.Errorf("%s: %s %q, want %v", path, answer.Status, text, want)
		}
	}
}

func TestInstanceMetadata(t *testing.T) {
	a := startServer(t, Options{})
	cluster := createSite(t, a, 3)
	machine := cluster.ScaleSet("nodes0").Child("virtualMachines", "1")
	base := a.Info().ARMHTTP + "/vm" + string(machine)
	status, body := metadataOf(t, base, "/metadata/instance?format=json&api-version=2021-10-01", "Metadata", "True")
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	got := map[string]any{}
	for _, path := range []string{
		"compute.azEnvironment", "compute.location", "compute.name", "compute.osType", "compute.platformFaultDomain",
		"compute.resourceGroupName",
		"compute.resourceId", "compute.subscriptionId", "compute.vmScaleSetName", "compute.vmSize", "compute.zone",
	} {
		got[path] = behaviour.At(body, path)
	}
	want := map[string]any{
		"compute.azEnvironment": "AzurePublicCloud", "compute.location": "westeurope", "compute.name": "nodes0_1",
		"compute.osType":              "Linux",
		"compute.platformFaultDomain": "0", "compute.resourceGroupName": "kaz", "compute.resourceId": string(machine),
		"compute.subscriptionId": cluster.Subscription, "compute.vmScaleSetName": "nodes0", "compute.vmSize": "Standard_D2s_v5",
		"compute.zone": "2",
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
		{"/metadata/identity/oauth2/token?api-version=2018-02-01&resource=x",
			[]string{"Metadata", "true", "X-IDENTITY-HEADER", a.Info().IdentityHeader}, 400}, // it has no identity
	} {
		if status, body := metadataOf(t, base, c.path, c.header...); status != c.status {
			t.Errorf("%s %v: %d %v, want %d", c.path, c.header, status, body, c.status)
		}
	}
	if status, body := metadataOf(t, a.Info().ARMHTTP+"/vm"+string(machine)+"9", "/metadata/instance?api-version=2021-10-01", "Metadata",
		"true"); status != 404 {
		t.Errorf("no such machine: %d %v", status, body)
	}
}

// A machine has its own identity or the identity of its scale set.
func TestMachineIdentity(t *testing.T) {
	a := startServer(t, Options{})
	cluster := createSite(t, a, 1)
	arm, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	named := cluster.Group().Resource("Microsoft.ManagedIdentity/userAssignedIdentities", "nodes")
	other := cluster.Group().Resource("Microsoft.ManagedIdentity/userAssignedIdentities", "other")
	for _, id := range []azure.ID{named, other} {
		if _, err := arm.Put(t.Context(), azure.Write{ID: id, Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	identity := `{"identity":{"type":"UserAssigned","userAssignedIdentities":{"` + string(named) + `":{}}}}`
	if _, err := arm.Patch(t.Context(), azure.Write{ID: cluster.ScaleSet("nodes0"), Body: azure.Document(identity)}); err != nil {
		t.Fatal(err)
	}
	service := a.Metadata(cluster.ScaleSet("nodes0").Child("virtualMachines", "0").Child("networkInterfaces", "nic"))
	const path = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/"
	for query, want := range map[string]int{"": 200, "&msi_res_id=" + string(named): 200, "&mi_res_id=" + string(other): 400,
		"&client_id=" + a.Info().ClientID: 400} {
		status, body := asMachine(t, service, path+query)
		if status != want {
			t.Errorf("%q: %d %v, want %d", query, status, body, want)
		}
		if status != http.StatusOK {
			continue
		}
		if status, body := groups(t, clientOf(t, a, false), a.Info().ARM, a.Info().Subscription,
			body["access_token"].(string)); status != http.StatusOK {
			t.Errorf("%q: with the token: %d %v", query, status, body)
		}
	}
	if status, body := asMachine(t, service, strings.Replace(path, "169.254.169.254", "rebound.example.com", 1)); status != 421 {
		t.Errorf("another host: %d %v", status, body)
	}
}

// asMachine sends a request to the metadata service of a machine.
func asMachine(t *testing.T, service http.Handler, url string) (status int, body map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	r.Header.Set("Metadata", "true")
	w := httptest.NewRecorder()
	service.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, body
}

func TestEndpointMetadata(t *testing.T) {
	a := startServer(t, Options{})
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
	resp, err := clientOf(t, a, false).Get(info.ARM + "/metadata/endpoints?api-version=2019-05-01")
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
		if c.ResourceManager != info.ARM || c.Authentication.LoginEndpoint != info.ARM+"/" || len(c.Authentication.Audiences) == 0 ||
			c.Suffixes["acrLoginServer"] == "" || c.Suffixes["storage"] == "" {
			t.Errorf("%+v", c)
		}
	}
	if diff := cmp.Diff([]string{"AzurePublicCloud", "AzureCloud", "AzureChinaCloud", "AzureUSGovernmentCloud", "AzureUSGovernment",
		"AzureStackCloud"}, names); diff != "" {
		t.Error(diff)
	}
	// Clients of the plain endpoint get the login over TLS, because they require it.
	status, body := metadataOf(t, info.ARMHTTP, "/metadata/endpoints?api-version=2022-09-01")
	if status != http.StatusOK || body["resourceManager"] != info.ARMHTTP ||
		behaviour.Text(body, "authentication.loginEndpoint") != info.ARM+"/" {
		t.Errorf("%d %v", status, body)
	}
}
