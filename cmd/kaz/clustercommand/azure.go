package clustercommand

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/spf13/cobra"

	"kaz/cmd/internal/release"
	"kaz/internal/arm"
	"kaz/internal/cloudconfig"
	"kaz/internal/engine"
	"kaz/internal/engine/dataplane"
	"kaz/internal/local/azureclient"
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

// localSettle is how long a local Azure's load balancer may take to stop sending requests to a machine.
const localSettle = 2 * time.Second

// localCredential is the service principal of a local Azure, which has tokens for its key vaults and blobs, too.
func localCredential(info azureclient.Info, transport policy.Transporter) (azcore.TokenCredential, error) {
	return azidentity.NewClientSecretCredential(info.Tenant, info.ClientID, info.ClientSecret, &azidentity.ClientSecretCredentialOptions{
		ClientOptions: azcore.ClientOptions{
			Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: info.ARM}, Transport: transport,
		},
		DisableInstanceDiscovery: true,
	})
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
	d, err := readDefinition(command.InOrStdin(), files)
	if err != nil {
		return cluster.Plan{}, mistakes(command, err)
	}
	if t.local {
		info, err := t.info(command.Context())
		if err != nil {
			return cluster.Plan{}, err
		}
		d.Cluster.Spec.Azure.SubscriptionID, d.Cluster.Spec.Azure.TenantID = info.Subscription, info.Tenant
	}
	return cluster.New(d)
}

// engine opens an engine for the selected Azure.
func (t *targetFlags) engine(ctx context.Context, a definition.Azure, say io.Writer) (*engine.Engine, error) {
	config := arm.Config{UserAgent: "kaz/" + release.Version()}
	poll := 5 * time.Second
	if t.local {
		info, err := t.info(ctx)
		if err != nil {
			return nil, err
		}
		if config.Transport, err = trusting(info); err != nil {
			return nil, err
		}
		if config.Credential, err = localCredential(info, config.Transport); err != nil {
			return nil, err
		}
		config.Endpoint, poll = info.ARM, time.Second
	} else {
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
		config.Endpoint, config.Scope, config.Credential = environment.ResourceManager, environment.Scope(), credential
	}
	client, err := arm.New(config)
	if err != nil {
		return nil, err
	}
	planes := dataplane.Client{HTTP: config.Transport, Token: func(ctx context.Context, scope string) (string, error) {
		token, err := config.Credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
		return token.Token, err
	}}
	if planes.HTTP == nil {
		planes.HTTP = http.DefaultClient
	}
	e := &engine.Engine{Azure: client, Poll: poll, Planes: planes, Say: func(line string) { _, _ = fmt.Fprintln(say, line) }}
	if t.local {
		e.Patience.Settle = localSettle
	}
	return e, nil
}

// trusting is a transport that trusts the certificate authority of a local Azure. Hosts of Azure are reached through its proxy, if
// it has one.
func trusting(info azureclient.Info) (policy.Transporter, error) {
	text, err := os.ReadFile(info.CAFile)
	if err != nil {
		return nil, fmt.Errorf("certificate authority of the local Azure: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("certificate authority of the local Azure: no certificate in %s", info.CAFile)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true}
	if proxy, err := url.Parse(info.Proxy); err == nil && info.Proxy != "" {
		transport.Proxy = func(r *http.Request) (*url.URL, error) {
			if strings.HasPrefix(info.ARM, r.URL.Scheme+"://"+r.URL.Host) {
				return nil, nil
			}
			return proxy, nil
		}
	}
	return &http.Client{Transport: transport}, nil
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
	e, err := t.engine(command.Context(), definition.Azure{Cloud: cloudconfig.PublicCloud}, command.ErrOrStderr())
	return e, place, err
}
