package delta

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"
)

func parse(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// TestOf checks what changes in a live resource. A body "" says that at most tags change.
func TestOf(t *testing.T) {
	const network, interfaces, rules = "Microsoft.Network/virtualNetworks", "Microsoft.Network/networkInterfaces",
		"Microsoft.Network/networkSecurityGroups"
	for name, c := range map[string]struct {
		of, planned, former, live, body string
		set, drop                       map[string]string
	}{
		"as planned": {of: network, planned: `{"location":"westeurope","properties":{"subnets":[{"name":"a","properties":{"p":"Tcp","n":1}}]}}`,
			live: `{"id":"/x","etag":"1","location":"westeurope","properties":{"provisioningState":"Succeeded","subnets":[
				{"name":"a","id":"/x/a","properties":{"p":"tcp","n":1,"ipConfigurations":[{"id":"/y"}]}}]}}`},
		"additions of others agree": {of: network, planned: `{"properties":{"subnets":[{"name":"a","properties":{"p":"x"}}]}}`,
			live: `{"properties":{"subnets":[{"name":"users","properties":{}},{"name":"A","properties":{"p":"x","serviceEndpoints":[{"service":"S"}]}}]}}`},
		"additions of others stay": {of: network, planned: `{"properties":{"subnets":[{"name":"a","properties":{"p":"y"}},{"name":"b"}]}}`,
			live: `{"properties":{"subnets":[{"name":"users"},{"name":"a","properties":{"p":"x","serviceEndpoints":[{"service":"S"}]}}]}}`,
			body: `{"properties":{"subnets":[{"name":"users"},{"name":"a","properties":{"p":"y","serviceEndpoints":[{"service":"S"}]}},{"name":"b"}]}}`},
		"what an earlier plan wrote goes": {of: network, planned: `{"properties":{"subnets":[{"name":"a"}],"x":1}}`,
			former: `{"properties":{"subnets":[{"name":"a"},{"name":"b"}],"y":1}}`,
			live:   `{"properties":{"subnets":[{"name":"a"},{"name":"b"},{"name":"c"}],"x":1,"y":1,"z":1}}`,
			body:   `{"properties":{"subnets":[{"name":"a"},{"name":"c"}],"x":1,"z":1}}`},
		"pools of an interface stay": {of: interfaces,
			planned: `{"properties":{"f":true,"ipConfigurations":[{"name":"primary","properties":{"pools":[{"id":"/own"}]}}]}}`,
			live:    `{"properties":{"f":false,"macAddress":"m","ipConfigurations":[{"name":"primary","properties":{"pools":[{"id":"/ccm"},{"id":"/OWN"}]}}]}}`,
			body:    `{"properties":{"f":true,"ipConfigurations":[{"name":"primary","properties":{"pools":[{"id":"/ccm"},{"id":"/OWN"}]}}]}}`},
		"a security rule is replaced": {of: rules, planned: `{"properties":{"securityRules":[{"name":"api","properties":{"source":"a"}}]}}`,
			live: `{"properties":{"securityRules":[{"name":"api","properties":{"sources":["b"],"source":""}},{"name":"other"}]}}`,
			body: `{"properties":{"securityRules":[{"name":"api","properties":{"source":"a"}},{"name":"other"}]}}`},
		"sources are a set": {of: rules, planned: `{"properties":{"prefixes":["a","b"]}}`, former: `{"properties":{"prefixes":["a","c"]}}`,
			live: `{"properties":{"prefixes":["c","a","user"]}}`, body: `{"properties":{"prefixes":["a","user","b"]}}`},
		"tags alone": {of: network, planned: `{"tags":{"a":"1","b":"2"},"properties":{"x":1}}`, former: `{"tags":{"c":"3"}}`,
			live: `{"tags":{"A":"1","b":"1","c":"4","user":"u"},"properties":{"x":1}}`,
			set:  map[string]string{"b": "2"}, drop: map[string]string{"c": "4"}},
		"tags with a body": {of: network, planned: `{"tags":{"a":"1"},"properties":{"x":2}}`,
			live: `{"tags":{"user":"u"},"properties":{"x":1}}`, body: `{"tags":{"a":"1","user":"u"},"properties":{"x":2}}`,
			set: map[string]string{"a": "1"}},
		"a list without names": {of: "Microsoft.Network/privateDnsZones/A", planned: `{"properties":{"aRecords":[{"ipv4Address":"2"}]}}`,
			live: `{"properties":{"fqdn":"f","aRecords":[{"ipv4Address":"1"}]}}`, body: `{"properties":{"aRecords":[{"ipv4Address":"2"}]}}`},
		"a command keeps its case": {of: network, planned: `{"properties":{"c":"echo A"}}`, live: `{"properties":{"c":"echo a"}}`,
			body: `{"properties":{"c":"echo A"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var former []object
			if c.former != "" {
				former = append(former, parse(t, c.former))
			}
			got := Of(c.of, parse(t, c.planned), former, parse(t, c.live))
			var want object
			if c.body != "" {
				want = parse(t, c.body)
			}
			if !reflect.DeepEqual(got.Body, want) {
				t.Errorf("got %v\nwant %v", got.Body, want)
			}
			if !maps.Equal(got.Set, c.set) || !maps.Equal(got.Drop, c.drop) {
				t.Errorf("set %v, drop %v", got.Set, got.Drop)
			}
			if got.IsZero() != (want == nil && len(c.set)+len(c.drop) == 0) {
				t.Error("IsZero contradicts the change")
			}
		})
	}
}

// TestUnknown checks that a value that only Azure knows differs from every live one.
func TestUnknown(t *testing.T) {
	type runtime struct{ path string }
	got := Of("x", object{"properties": object{"list": []any{runtime{"ip"}}}}, nil, parse(t, `{"properties":{"list":["1"],"other":1}}`))
	want := object{"properties": object{"list": []any{runtime{"ip"}}, "other": 1.0}}
	if !reflect.DeepEqual(got.Body, want) {
		t.Errorf("got %v", got.Body)
	}
}
