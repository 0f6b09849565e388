package gateway_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"kaz/internal/localazure/core"
	"kaz/internal/plan/gateway/prohibited"
)

// prohibitedHost is an AzureIngressProhibitedTarget of a host.
func prohibitedHost(name string, host any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": prohibited.Group + "/" + prohibited.Version, "kind": prohibited.Kind,
		"metadata": object{"namespace": "other", "name": name}, "spec": object{"hostname": host},
	}}
}

// TestProhibitedTargets has AGIC's objects of what Ingresses do not get: there at the start, made, changed and deleted. One that cannot be read
// is left out.
func TestProhibitedTargets(t *testing.T) {
	scenario(t, "objects", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(),
			web("a", "a.example.com", "web", 1), web("b", "b.example.com", "web", 2))...)
		w.kube.Resources = append(w.kube.Resources, &metav1.APIResourceList{
			GroupVersion: prohibited.Group + "/" + prohibited.Version,
			APIResources: []metav1.APIResource{{Name: prohibited.Resource, Kind: prohibited.Kind, Namespaced: true}},
		})
		dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{prohibited.GroupVersionResource(): prohibited.Kind + "List"},
			prohibitedHost("one", "a.example.com"), prohibitedHost("wrong", int64(1)))
		objects := dynamic.Resource(prohibited.GroupVersionResource()).Namespace("other")
		w.config.Dynamic = dynamic
		w.start()
		defer w.stop()
		want(t, "hosts", w.hosts(), "b.example.com")
		want(t, "events", w.events.with(`ProhibitedTarget: AzureIngressProhibitedTarget other/one prohibits path "/" of host "a.example.com"`), 1)
		want(t, "status", w.status("a"), "")

		if _, err := objects.Update(t.Context(), prohibitedHost("one", "b.example.com"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "hosts after a change", w.hosts(), "a.example.com")

		if err := objects.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		want(t, "hosts after the deletion", w.hosts(), "a.example.com b.example.com")
	})
}
