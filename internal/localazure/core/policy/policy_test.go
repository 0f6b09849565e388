package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/policy"
)

func object(t *testing.T, text string) behaviour.Object {
	t.Helper()
	var o behaviour.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// definition returns a definition that denies what matches.
func definition(t *testing.T, condition string) behaviour.Object {
	t.Helper()
	return object(t, `{"properties":{"policyRule":{"if":`+condition+`,"then":{"effect":"deny"}}}}`)
}

const account = `{"location":"westeurope","kind":"StorageV2","sku":{"name":"Standard_LRS"},"tags":{"Env":"prod","empty":""},
	"properties":{"supportsHttpsTrafficOnly":true,"minimumTlsVersion":"TLS1_2","size":12,
	"rules":[{"access":"Allow","port":22},{"access":"Allow","port":80}],"none":[]}}`

func resource(t *testing.T) policy.Resource {
	return policy.Resource{Type: "Microsoft.Storage/storageAccounts", Doc: object(t, account),
		ID: azure.GroupID("00000000-0000-0000-0000-000000000001", "rg").Resource("Microsoft.Storage/storageAccounts", "prodData1")}
}

func TestConditions(t *testing.T) {
	alias := func(path string) string { return `"Microsoft.Storage/storageAccounts/` + path + `"` }
	for _, x := range []struct {
		condition string
		want      bool
	}{
		{`{"field":"type","equals":"microsoft.storage/STORAGEACCOUNTS"}`, true},
		{`{"field":"type","notEquals":"Microsoft.Storage/storageAccounts"}`, false},
		{`{"field":"name","like":"prod*"}`, true},
		{`{"field":"name","like":"*data1"}`, true},
		{`{"field":"name","like":"p*1"}`, true},
		{`{"field":"name","like":"proddata1*1"}`, false},
		{`{"field":"name","notLike":"test*"}`, true},
		{`{"field":"fullName","equals":"prodData1"}`, true},
		{`{"field":"name","match":"prod????#"}`, true},
		{`{"field":"name","match":"PROD????#"}`, false},
		{`{"field":"name","matchInsensitively":"PROD....#"}`, true},
		{`{"field":"name","notMatch":"prod#"}`, true},
		{`{"field":"location","in":["eastus","WestEurope"]}`, true},
		{`{"field":"location","notIn":["eastus"]}`, true},
		{`{"field":"location","contains":"europe"}`, true},
		{`{"field":"location","notContains":"europe"}`, false},
		{`{"field":"kind","equals":"StorageV2"}`, true},
		{`{"field":"tags['env']","equals":"PROD"}`, true},
		{`{"field":"tags[env]","exists":"true"}`, true},
		{`{"field":"tags.env","exists":true}`, true},
		{`{"field":"tags['owner']","exists":false}`, true},
		{`{"field":"tags['owner']","equals":""}`, false},
		{`{"field":"tags['owner']","notEquals":"me"}`, true},
		{`{"field":"tags","containsKey":"ENV"}`, true},
		{`{"field":"tags","notContainsKey":"env"}`, false},
		{`{"field":` + alias("sku.name") + `,"in":["Standard_LRS"]}`, true},
		{`{"field":` + alias("supportsHttpsTrafficOnly") + `,"equals":"true"}`, true},
		{`{"field":` + alias("supportsHttpsTrafficOnly") + `,"notEquals":true}`, false},
		{`{"field":` + alias("minimumTlsVersion") + `,"exists":"false"}`, false},
		{`{"field":` + alias("size") + `,"greater":11}`, true},
		{`{"field":` + alias("size") + `,"less":12}`, false},
		{`{"field":` + alias("size") + `,"lessOrEquals":12}`, true},
		{`{"field":` + alias("size") + `,"greaterOrEquals":"9"}`, true},
		{`{"field":` + alias("absent") + `,"less":1}`, false},
		{`{"field":` + alias("rules[*].access") + `,"equals":"Allow"}`, true},
		{`{"field":` + alias("rules[*].port") + `,"equals":22}`, false},
		{`{"field":` + alias("none[*].port") + `,"equals":22}`, true},
		{`{"field":"Microsoft.Compute/virtualMachines/sku.name","exists":true}`, false},
		{`{"not":{"field":"location","equals":"westeurope"}}`, false},
		{`{"allOf":[{"field":"kind","equals":"StorageV2"},{"field":"location","equals":"eastus"}]}`, false},
		{`{"anyOf":[{"field":"kind","equals":"none"},{"field":"location","equals":"westeurope"}]}`, true},
		{`{"allOf":[{"field":"kind","equals":"StorageV2"},{"not":{"anyOf":[{"field":"location","equals":"eastus"}]}}]}`, true},
	} {
		rule, err := policy.Parse(definition(t, x.condition), nil)
		if err != nil {
			t.Errorf("%s: %v", x.condition, err)
			continue
		}
		if got, _ := rule.Matches(resource(t)); got != x.want {
			t.Errorf("%s: %v, want %v", x.condition, got, x.want)
		}
	}
}

// Parameters come from the assignment or have a default. They can be the effect, and parts of expressions.
func TestParameters(t *testing.T) {
	d := object(t, `{"properties":{"parameters":{"tag":{"type":"String"},"effect":{"type":"String","defaultValue":"Deny",
		"allowedValues":["Deny","Audit"]},"places":{"type":"Array","defaultValue":["eastus"]}},"policyRule":{"if":{"allOf":[
		{"field":"[concat('tags[', parameters('tag'), ']')]","exists":"false"},{"field":"location","notIn":"[parameters('places')]"}]},
		"then":{"effect":"[parameters('effect')]"}}}}`)
	for _, x := range []struct {
		values string
		effect string
		match  bool
	}{
		{`{"tag":{"value":"owner"}}`, "Deny", true},
		{`{"tag":{"value":"env"}}`, "Deny", false},
		{`{"tag":{"value":"owner"},"places":{"value":["westeurope"]}}`, "Deny", false},
		{`{"tag":{"value":"owner"},"effect":{"value":"Audit"}}`, "Audit", false},
	} {
		rule, err := policy.Parse(d, object(t, x.values))
		if err != nil || rule.Effect != x.effect || rule.Denies() != (x.effect == "Deny") {
			t.Fatalf("%s: %v, %v", x.values, rule, err)
		}
		if !rule.Denies() {
			continue
		}
		if got, _ := rule.Matches(resource(t)); got != x.match {
			t.Errorf("%s: %v, want %v", x.values, got, x.match)
		}
	}
	for _, values := range []string{`{}`, `{"tag":{"value":"x"},"effect":{"value":"Modify"}}`} {
		if rule, err := policy.Parse(d, object(t, values)); err == nil {
			t.Errorf("%s: %v, want an error", values, rule)
		}
	}
}

func TestRefusedRules(t *testing.T) {
	for condition, says := range map[string]string{
		`"x"`:                       "not an object",
		`{"field":"name"}`:          "want one of",
		`{"field":"name","is":"x"}`: "want one of",
		`{"field":"name","equals":"x","like":"y"}`:        "want one of",
		`{"value":"x","equals":"x"}`:                      "has no field",
		`{"count":{"field":"x[*]"},"greater":1}`:          "has no field",
		`{"allOf":{"field":"name","equals":"x"}}`:         "must be a list",
		`{"allOf":[{"field":"name"}]}`:                    "want one of",
		`{"field":"name","equals":"[field('location')]"}`: "field",
	} {
		if _, err := policy.Parse(definition(t, condition), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", condition, err, says)
		}
	}
	audit := object(t, `{"properties":{"policyRule":{"if":{"count":{"field":"x[*]"},"greater":1},"then":{"effect":"audit"}}}}`)
	if _, err := policy.Parse(audit, nil); err != nil {
		t.Errorf("a rule that does not deny: %v", err)
	}
}

// FuzzRule checks that any definition with any values is a rule or an error, and that a rule that denies can be evaluated.
func FuzzRule(f *testing.F) {
	f.Add(`{"properties":{"policyRule":{"if":{"field":"name","like":"a*"},"then":{"effect":"deny"}}}}`, `{}`)
	f.Add(`{"properties":{"policyRule":{"if":{"allOf":[{"not":{"field":"tags['a']","in":["b",1,null]}},{"anyOf":[]}]},"then":{"effect":
		"[parameters('e')]"}},"parameters":{"e":{"type":"String","defaultValue":"Deny"}}}}`, `{"e":{"value":"deny"}}`)
	f.Add(`{"properties":{"policyRule":{"if":{"field":"Microsoft.Storage/storageAccounts/rules[*].port","greater":22},"then":{"effect":"deny"}}}}`,
		`{"x":1}`)
	f.Fuzz(func(t *testing.T, definition, values string) {
		var d, v behaviour.Object
		if json.Unmarshal([]byte(definition), &d) != nil || json.Unmarshal([]byte(values), &v) != nil {
			return
		}
		if rule, err := policy.Parse(d, v); err == nil && rule.Denies() {
			rule.Matches(resource(t))
		}
	})
}
