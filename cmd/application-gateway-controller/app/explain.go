package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/gateway/explain"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
)

// Flags are the flags that decide which objects a controller serves, and how. kaz explain takes them, too.
type Flags struct{ settings *settings }

// AddFlags defines the flags. Those of the running program are left out.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	f.settings = newOptions()
	all := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.settings.addGateway(all)
	f.settings.addIngress(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "cloud-config" && flag.Name != "drift-interval" {
			flags.AddFlag(flag)
		}
	})
}

// Check validates the flags. Without a gateway, [Flags.Config] finds one.
func (f *Flags) Check() error {
	given := *f.settings
	if given.gatewayID == "" && given.gateway == "" {
		given.gateway = "any"
	}
	return given.validate()
}

// Config returns how the controller with these flags serves objects. Without a gateway, it is the only one in the resource group.
func (f *Flags) Config(ctx context.Context, client kubernetes.Interface, from azure.Reader, cloud cloudconfig.Config) (explain.Config,
	error) {
	o := f.settings
	id := o.id(cloud)
	if o.gatewayID == "" && o.gateway == "" {
		var err error
		if id, err = onlyGateway(ctx, from, azure.GroupID(id.Subscription(), id.Group())); err != nil {
			return explain.Config{}, err
		}
	}
	identity, err := identityOf(ctx, client)
	if err != nil {
		return explain.Config{}, err
	}
	short := o.clusterID
	if short == "" {
		short = naming.Short(identity)
	}
	return explain.Config{
		Config: planner.Config{Gateway: id, Identity: identity, Ingress: o.ingress, Answers: o.answers,
			Ownership: merge.Ownership{Prefix: naming.Of(short), Exclusive: o.exclusive, AGIC: o.adoptAGIC}},
		Class: o.class, Namespaces: o.namespaces, Applications: o.applicationsAfter(id),
	}, nil
}

// Clients returns the clients of the API server that the controller with these flags reads with.
func (f *Flags) Clients(config *rest.Config) (explain.Clients, error) {
	var c explain.Clients
	var errs [3]error
	c.Kube, errs[0] = kubernetes.NewForConfig(config)
	c.Dynamic, errs[1] = dynamic.NewForConfig(config)
	if f.settings.gatewayAPI {
		c.GatewayAPI, errs[2] = gatewayclient.NewForConfig(config)
	}
	return c, errors.Join(errs[:]...)
}

// onlyGateway finds the application gateway of a resource group.
func onlyGateway(ctx context.Context, from azure.Reader, group azure.ID) (azure.ID, error) {
	docs, err := from.List(ctx, azure.Query{Scope: group, Type: network.ApplicationGateways})
	if err != nil {
		return "", fmt.Errorf("list the application gateways of %s: %w", group, err)
	}
	names := make([]string, len(docs))
	for i, d := range docs {
		names[i] = d.ID().Name()
	}
	slices.Sort(names)
	switch len(docs) {
	case 1:
		return docs[0].ID(), nil
	case 0:
		return "", fmt.Errorf("resource group %s has no application gateway: want --gateway-id", group.Name())
	}
	return "", fmt.Errorf("resource group %s has the application gateways %s: want one of them as --gateway", group.Name(),
		strings.Join(names, ", "))
}
