package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core/model"
)

func TestFindings(t *testing.T) {
	const policies, disks, networks = "Microsoft.Storage/storageAccounts/managementPolicies", "Microsoft.Compute/disks",
		"Microsoft.Network/virtualNetworks"
	for _, c := range []struct {
		name, verb, of, version, body string
		want                          []string
	}{
		{"tags of a type without tags", "PUT", policies, "2023-01-01", `{"tags": {"a": "b"}, "properties": {"policy": {"rules": []}}}`,
			[]string{"tags of ManagementPolicy: unknown member"}},
		{"tags of a type with tags", "PUT", disks, "2023-04-02",
			`{"location": "x", "tags": {"a": "b"}, "properties": {"creationData": {"createOption": "Empty"}}}`, nil},
		{"names and values in another case", "PUT", disks, "2023-04-02",
			`{"LOCATION": "x", "Properties": {"CreationData": {"createoption": "EMPTY"}}}`, nil},
		{"required members", "PUT", disks, "2023-04-02", `{"properties": {"creationData": {}}}`, []string{
			"properties.creationData.createOption of CreationData: missing", "location of Disk: missing"}},
		{"a value that the enumeration does not have", "PUT", disks, "2023-04-02",
			`{"location": "x", "properties": {"creationData": {"createOption": "Made"}}}`,
			[]string{"properties.creationData.createOption of DiskCreateOption: unknown value"}},
		{"members of elements", "PUT", networks, "2023-01-01", `{"properties": {"subnets": [{"name": "a"}, {"name": "b", "tags": {}}]}}`,
			[]string{"properties.subnets[1].tags of Subnet: unknown member"}},
		{"what Azure alone writes", "PUT", disks, "2023-04-02",
			`{"location": "x", "managedBy": "y", "properties": {"diskState": "Attached", "creationData": {"createOption": "Empty"}}}`,
			[]string{"managedBy of Disk: read-only", "properties.diskState of DiskProperties: read-only"}},
		{"any names", "PUT", disks, "2023-04-02",
			`{"location": "x", "tags": {"anything": "goes"}, "properties": {"creationData": {"createOption": "Empty"}}}`, nil},
		{"null is absent", "PUT", disks, "2023-04-02", `{"location": null, "strange": null, "properties": null}`,
			[]string{"location of Disk: missing"}},
		{"a member of a later version", "PUT", networks, "2023-05-01",
			`{"properties": {"subnets": [{"properties": {"defaultOutboundAccess": false, "SharingScope": "Tenant"}}]}}`,
			[]string{"properties.subnets[0].properties.SharingScope of SubnetPropertiesFormat: newer than the API version"}},
		{"what the next model has", "PUT", networks, "2023-06-01",
			`{"properties": {"subnets": [{"properties": {"sharingScope": "Tenant"}}]}}`,
			nil},
		{"a preview", "PUT", networks, "2023-05-01-preview",
			`{"properties": {"subnets": [{"properties": {"sharingScope": "Tenant"}}]}}`, nil},
		{"a member of previews alone", "PUT", "Microsoft.ContainerRegistry/registries", "2021-08-01-preview",
			`{"location": "x", "sku": {"name": "Basic"}, "properties": {"anonymousPullEnabled": false}}`, nil},
		{"a member that a preview in the table lacks", "PUT", "Microsoft.ContainerRegistry/registries/agentPools", "2019-06-01-preview",
			`{"location": "x", "new": 1}`, []string{"new of AgentPool: unknown member"}},
		{"a version newer than the model", "PUT", disks, "2099-01-01", `{"location": "x", "new": 1}`, nil},
		{"a type without a model", "PUT", "Microsoft.Web/sites", "2023-01-01", `{"strange": 1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body map[string]any
			if err := json.Unmarshal([]byte(c.body), &body); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range model.Official().Findings(c.verb, c.of, c.version, body) {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHas(t *testing.T) {
	document := map[string]any{"properties": map[string]any{"parts": []any{map[string]any{}, map[string]any{"Old": 1}}}}
	if !model.Has(document, []string{"Properties", "parts", "[0]", "old"}) {
		t.Error("a member of any element is there")
	}
	if model.Has(document, []string{"properties", "parts", "[0]", "new"}) {
		t.Error("a member of no element is not there")
	}
}
