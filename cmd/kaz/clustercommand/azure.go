package clustercommand

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/spf13/cobra"

	"kaz/internal/arm"
	"kaz/internal/cloudconfig"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/definition/fields"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/setup"
	"kaz/internal/component/release"
	"kaz/internal/localazure/client"
)

// targetFlags select the Azure of a cluster.
type targetFlags struct {
	local    bool
	endpoint string
	chosen   *client.Info // the local Azure, once it is found
}

func (t *targetFlags) define(command *cobra.Command) {
	f := command.Flags()
	f.BoolVar(&t.local, "local", false,
		"use the running local Azure, with its subscription and tenant instead of those of the definition (see kaz local azure)")
	f.StringVar(&t.endpoint, "endpoint", "", "base URL of the local Azure, with --local (default the running one)")
}

// find finds the local Azure. Of several it is the one in which the cluster is deployed.
func (t *targetFlags) find(ctx context.Context, name, group string) (client.Info, error) {
	dir, err := client.AnnounceDir()
	if err != nil {
		return client.Info{}, err
	}
	info, err := client.FindWith(ctx, func(ctx context.Context, info client.Info) (bool, error) {
		client, err := client.New(info)
		if err != nil {
			return false, err
		}
		defer client.Close()
		return client.Exists(ctx, record.Place{Subscription: info.Subscription, Group: group, Name: name}.Deployment())
	}, t.endpoint, dir)
	if err != nil {
		return info, fmt.Errorf("cluster %s: %w", name, err)
	}
	t.chosen = &info
	return info, nil
}

// documents reports whether the machines of the selected Azure are documents.
func (t *targetFlags) documents() bool { return t.local && t.chosen != nil && !t.chosen.Boots }

// plan reads a definition for the selected Azure.
func (t *targetFlags) plan(command *cobra.Command, files []string) (cluster.Plan, error) {
	d, err := setup.ReadDefinition(command.Context(), command.InOrStdin(), files)
	if err != nil {
		return cluster.Plan{}, mistakes(command, err)
	}
	if t.local {
		info, err := t.find(command.Context(), d.Cluster.Metadata.Name, d.Cluster.Spec.Azure.ResourceGroup.Name)
		if err != nil {
			return cluster.Plan{}, err
		}
		return setup.LocalPlan(d, info)
	}
	return cluster.New(d)
}

// engine opens an engine for the selected Azure, which is found before.
func (t *targetFlags) engine(a definition.Azure, out io.Writer) (*engine.Engine, error) {
	userAgent := "kaz/" + release.Version()
	say := func(line string) { _, _ = fmt.Fprintln(out, line) }
	if t.local {
		return setup.OpenLocal(*t.chosen, userAgent, say)
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
	return setup.Open(arm.Config{
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
func (p *clusterPlace) open(command *cobra.Command, t *targetFlags, name string) (*engine.Engine, record.Place, error) {
	place := record.Place{Subscription: p.subscription, Group: p.group, Name: name}
	if place.Group == "" {
		place.Group = name
	}
	if t.local {
		info, err := t.find(command.Context(), place.Name, place.Group)
		if err != nil {
			return nil, place, err
		}
		place.Subscription = cmp.Or(place.Subscription, info.Subscription)
	}
	if place.Subscription == "" {
		return nil, place, fmt.Errorf("--subscription is missing: want the id of the subscription of cluster %s", name)
	}
	if err := checkPlace(place); err != nil {
		return nil, place, err
	}
	e, err := t.engine(definition.Azure{Cloud: cloudconfig.PublicCloud}, command.ErrOrStderr())
	return e, place, err
}

// checkPlace refuses names that no definition may have.
func checkPlace(p record.Place) error {
	table := fields.Table()
	for _, c := range []struct{ what, field, value string }{
		{"name of the cluster", "metadata.name", p.Name},
		{"--resource-group", "spec.azure.resourceGroup.name", p.Group},
		{"--subscription", "spec.azure.subscriptionID", p.Subscription},
	} {
		if err := table["Cluster."+c.field].Check(c.value); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
	}
	return nil
}
