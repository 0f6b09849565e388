package clustercommand

import (
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/spf13/cobra"

	"kaz/cmd/internal/release"
	"kaz/internal/arm"
	"kaz/internal/cloudconfig"
	"kaz/internal/engine"
	"kaz/internal/local/azureclient"
	"kaz/internal/local/clusterengine"
	"kaz/internal/plan/cluster"
	"kaz/internal/plan/cluster/definition"
)

// targetFlags select the Azure of a cluster.
type targetFlags struct {
	local    bool
	endpoint string
}

func (t *targetFlags) define(command *cobra.Command) {
	f := command.Flags()
	f.BoolVar(&t.local, "local", false,
		"use the running local Azure, with its subscription and tenant instead of those of the definition (see kaz local azure)")
	f.StringVar(&t.endpoint, "endpoint", "", "base URL of the local Azure, with --local (default the running one)")
}

// info finds the local Azure.
func (t *targetFlags) info(ctx context.Context) (azureclient.Info, error) {
	dir, err := azureclient.AnnounceDir()
	if err != nil {
		return azureclient.Info{}, err
	}
	return azureclient.Find(ctx, t.endpoint, dir)
}

// plan reads a definition for the selected Azure.
func (t *targetFlags) plan(command *cobra.Command, files []string) (cluster.Plan, error) {
	d, err := clusterengine.ReadDefinition(command.Context(), command.InOrStdin(), files)
	if err != nil {
		return cluster.Plan{}, mistakes(command, err)
	}
	if t.local {
		info, err := t.info(command.Context())
		if err != nil {
			return cluster.Plan{}, err
		}
		return clusterengine.LocalPlan(d, info)
	}
	return cluster.New(d)
}

// engine opens an engine for the selected Azure.
func (t *targetFlags) engine(ctx context.Context, a definition.Azure, out io.Writer) (*engine.Engine, error) {
	userAgent := "kaz/" + release.Version()
	say := func(line string) { _, _ = fmt.Fprintln(out, line) }
	if t.local {
		info, err := t.info(ctx)
		if err != nil {
			return nil, err
		}
		return clusterengine.OpenLocal(info, userAgent, say)
	}
	environment, known := cloudconfig.EnvironmentNamed(a.Cloud)
	if !known {
		return nil, fmt.Errorf("no endpoint is known for cloud %s", a.Cloud)
	}
	credential, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		TenantID:      a.TenantID,
		ClientOptions: azcore.ClientOptions{Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: environment.Authority}},
	})
	if err != nil {
		return nil, err
	}
	return clusterengine.Open(arm.Config{
		UserAgent: userAgent, Endpoint: environment.ResourceManager, Scope: environment.Scope(), Credential: credential,
	}, say)
}

// clusterPlace selects a cluster that exists without its definition.
type clusterPlace struct{ subscription, group string }

func (p *clusterPlace) define(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&p.subscription, "subscription", "", "id of the subscription (default that of the local Azure with --local)")
	f.StringVarP(&p.group, "resource-group", "g", "", "resource group of the cluster (default the name of the cluster)")
}

// open returns an engine for the selected cluster, and where the cluster is.
func (p *clusterPlace) open(command *cobra.Command, t *targetFlags, name string) (*engine.Engine, engine.Place, error) {
	place := engine.Place{Subscription: p.subscription, Group: p.group, Name: name}
	if place.Group == "" {
		place.Group = name
	}
	if t.local && place.Subscription == "" {
		info, err := t.info(command.Context())
		if err != nil {
			return nil, place, err
		}
		place.Subscription = info.Subscription
	}
	if place.Subscription == "" {
		return nil, place, fmt.Errorf("--subscription is missing: want the id of the subscription of cluster %s", name)
	}
	if err := checkPlace(place); err != nil {
		return nil, place, err
	}
	e, err := t.engine(command.Context(), definition.Azure{Cloud: cloudconfig.PublicCloud}, command.ErrOrStderr())
	return e, place, err
}

// checkPlace refuses names that no definition may have.
func checkPlace(p engine.Place) error {
	fields := definition.Fields()
	for _, c := range []struct{ what, field, value string }{
		{"name of the cluster", "metadata.name", p.Name},
		{"--resource-group", "spec.azure.resourceGroup.name", p.Group},
		{"--subscription", "spec.azure.subscriptionID", p.Subscription},
	} {
		if err := fields["Cluster."+c.field].Check(c.value); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return nil
}
