package providers_test

import (
	"net/http/httptest"
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
	for _, version := range []string{"?api-version=2024-07-01", "?api-version=2023-01-01-preview"} {
		got := s.must("PUT", path+version, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"scope":"Public"}}`).Body.String()
		if !strings.Contains(got, `"scope":"Public"`) {
			t.Errorf("PUT %s lacks the scope: %s", path+version, got)
		}
	}
}
