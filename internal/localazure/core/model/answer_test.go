package model_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core/model"
)

const (
	balancers = "Microsoft.Network/loadBalancers"
	nets      = "Microsoft.Network/virtualNetworks"
	machines  = "Microsoft.Compute/virtualMachines"
	monitors  = "Microsoft.Network/networkWatchers/connectionMonitors"
	accounts  = "Microsoft.Storage/storageAccounts"
)

func TestAnswer(t *testing.T) {
	for _, c := range []struct{ name, of, version, text, want string }{
		{"a member", balancers, "2024-05-01",
			`{"name":"a","properties":{"scope":"Public","probes":[]}}`, `{"name":"a","properties":{"probes":[]}}`},
		{"the last member", balancers, "2024-05-01", `{"properties":{"probes":[],"scope":"Public"}}`, `{"properties":{"probes":[]}}`},
		{"the only member", balancers, "2024-05-01",
			`{"properties":{"scope":"Public"},"tags":{"scope":"a"}}`, `{"properties":{},"tags":{"scope":"a"}}`},
		{"neighbors", nets, "2022-11-01",
			`{"properties":{"subnets":[{"properties":{"defaultOutboundAccess":true,"sharingScope":"Tenant"}}]}}`,
			`{"properties":{"subnets":[{"properties":{}}]}}`},
		{"all that is in an object", "Microsoft.Network/publicIPAddresses", "2021-05-01",
			`{"properties":{"ddosSettings":{"protectionMode":"Disabled"},"ipTags":[]}}`, `{"properties":{"ipTags":[]}}`},
		{"an empty object", "Microsoft.Network/publicIPAddresses", "2021-05-01",
			`{"properties":{"ddosSettings":{}}}`, `{"properties":{"ddosSettings":{}}}`},
		{"an object", machines, "2024-03-01", `{"placement":{"zonePlacementPolicy":"Any"},"id":"x"}`, `{"id":"x"}`},
		{"a type with another structure in answers", monitors, "2023-05-01",
			`{"properties":{"endpoints":[{"locationDetails":{"region":"a"}}]}}`,
			`{"properties":{"endpoints":[{}]}}`},
		{"an account shows what its model has not yet", accounts, "2023-05-01", `{"properties":{"networkAcls":{"ipv6Rules":[]}}}`,
			`{"properties":{"networkAcls":{"ipv6Rules":[]}}}`},
		{"a machine shows what its model has not yet", machines, "2022-03-01",
			`{"properties":{"osProfile":{"linuxConfiguration":{"enableVMAgentPlatformUpdates":false}}}}`,
			`{"properties":{"osProfile":{"linuxConfiguration":{"enableVMAgentPlatformUpdates":false}}}}`},
		{"but not before", machines, "2021-11-01",
			`{"properties":{"osProfile":{"linuxConfiguration":{"provisionVMAgent":true,"enableVMAgentPlatformUpdates":false}}}}`,
			`{"properties":{"osProfile":{"linuxConfiguration":{"provisionVMAgent":true}}}}`},
		{"a disk shows what its model has not yet", "Microsoft.Compute/disks", "2021-12-01", `{"properties":{"burstingEnabledTime":"t"}}`,
			`{"properties":{"burstingEnabledTime":"t"}}`},
		{"a model of a scale set", "Microsoft.Compute/virtualMachineScaleSets", "2021-07-01",
			`{"properties":{"virtualMachineProfile":{"osProfile":{"requireGuestProvisionSignal":true}}}}`,
			`{"properties":{"virtualMachineProfile":{"osProfile":{"requireGuestProvisionSignal":true}}}}`},
		{"a restore point", "Microsoft.Compute/restorePointCollections/restorePoints", "2022-03-01",
			`{"properties":{"sourceMetadata":{"hyperVGeneration":"V1"}}}`, `{"properties":{"sourceMetadata":{"hyperVGeneration":"V1"}}}`},
		{"a peering before its level", nets + "/virtualNetworkPeerings", "2020-11-01",
			`{"properties":{"peerCompleteVnets":true,"peeringSyncLevel":"FullyInSync"}}`, `{"properties":{}}`},
		{"a peering shows one of the members that its model has not yet", nets + "/virtualNetworkPeerings", "2021-03-01",
			`{"properties":{"peerCompleteVnets":true,"enableOnlyIPv6Peering":false}}`, `{"properties":{"peerCompleteVnets":true}}`},
		{"a name in another case", balancers, "2024-05-01", `{"Properties":{"SCOPE":"Public","a":1}}`, `{"Properties":{"a":1}}`},
		{"text that looks like JSON", balancers, "2024-05-01",
			`{"tags":{"a":"\",\"scope\":\"\\"},"properties":{"scope":"}\\\"","b":[1,{"c":null}]}}`,
			`{"tags":{"a":"\",\"scope\":\"\\"},"properties":{"b":[1,{"c":null}]}}`},
		{"spaces", balancers, "2024-05-01",
			"{ \"properties\" : { \"scope\" : \"Public\" ,\n \"b\" : [ 1 , 2 ] } }", `{"properties":{"b":[ 1 , 2 ]}}`},
		{"another kind of value than the model has", nets, "2022-11-01", `{"properties":{"subnets":{"sharingScope":1}}}`,
			`{"properties":{"subnets":{"sharingScope":1}}}`},
		{"between the models", balancers, "2024-07-01", `{"properties":{"scope":"Public"}}`, `{"properties":{"scope":"Public"}}`},
		{"the newest version", balancers, "2025-05-01", `{"properties":{"scope":"Public"}}`, `{"properties":{"scope":"Public"}}`},
		{"a preview", balancers, "2023-01-01-preview", `{"properties":{"scope":"Public"}}`, `{"properties":{"scope":"Public"}}`},
		{"a type without a model", "Microsoft.Web/sites", "2020-01-01", `{"a":1}`, `{"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := model.Official().Answer(c.of, c.version)
			if diff := cmp.Diff(c.want, string(answer.Resource([]byte(c.text)))); diff != "" {
				t.Error(diff)
			}
			list := `{"value":[` + c.text + `,` + c.text + `],"nextLink":"scope"}`
			want := `{"value":[` + c.want + `,` + c.want + `],"nextLink":"scope"}`
			if diff := cmp.Diff(want, string(answer.List([]byte(list)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzAnswer checks that any valid text stays valid, that nothing is added, and that a second time changes nothing.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `"a"`, ` 1 `,
		`{"properties":{"scope":"\\\""},"x":[{}, "]"]}`, `{"properties":{"scope":{"a":[1]}}}`,
		`{"properties":[{"scope":1}],"sku":{"name":null}}`, `{"p\u0072operties":{"scope":1}}`, `{"":"","a":-1.5e3,"b":true}`} {
		f.Add([]byte(text))
	}
	answer := model.Official().Answer(balancers, "2020-01-01")
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		got := answer.Resource(bytes.Clone(text))
		if !json.Valid(got) || len(got) > len(text) {
			t.Fatalf("%q became %q", text, got)
		}
		if again := answer.Resource(bytes.Clone(got)); !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and then %q", text, got, again)
		}
		if !bytes.Contains(bytes.ToLower(text), []byte("roperties")) { // the only member of a load balancer with newer members
			var compact, want bytes.Buffer
			if json.Compact(&compact, got) != nil || json.Compact(&want, text) != nil || compact.String() != want.String() {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}

// BenchmarkAnswer shapes 100 load balancers with 30 rules each.
func BenchmarkAnswer(b *testing.B) {
	rule := `{"name":"rule","properties":{"enableConnectionTracking":false,"frontendPort":80,"backendPort":80,"protocol":"Tcp"}}`
	one := `{"name":"a","properties":{"scope":"Public","loadBalancingRules":[` +
		strings.TrimSuffix(strings.Repeat(rule+",", 30), ",") + `]}}`
	page := []byte(`{"value":[` + strings.TrimSuffix(strings.Repeat(one+",", 100), ",") + `]}`)
	answer := model.Official().Answer(balancers, "2024-05-01")
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		answer.List(page)
	}
}
