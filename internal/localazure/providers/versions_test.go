package providers_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestMembersOfVersions checks that answers show the members of their API version, and that newer members are refused.
func TestMembersOfVersions(t *testing.T) {
	s := newSite(t)
	const old, now, subnet = "?api-version=2023-05-01", "?api-version=2025-05-01", network + "/subnets/open"
	body := `{"properties":{"addressPrefix":"10.64.0.0/16","defaultOutboundAccess":false,"sharingScope":"DelegatedServices"}}`
	s.must("PUT", subnet+now, body)
	for _, path := range []string{subnet, network, network + "/subnets", group + "/providers/Microsoft.Network/virtualNetworks"} {
		if got := s.must("GET", path+now, "").Body.String(); !strings.Contains(got, `"sharingScope":"DelegatedServices"`) {
			t.Errorf("GET %s lacks a member of its version: %s", path+now, got)
		}
		got := s.must("GET", path+old, "").Body.String()
		if strings.Contains(got, "sharingScope") || !strings.Contains(got, `"defaultOutboundAccess":false`) {
			t.Errorf("GET %s does not show the members of its version: %s", path+old, got)
		}
	}
	refused := httptest.NewRecorder()
	s.ServeHTTP(refused, httptest.NewRequest("PUT", subnet+old, strings.NewReader(body)))
	if got := refused.Body.String(); refused.Code != 400 || !strings.Contains(got, "Could not find member 'sharingScope'") {
		t.Errorf("PUT %s with a newer member: %d %s", subnet+old, refused.Code, got)
	}
	written := s.must("PUT", subnet+old, `{"properties":{"addressPrefix":"10.64.0.0/16"}}`).Body.String()
	if !strings.Contains(written, `"addressPrefix":"10.64.0.0/16"`) || strings.Contains(written, "sharingScope") {
		t.Errorf("PUT %s answers with members of other versions: %s", subnet+old, written)
	}
}

// TestMembersOfUnknownVersions checks that what the models do not tell is accepted and shown.
func TestMembersOfUnknownVersions(t *testing.T) {
	s := newSite(t)
	const path = group + "/providers/Microsoft.Network/loadBalancers/one"
	for _, version := range []string{"?api-version=2024-07-01", "?api-version=2024-07-01-preview"} {
		got := s.must("PUT", path+version, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"scope":"Public"}}`).Body.String()
		if !strings.Contains(got, `"scope":"Public"`) {
			t.Errorf("PUT %s lacks the scope: %s", path+version, got)
		}
	}
}

// TestVersionsThatATypeLacks checks that requests have an api-version of Azure's catalogue, where it lists all.
func TestVersionsThatATypeLacks(t *testing.T) {
	s := newSite(t)
	const network, newNetwork = group + "/providers/Microsoft.Network/virtualNetworks/there", group + "/providers/Microsoft.Network/virtualNetworks/new"
	const body = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]}}}`
	s.must("PUT", network+"?api-version=2024-05-01", body)
	for _, c := range []struct{ method, path, version, body, code string }{
		{"PUT", newNetwork, "2019-01-02", body, "NoRegisteredProviderFound"},
		{"GET", network, "2019-01-02", "", "NoRegisteredProviderFound"},
		{"DELETE", network, "2019-01-02", "", "NoRegisteredProviderFound"},
		{"GET", newNetwork, "2019-01-02", "", "InvalidResourceType"},
		{"GET", group + "/providers/Microsoft.Network/virtualNetworks", "2023-04-01-preview", "", "InvalidResourceType"},
		{"GET", newNetwork, "2024-05-01", "", "ResourceNotFound"},
		{"GET", newNetwork, "2030-01-01", "", "ResourceNotFound"},                                               // newer than the catalogue
		{"GET", newNetwork, "2024-07-01", "", "ResourceNotFound"},                                               // among the newest, which are not all listed
		{"GET", group + "/providers/Microsoft.Resources/deployments/d", "2019-07-01", "", "DeploymentNotFound"}, // Azure has it all the same
		{"GET", network + "/subnets/s", "2019-01-02", "", "NotFound"},                                           // the catalogue does not list the type
	} {
		t.Run(c.method+" "+c.path+" "+c.version, func(t *testing.T) {
			got := httptest.NewRecorder()
			s.ServeHTTP(got, httptest.NewRequest(c.method, c.path+"?api-version="+c.version, strings.NewReader(c.body)))
			text := got.Body.String()
			if !strings.Contains(text, `"code":"`+c.code+`"`) {
				t.Fatalf("%d %s, want %s", got.Code, text, c.code)
			}
			lacked := c.code == "NoRegisteredProviderFound" || c.code == "InvalidResourceType"
			if lacked != strings.Contains(text, "The supported api-versions are '2025-05-01, ") {
				t.Errorf("supported versions: %s", text)
			}
		})
	}
	s.must("GET", network+"?api-version=2024-05-01", "")
}

// TestOutputOfItsVersion checks that the end of an operation shows what the API version of its request has.
func TestOutputOfItsVersion(t *testing.T) {
	for version, shown := range map[string]bool{"2023-05-01": false, "2025-06-01": true} {
		s := newSite(t)
		began := httptest.NewRecorder()
		s.ServeHTTP(began, httptest.NewRequest("PUT", group+"/providers/Microsoft.Storage/storageAccounts/output?api-version="+version,
			strings.NewReader(`{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`)))
		poll, err := url.Parse(began.Header().Get("Location"))
		if err != nil || began.Code != 202 {
			t.Fatalf("%d %v", began.Code, err)
		}
		output := s.must("GET", poll.RequestURI(), "").Body.String()
		if strings.Contains(output, `"allowCrossTenantDelegationSas":false`) != shown || !strings.Contains(output, `"primaryEndpoints"`) {
			t.Errorf("%s: %s", version, output)
		}
	}
	// The models say since when a network has this member.
	s := newSite(t)
	const disk = group + "/providers/Microsoft.Compute/disks/output"
	began := httptest.NewRecorder()
	s.ServeHTTP(began, httptest.NewRequest("PUT", disk+"?api-version=2020-09-30",
		strings.NewReader(`{"location":"eastus","properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}`)))
	poll, err := url.Parse(began.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	read := s.must("GET", disk+"?api-version=2020-09-30", "").Body.String()
	if output := s.must("GET", poll.RequestURI(), "").Body.String(); output != read {
		t.Errorf("the operation shows %s\nthe resource is %s", output, read)
	}
}

// TestEnvelope checks that the members that all resources have are ignored where a type has them not.
func TestEnvelope(t *testing.T) {
	s := newSite(t)
	const account = group + "/providers/Microsoft.Storage/storageAccounts/envelope"
	const body = `{"name":"envelope","ID":"x","type":"y","location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"}`
	s.must("PUT", account+"?api-version=2023-05-01", body+"}")
	got := httptest.NewRecorder()
	s.ServeHTTP(got, httptest.NewRequest("PUT", account+"?api-version=2023-05-01", strings.NewReader(body+`,"names":"envelope"}`)))
	if text := got.Body.String(); got.Code != 400 || !strings.Contains(text, "Could not find member 'names'") {
		t.Errorf("a member beside those of all resources: %d %s", got.Code, text)
	}
}
