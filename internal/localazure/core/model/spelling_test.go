package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core/model"
)

// TestSpell checks that names become those of the model, in lists and in maps too, and that all else stays.
func TestSpell(t *testing.T) {
	const gateways, identities = "Microsoft.Network/applicationGateways", "Microsoft.Compute/virtualMachines"
	type object = map[string]any
	for _, c := range []struct {
		name, of   string
		body, want object
	}{
		{"in lists", gateways,
			object{"Properties": object{"backendaddressPools": []any{object{"Name": "p", "properties": object{"backendAddresses": []any{
				object{"IpAddress": "10.0.0.4"}, object{"FQDN": "a"}}}}}}},
			object{"properties": object{"backendAddressPools": []any{object{"name": "p", "properties": object{"backendAddresses": []any{
				object{"ipAddress": "10.0.0.4"}, object{"fqdn": "a"}}}}}}}},
		{"in maps, of which the names stay", identities,
			object{"Identity": object{"userassignedidentities": object{"/A/b": object{"PrincipalId": "x"}}}, "Tags": object{"Location": "x"}},
			object{"identity": object{"userAssignedIdentities": object{"/A/b": object{"principalId": "x"}}}, "tags": object{"Location": "x"}}},
		{"unknown", gateways, object{"Own": 1}, object{"Own": 1}},
		{"in both spellings", gateways, object{"Tags": 1, "tags": 2}, object{"Tags": 1, "tags": 2}},
		{"of another kind", gateways, object{"Properties": []any{1}, "tags": "x"}, object{"properties": []any{1}, "tags": "x"}},
		{"without a model", "Microsoft.Web/sites", object{"Properties": 1}, object{"Properties": 1}},
	} {
		model.Official().Spell("PUT", c.of, c.body)
		if diff := cmp.Diff(c.want, c.body); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	(*model.Table)(nil).Spell("PUT", gateways, object{"Tags": 1})
}
