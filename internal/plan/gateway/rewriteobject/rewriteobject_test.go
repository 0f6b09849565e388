package rewriteobject_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/rewriteobject"
)

// spec returns an object with a spec in YAML.
func spec(t testing.TB, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte("metadata: {namespace: shop, name: headers}\nspec:\n"+text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// TestSet converts objects as users of AGIC have them.
func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want []network.GatewayRewriteRule
	}{
		"headers and address": {`
  rewriteRules:
  - name: add
    ruleSequence: 100
    conditions: [{variable: http_req_Authorization, pattern: "^Bearer", ignoreCase: true, negate: true}]
    actions:
      requestHeaderConfigurations:
      - {actionType: set, headerName: X-Client, headerValue: "{var_client_ip}"}
      - {actionType: delete, headerName: X-Debug}
      responseHeaderConfigurations:
      - {actionType: set, headerName: Strict-Transport-Security, headerValue: max-age=31536000}
      urlConfiguration: {modifiedPath: /api, modifiedQueryString: "a={var_query_string}", reroute: true}
`, []network.GatewayRewriteRule{{Name: "add", Sequence: 100,
			Conditions: []network.GatewayRewriteCondition{{Variable: "http_req_Authorization", Pattern: "^Bearer", IgnoreCase: true, Negate: true}},
			Actions: network.GatewayRewriteActions{
				RequestHeaders:  []network.GatewayHeader{{Name: "X-Client", Value: "{var_client_ip}"}, {Name: "X-Debug"}},
				ResponseHeaders: []network.GatewayHeader{{Name: "Strict-Transport-Security", Value: "max-age=31536000"}},
				URL:             &network.GatewayURLChange{Path: "/api", Query: "a={var_query_string}", Reroute: true},
			}}}},
		"a deleted header has no value": {`
  rewriteRules: [{name: a, actions: {responseHeaderConfigurations: [{actionType: delete, headerName: Server, headerValue: left}]}}]
`, []network.GatewayRewriteRule{{Name: "a", Actions: network.GatewayRewriteActions{ResponseHeaders: []network.GatewayHeader{{Name: "Server"}}}}}},
		"in the order of the sequence": {`
  rewriteRules: [{name: c, ruleSequence: 9}, {name: b, ruleSequence: 7}, {name: a, ruleSequence: 9}]
`, []network.GatewayRewriteRule{{Name: "b", Sequence: 7}, {Name: "c", Sequence: 9}, {Name: "a", Sequence: 9}}},
		"without an action type, an empty address": {`
  rewriteRules: [{name: a, actions: {urlConfiguration: {}, requestHeaderConfigurations: [{headerName: X, headerValue: "1"}]}}]
`, []network.GatewayRewriteRule{{Name: "a", Actions: network.GatewayRewriteActions{RequestHeaders: []network.GatewayHeader{{Name: "X", Value: "1"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := rewriteobject.Decode(spec(t, test.spec))
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.Set()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Rules); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRefusals checks that each mistake is named with its field, and that nothing is made of an object with one.
func TestRefusals(t *testing.T) {
	headers := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat("{headerName: X}, ", n), ", ") + "]"
	}
	for text, wants := range map[string][]string{
		"  rewriteRules: []": {"spec.rewriteRules is empty; want at least one rule"},
		"  {}":               {"spec.rewriteRules is empty; want at least one rule"},
		"  rewriteRules: [{name: a}, {name: A}, {ruleSequence: -1}]": {
			`spec.rewriteRules[1].name "A" is the name of another rule`, "spec.rewriteRules[2].name is empty; want a name",
			"spec.rewriteRules[2].ruleSequence -1 is negative"},
		"  rewriteRules: [{name: a, conditions: [{variable: keep-alive}]}]": {
			`spec.rewriteRules[0].conditions[0].variable "keep-alive" is no variable; allowed are var_NAME, http_req_NAME and http_resp_NAME`,
			"spec.rewriteRules[0].conditions[0].pattern is empty; want a regular expression"},
		"  rewriteRules: [{name: a, actions: {requestHeaderConfigurations: [{headerName: connection}, {headerName: 'a b'}, {}]}}]": {
			"spec.rewriteRules[0].actions.requestHeaderConfigurations[0].headerName is connection, which an application gateway cannot change",
			`spec.rewriteRules[0].actions.requestHeaderConfigurations[1].headerName "a b" is no name of a header`,
			`spec.rewriteRules[0].actions.requestHeaderConfigurations[2].headerName "" is no name of a header`},
		`  rewriteRules: [{name: a, actions: {responseHeaderConfigurations: [{headerName: X, actionType: add, headerValue: "a\nb"}]}}]`: {
			`spec.rewriteRules[0].actions.responseHeaderConfigurations[0].actionType "add" is not allowed; allowed are set and delete`,
			`spec.rewriteRules[0].actions.responseHeaderConfigurations[0].headerValue "a\nb" has a line break`},
		"  rewriteRules: [{name: a, actions: {requestHeaderConfigurations: " + headers(21) + ", responseHeaderConfigurations: " + headers(20) + "}}]": {
			"spec.rewriteRules have 41 headers; an application gateway takes 40"},
		"  rewriteRules: [{name: a, conditions: [" + strings.Repeat("{variable: var_host, pattern: x}, ", 41) + "]}]": {
			"spec.rewriteRules have 41 conditions; an application gateway takes 40"},
		"  rewriteRules: [{name: a, ruleSequence: x}]":          {"spec.rewriteRules.ruleSequence is a string; allowed is a int32"},
		"  rewriteRules: [{name: a, ruleSequence: 4294967297}]": {"spec.rewriteRules.ruleSequence is a number 4294967297; allowed is a int32"},
		"  rewriteRules: none":                                  {"spec.rewriteRules is a string; allowed is a []rewriteobject.Rule"},
	} {
		o, err := rewriteobject.Decode(spec(t, text))
		var set network.GatewayRewriteSet
		if err == nil {
			set, err = o.Set()
		}
		if err == nil || err.Error() != strings.Join(wants, "\n") || len(set.Rules) > 0 {
			t.Errorf("%s: %v and %d rules, want %s", text, err, len(set.Rules), strings.Join(wants, "\n"))
		}
	}
}

// objects are objects by namespace and name.
type objects struct {
	all   map[string]map[string]any
	reads int
}

func (o *objects) Rewrite(namespace, name string) (map[string]any, bool) {
	o.reads++
	content, ok := o.all[namespace+"/"+name]
	return content, ok
}

// TestLookup checks that objects are found in their namespace, are read once, and say what is wrong.
func TestLookup(t *testing.T) {
	from := &objects{all: map[string]map[string]any{
		"shop/good": spec(t, "  rewriteRules: [{name: a}]"), "shop/bad": spec(t, "  rewriteRules: []"),
	}}
	l := rewriteobject.NewLookup(from)
	for range 3 {
		if set, err := l.Find("shop", "good"); err != nil || len(set.Rules) != 1 {
			t.Errorf("good: %v, %v", err, set)
		}
		for name, want := range map[string]string{
			"shop/bad":   "AzureApplicationGatewayRewrite shop/bad: spec.rewriteRules is empty; want at least one rule",
			"other/good": "AzureApplicationGatewayRewrite other/good does not exist",
		} {
			namespace, object, _ := strings.Cut(name, "/")
			set, err := l.Find(namespace, object)
			if len(set.Rules) > 0 || err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
	if from.reads != 3 {
		t.Errorf("%d reads, want 3", from.reads)
	}
}

// FuzzSet checks that whatever the API server has is read without a panic, and that a set keeps the limits of a gateway and has all of the
// object.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"spec":{"rewriteRules":[{"name":"a","ruleSequence":3,"conditions":[{"variable":"var_host","pattern":"x"}],
		"actions":{"requestHeaderConfigurations":[{"headerName":"X","headerValue":"1"}],"urlConfiguration":{"modifiedPath":"/"}}}]}}`))
	f.Add([]byte(`{"spec":{"rewriteRules":[{"name":"a"},{"name":"b","ruleSequence":-2147483648}]}}`))
	f.Add([]byte(`{"spec":null,"metadata":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]any
		if json.Unmarshal(text, &content) != nil {
			return
		}
		o, err := rewriteobject.Decode(content)
		if err != nil {
			return
		}
		set, err := o.Set()
		if err != nil {
			if len(set.Rules) > 0 {
				t.Fatal("a set of a refused object")
			}
			return
		}
		again, err := o.Set()
		if err != nil || !reflect.DeepEqual(set, again) {
			t.Fatalf("another set of the same object: %v", err)
		}
		if problem := check(o, set); problem != "" {
			t.Fatal(problem)
		}
	})
}

