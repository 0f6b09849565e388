package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"kaz/internal/localazure/core"
	"kaz/internal/plan/gateway/rewriteobject"
)

// rewriteRules is an AzureApplicationGatewayRewrite that sets a header.
func rewriteRules(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": rewriteobject.Group + "/" + rewriteobject.Version, "kind": rewriteobject.Kind,
		"metadata": object{"namespace": "default", "name": name},
		"spec": object{"rewriteRules": []any{object{"name": "one", "ruleSequence": int64(1), "actions": object{
			"requestHeaderConfigurations": []any{object{"actionType": "set", "headerName": "X-Set", "headerValue": value}},
		}}}},
	}}
}

// TestRewriteObjects serves Ingresses with AGIC's objects of rewrite rules: a changed one changes the gateway, a missing or wrong one costs
// its Ingress the rewrites alone.
func TestRewriteObjects(t *testing.T) {
	const annotation = "rewrite-rule-set-custom-resource"
	scenario(t, "objects", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(),
			web("a", "a.example.com", "web", 1, annotation, "rules"), web("b", "b.example.com", "web", 2, annotation, "absent"))...)
		w.kube.Resources = append(w.kube.Resources, &metav1.APIResourceList{
			GroupVersion: rewriteobject.Group + "/" + rewriteobject.Version,
			APIResources: []metav1.APIResource{{Name: rewriteobject.Resource, Kind: rewriteobject.Kind, Namespaced: true}},
		})
		resource := rewriteobject.GroupVersionResource()
		dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{resource: rewriteobject.Kind + "List"}, rewriteRules("rules", "first"))
		w.config.Dynamic = dynamic
		w.start()
		defer w.stop()
		want(t, "first", strings.Contains(w.written(), `"first"`), true)
		want(t, "absent", w.events.with("AzureApplicationGatewayRewrite default/absent does not exist; nothing is rewritten"), 1)

		if _, err := dynamic.Resource(resource).Namespace("default").Update(t.Context(), rewriteRules("rules", "second"),
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "second", strings.Contains(w.written(), `"second"`) && !strings.Contains(w.written(), `"first"`), true)

		if _, err := dynamic.Resource(resource).Namespace("default").Create(t.Context(), rewriteRules("absent", "third"),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "third", strings.Contains(w.written(), `"third"`), true)
	})
	scenario(t, "no such objects", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("a", "a.example.com", "web", 1))...)
		w.config.Dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		w.start()
		defer w.stop()
		want(t, "served", strings.Contains(w.written(), "a.example.com"), true)
	})
}

// written is the document of the application gateway.
func (w *cluster) written() string {
	w.t.Helper()
	text, err := json.Marshal(w.gate())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
