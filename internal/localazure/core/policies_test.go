package core_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

const (
	policiesOf  = "/providers/Microsoft.Authorization"
	definitions = "/subscriptions/" + core.DefaultSubscription + policiesOf + "/policyDefinitions/"
	assignments = group + policiesOf + "/policyAssignments/"
	places      = `{"properties":{"displayName":"Allowed places","mode":"Indexed","parameters":{"places":{"type":"Array"}},"policyRule":{
		"if":{"field":"location","notIn":"[parameters('places')]"},"then":{"effect":"deny"}}}}`
)

// assign makes a policy that allows only resources in eastus in the group.
func assign(t *testing.T, properties string) azureUnderTest {
	t.Helper()
	a := start(t, core.Options{Providers: providers.All()})
	a.must("PUT", group, `{"location":"westus"}`)
	a.must("PUT", definitions+"places", places)
	a.must("PUT", assignments+"here", `{"properties":{"policyDefinitionId":"`+definitions+`places",
		"parameters":{"places":{"value":["eastus"]}}`+properties+`}}`)
	return a
}

// A write that a policy denies is refused, with what was evaluated. Others are not.
func TestPolicyDenies(t *testing.T) {
	a := assign(t, "")
	a.must("PUT", table, `{"location":"eastus"}`)
	got := a.do("PUT", table+"2", `{"location":"westus"}`)
	if got.status != 403 || got.code() != "RequestDisallowedByPolicy" || behaviour.Text(got.body, "error.target") != "rt2" {
		t.Fatalf("in another place: %d %v", got.status, got.body)
	}
	message := `Resource 'rt2' was disallowed by policy. Policy identifiers: '[{"policyAssignment":{"name":"here","id":"` + assignments +
		`here"},"policyDefinition":{"name":"Allowed places","id":"` + definitions + `places"}}]'.`
	if text := behaviour.Text(got.body, "error.message"); text != message {
		t.Errorf("message %s\nwant %s", text, message)
	}
	info := behaviour.Objects(got.body, "error.additionalInfo")[0]
	for path, want := range map[string]string{
		"type": "PolicyViolation", "info.policyDefinitionEffect": "deny", "info.policyAssignmentScope": group,
		"info.policyAssignmentName": "here", "info.policyDefinitionDisplayName": "Allowed places",
	} {
		if text := behaviour.Text(info, path); text != want {
			t.Errorf("%s is %q, want %q", path, text, want)
		}
	}
	expression := behaviour.Objects(info, "info.evaluationDetails.evaluatedExpressions")[0]
	if expression["result"] != "True" || expression["operator"] != "NotIn" || expression["expressionValue"] != "westus" {
		t.Errorf("expression %v", expression)
	}
	if got := a.do("GET", table+"2", ""); got.status != 404 {
		t.Errorf("the refused resource: %d", got.status)
	}
	a.must("PUT", group, `{"location":"westus"}`) // has no place in this mode
	a.must("DELETE", assignments+"here", "")
	a.must("PUT", table+"2", `{"location":"westus"}`)
}

// An update is judged with what the resource has after it.
func TestPolicyOnAnUpdate(t *testing.T) {
	a := start(t, core.Options{Providers: providers.All()})
	a.must("PUT", group, `{"location":"eastus"}`)
	a.must("PUT", table, `{"location":"eastus","tags":{"owner":"me"}}`)
	a.must("PUT", definitions+"owner", `{"properties":{"mode":"Indexed","policyRule":{"if":{"field":"tags['owner']","exists":"false"},
		"then":{"effect":"deny"}}}}`)
	a.must("PUT", assignments+"owner", `{"properties":{"policyDefinitionId":"`+definitions+`owner",
		"nonComplianceMessages":[{"message":"Name an owner."}]}}`)
	a.must("PATCH", table, `{"tags":{"owner":"you"}}`)
	got := a.do("PUT", table, `{"location":"eastus"}`)
	if want := "Reasons: 'Name an owner.'"; got.status != 403 || !strings.Contains(behaviour.Text(got.body, "error.message"), want) {
		t.Errorf("without an owner: %d %v", got.status, got.body)
	}
}