// check says what is wrong with the set of an object, "" if nothing is.
func check(o rewriteobject.Object, set network.GatewayRewriteSet) string {
	if len(set.Rules) != len(o.Spec.RewriteRules) || len(set.Rules) == 0 {
		return fmt.Sprintf("%d rules of %d", len(set.Rules), len(o.Spec.RewriteRules))
	}
	names, headers, conditions := map[string]bool{}, 0, 0
	for i, r := range set.Rules {
		if name := strings.ToLower(r.Name); name == "" || names[name] {
			return fmt.Sprintf("rule %q is there twice, or has no name", r.Name)
		}
		names[strings.ToLower(r.Name)] = true
		if i > 0 && set.Rules[i-1].Sequence > r.Sequence {
			return "the rules are not in the order of their sequences"
		}
		conditions += len(r.Conditions)
		for _, h := range append(append([]network.GatewayHeader{}, r.Actions.RequestHeaders...), r.Actions.ResponseHeaders...) {
			headers++
			if h.Name == "" || strings.EqualFold(h.Name, "connection") || strings.ContainsAny(h.Name+h.Value, "\r\n") {
				return fmt.Sprintf("header %q: %q", h.Name, h.Value)
			}
		}
	}
	if headers > 40 || conditions > 40 {
		return fmt.Sprintf("%d headers and %d conditions", headers, conditions)
	}
	return ""
}

