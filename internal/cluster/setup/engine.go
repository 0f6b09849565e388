// Package setup opens the cluster engine, and has what a cluster needs of this machine: the files of its definition and
// its kubeconfig. `kaz cluster` and `kaz local up --engine` share it. Layer L4.
package setup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"kaz/internal/arm"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/client"
)

// azurePoll and localPoll are the times between two looks at a running deployment.
const (
	azurePoll = 5 * time.Second
	localPoll = time.Second
)

// localSettle is how long a local Azure's load balancer may take to stop sending requests to a machine.
const localSettle = 2 * time.Second

// Open returns an engine for an Azure. say gets a line for each event.
func Open(config arm.Config, say func(line string)) (*engine.Engine, error) {
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
	return &engine.Engine{Deployer: deploy.Deployer{Store: record.Store{Azure: client}, Poll: azurePoll, Planes: planes, Say: say}}, nil
}

// OpenLocal returns an engine for a local Azure.
func OpenLocal(info client.Info, userAgent string, say func(line string)) (*engine.Engine, error) {
	config, err := LocalConfig(info, userAgent)
	if err != nil {
		return nil, err
	}
	e, err := Open(config, say)
	if err != nil {
		return nil, err
	}
	e.Poll, e.Patience.Settle = localPoll, localSettle
	return e, nil
}

// LocalConfig is the configuration of the ARM client of a local Azure.
func LocalConfig(info client.Info, userAgent string) (arm.Config, error) {
	transport, err := trusting(info)
	if err != nil {
		return arm.Config{}, err
	}
	credential, err := localCredential(info, transport)
	return arm.Config{UserAgent: userAgent, Endpoint: info.ARM, Credential: credential, Transport: transport}, err
}

// localCredential is the service principal of a local Azure, which has tokens for its key vaults and blobs, too.
func localCredential(info client.Info, transport policy.Transporter) (azcore.TokenCredential, error) {
	return azidentity.NewClientSecretCredential(info.Tenant, info.ClientID, info.ClientSecret, &azidentity.ClientSecretCredentialOptions{
		ClientOptions: azcore.ClientOptions{
			Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: info.ARM}, Transport: transport,
		},
		DisableInstanceDiscovery: true,
	})
}

// trusting is a transport that trusts the certificate authority of a local Azure. Hosts of Azure are reached through its proxy, if
// it has one.
func trusting(info client.Info) (policy.Transporter, error) {
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