// A policy is not enforced on excluded scopes, on exempt resources, and when it says so.
func TestPolicyIsNotEnforced(t *testing.T) {
	west := `{"location":"westus"}`
	for name, properties := range map[string]string{
		"mode":  `,"enforcementMode":"DoNotEnforce"`,
		"scope": `,"notScopes":["` + group + `"]`,
	} {
		t.Run(name, func(t *testing.T) { assign(t, properties).must("PUT", table, west) })
	}
	t.Run("exemption", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := assign(t, "")
			a.must("PUT", group+policiesOf+"/policyExemptions/e", `{"properties":{"policyAssignmentId":"`+assignments+`here",
				"exemptionCategory":"Waiver","expiresOn":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}}`)
			a.must("PUT", table, west)
			<-time.After(time.Hour)
			if got := a.do("PUT", table, west); got.status != 403 {
				t.Errorf("after the exemption: %d", got.status)
			}
		})
	})
}

// A set of definitions gives them its parameters.
func TestPolicySet(t *testing.T) {
	a := start(t, core.Options{Providers: providers.All()})
	a.must("PUT", group, `{"location":"westus"}`)
	a.must("PUT", definitions+"places", places)
	set := strings.Replace(definitions, "policyDefinitions", "policySetDefinitions", 1) + "set"
	a.must("PUT", set, `{"properties":{"parameters":{"region":{"type":"String"}},"policyDefinitions":[{"policyDefinitionId":"`+definitions+
		`places","policyDefinitionReferenceId":"p","parameters":{"places":{"value":["[parameters('region')]"]}}}]}}`)
	a.must("PUT", assignments+"set", `{"properties":{"policyDefinitionId":"`+set+`","parameters":{"region":{"value":"eastus"}}}}`)
	a.must("PUT", table, `{"location":"eastus"}`)
	if got := a.do("PUT", table, `{"location":"westus"}`); got.code() != "RequestDisallowedByPolicy" {
		t.Errorf("in another place: %d %v", got.status, got.body)
	}
}

func TestRefusedPolicies(t *testing.T) {
	a := start(t, core.Options{Providers: providers.All()})
	a.must("PUT", group, `{"location":"eastus"}`)
	a.must("PUT", definitions+"places", places)
	assignment := func(parameters string) string {
		return `{"properties":{"policyDefinitionId":"` + definitions + `places","parameters":` + parameters + `}}`
	}
	for _, x := range []struct{ url, body, code string }{
		{definitions + "bad", `{"properties":{"policyRule":{"if":{"field":"name","is":"x"},"then":{"effect":"deny"}}}}`,
			"InvalidPolicyRule"},
		{definitions + "bad", `{"properties":{"policyRule":{"if":{"field":"name","equals":"x"},"then":{}}}}`, "InvalidPolicyRule"},
		{assignments + "a", assignment(`{}`), "MissingPolicyParameter"},
		{assignments + "a", assignment(`{"places":{"value":[]},"other":{"value":1}}`), "UndefinedPolicyParameter"},
		{assignments + "a", assignment(`{"places":{"value":"x"}}`), "InvalidPolicyRule"},
	} {
		if got := a.do("PUT", x.url, x.body); got.status != 400 || got.code() != x.code {
			t.Errorf("%s: %d %v, want %s", x.body, got.status, got.body, x.code)
		}
	}
	a.must("PUT", assignments+"a", assignment(`{"places":{"value":["eastus"]}}`))
	changed := strings.Replace(places, `"Array"}`, `"Array"},"more":{"type":"String"}`, 1)
	if got := a.do("PUT", definitions+"places", changed); got.code() != "InvalidPolicyRule" {
		t.Errorf("a further parameter of an assigned definition: %d %v", got.status, got.body)
	}
	if got := a.do("PUT", table, `{"location":"westus"}`); got.code() != "RequestDisallowedByPolicy" {
		t.Errorf("after the refused change: %d %v", got.status, got.body)
	}
}
