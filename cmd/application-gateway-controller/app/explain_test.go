package app

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/plan/gateway/naming"
)

// gateways is an Azure with application gateways of these names in the group g.
type gateways []string

// Get implements [azure.Reader].
func (gateways) Get(context.Context, azure.ID) (azure.Document, error) {
	return nil, &azure.Error{Kind: azure.NotFound}
}

// List implements [azure.Reader].
func (g gateways) List(_ context.Context, q azure.Query) ([]azure.Document, error) {
	var all []azure.Document
	for _, name := range g {
		text, err := json.Marshal(map[string]any{"id": q.Scope.Resource(q.Type, name), "name": name})
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// TestExplainConfig checks which gateway kaz explain ingress takes, and that it decides with the controller's prefix.
func TestExplainConfig(t *testing.T) {
	const group = "/subscriptions/s/resourceGroups/g"
	var cloud cloudconfig.Config
	cloud.SubscriptionID, cloud.ResourceGroup = "s", "g"
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "cluster"}})
	for _, test := range []struct {
		args       []string
		there      gateways
		want, fail string
	}{
		{there: gateways{"one"}, want: group + "/providers/Microsoft.Network/applicationGateways/one"},
		{there: gateways{"two", "one"},
			fail: "resource group g has the application gateways one, two: want one of them as --gateway"},
		{fail: "resource group g has no application gateway: want --gateway-id"},
		{args: []string{"--gateway=x"}, want: group + "/providers/Microsoft.Network/applicationGateways/x"},
		{args: []string{"--gateway=x", "--gateway-resource-group=h", "--cluster-id=abc"},
			want: "/subscriptions/s/resourceGroups/h/providers/Microsoft.Network/applicationGateways/x"},
	} {
		var flags Flags
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.AddFlags(set)
		if err := set.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		if err := flags.Check(); err != nil {
			t.Errorf("%q: %v", test.args, err)
		}
		config, err := flags.Config(t.Context(), kube, test.there, cloud)
		if test.fail != "" {
			if err == nil || err.Error() != test.fail {
				t.Errorf("%q: %v, want %s", test.args, err, test.fail)
			}
			continue
		}
		prefix := naming.Of(naming.Short("cluster"))
		if set.Changed("cluster-id") {
			prefix = naming.Of("abc")
		}
		if err != nil || string(config.Gateway) != test.want || config.Prefix != prefix || config.Identity != "cluster" {
			t.Errorf("%q: %v, %+v, want %s and %s", test.args, err, config, test.want, prefix)
		}
	}
}
