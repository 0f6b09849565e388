package gateways_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway/explain"
	"kaz/internal/localazure/core"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/shadow/gateways"
	"kaz/internal/testkit"
)

// TestSeveral decides about each application gateway of a controller: those that do not exist are refused one by one.
func TestSeveral(t *testing.T) {
	a := testkit.NewAzure(t, core.Options{}, 0)
	one := testkit.Group.Resource(network.ApplicationGateways, "one")
	two := testkit.Group.Resource(network.ApplicationGateways, "two")
	for _, applications := range [][]azure.ID{nil, {one, two}} {
		verdicts, err := gateways.Source(explain.Clients{Kube: fake.NewClientset()}, a.Client.Fresh(),
			func(context.Context) (explain.Config, error) {
				return explain.Config{Config: planner.Config{Gateway: one}, Applications: applications}, nil
			}).Decide(t.Context())
		if err != nil || len(verdicts) != max(len(applications), 1) {
			t.Fatalf("%v, %v", verdicts, err)
		}
		for i, v := range verdicts {
			name := []string{"one", "two"}[i]
			if v.Object != "application gateway "+name || !strings.Contains(v.Refused, "/"+name+" does not exist") {
				t.Errorf("%+v", v)
			}
		}
	}
}

// TestNoGateway checks that an application gateway that is not found is why nothing is read.
func TestNoGateway(t *testing.T) {
	none := errors.New("resource group rg has no application gateway")
	_, err := gateways.Source(explain.Clients{}, nil, func(context.Context) (explain.Config, error) {
		return explain.Config{}, none
	}).Decide(t.Context())
	if !errors.Is(err, none) {
		t.Error(err)
	}
}