// manifest is the custom resource definition of the chart.
const manifest = "../../../../deploy/charts/application-gateway-controller/crds/azureapplicationgatewayrewrites.yaml"

// TestManifest compares the custom resource definition of the chart with the fields that are read.
func TestManifest(t *testing.T) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Metadata struct{ Name string }
		Spec     struct {
			Group, Scope string
			Names        struct{ Plural, Kind string }
			Versions     []struct {
				Name            string
				Served, Storage bool
				Schema          struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	gvr := rewriteobject.GroupVersionResource()
	s := crd.Spec
	if crd.Metadata.Name != gvr.GroupResource().String() || s.Group != gvr.Group || s.Scope != "Namespaced" || s.Names.Plural != gvr.Resource ||
		s.Names.Kind != rewriteobject.Kind || len(s.Versions) != 1 || s.Versions[0].Name != gvr.Version || !s.Versions[0].Served || !s.Versions[0].Storage {
		t.Fatalf("%+v", s)
	}
	properties := s.Versions[0].Schema.OpenAPIV3Schema["properties"].(map[string]any)
	compare(t, "spec", reflect.TypeFor[rewriteobject.Spec](), properties["spec"].(map[string]any))
}

// compare compares a schema with the type that its values are read into.
func compare(t *testing.T, at string, of reflect.Type, schema map[string]any) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	want := map[reflect.Kind]string{reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean",
		reflect.Int32: "integer"}[of.Kind()]
	if schema["type"] != want {
		t.Errorf("%s is %v, want %s", at, schema["type"], want)
		return
	}
	switch of.Kind() {
	case reflect.Slice:
		compare(t, at+"[]", of.Elem(), schema["items"].(map[string]any))
	case reflect.Struct:
		properties := schema["properties"].(map[string]any)
		if len(properties) != of.NumField() {
			t.Errorf("%s has %d properties, want %d", at, len(properties), of.NumField())
		}
		for field := range of.Fields() {
			name := field.Tag.Get("json")
			inner, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s has no property %s", at, name)
				continue
			}
			compare(t, at+"."+name, field.Type, inner)
		}
	}
}
