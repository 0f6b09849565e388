package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemoveReadOnly(t *testing.T) {
	resource := func() map[string]any {
		return map[string]any{
			"id": "/x", "name": "x", "type": "T", "apiVersion": "1", "systemData": map[string]any{}, "tags": map[string]any{"etag": "kept"},
			"sku": map[string]any{"name": "Standard_LRS", "tier": "Standard"},
			"properties": map[string]any{"accessTier": "Hot", "primaryEndpoints": map[string]any{}, "networkAcls": map[string]any{
				"virtualNetworkRules": []any{map[string]any{"id": "/s", "state": "Succeeded", "unknown": 1}}}},
		}
	}
	got := resource()
	Official().RemoveReadOnly("Microsoft.Storage/storageAccounts", got)
	want := map[string]any{
		"id": "/x", "name": "x", "type": "T", "apiVersion": "1", "tags": map[string]any{"etag": "kept"},
		"sku": map[string]any{"name": "Standard_LRS"},
		"properties": map[string]any{"accessTier": "Hot", "networkAcls": map[string]any{
			"virtualNetworkRules": []any{map[string]any{"id": "/s", "state": "Succeeded"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +:\n%s", diff)
	}
	unknown := resource()
	Official().RemoveReadOnly("Microsoft.None/none", unknown)
	var none *Table
	none.RemoveReadOnly("Microsoft.Storage/storageAccounts", unknown)
	if diff := cmp.Diff(resource(), unknown); diff != "" {
		t.Errorf("a type without a model changed: %s", diff)
	}
}
