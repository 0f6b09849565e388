// Package verifycommand has the commands of kaz verify. Layer L4: flags to options, and results to text and data.
package verifycommand

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/arm"
	"kaz/internal/arm/types"
	"kaz/internal/cloudconfig"
	"kaz/internal/cluster/setup"
	"kaz/internal/component/access"
	"kaz/internal/component/release"
	"kaz/internal/credential"
	"kaz/internal/localazure/client"
	"kaz/internal/verify/cassette"
)

// New returns kaz verify.
func New() *cobra.Command {
	return cli.Group("verify", "Try on Azure what kaz believes of it", azureCommand(), cleanCommand(), replayCommand())
}

// targetFlags select an Azure, a subscription in it and an identity.
type targetFlags struct {
	local                                      bool
	endpoint, cloud, cloudConfig, subscription string
}

func (t *targetFlags) define(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&t.subscription, "subscription", "", "id of the subscription (default that of --cloud-config or of the local Azure)")
	f.StringVar(&t.cloud, "cloud", cloudconfig.PublicCloud, "name of the cloud, such as AzureChinaCloud")
	f.StringVar(&t.cloudConfig, "cloud-config", "",
		"azure.json with the cloud and the identity (default the Azure CLI, the environment or the machine's identity)")
	f.BoolVar(&t.local, "local", false, "use the running local Azure (see kaz local azure)")
	f.StringVar(&t.endpoint, "endpoint", "", "base URL of the local Azure, with --local (default the running one)")
}

// target is a selected Azure, with a recorder of what is sent to it.
type target struct {
	client       *arm.Client
	recorder     *cassette.Recorder
	subscription string
}

var guid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (t *targetFlags) open(ctx context.Context) (target, error) {
	if t.local && t.cloudConfig != "" {
		return target{}, errors.New("--local and --cloud-config select different Azures: give one of both")
	}
	config, subscription, err := t.config(ctx)
	if err != nil {
		return target{}, err
	}
	subscription = cmp.Or(t.subscription, subscription)
	if !guid.MatchString(subscription) {
		return target{}, fmt.Errorf("--subscription %q: want the id of a subscription, such as 00000000-0000-0000-0000-000000000001",
			subscription)
	}
	if config.Transport == nil {
		config.Transport = arm.NewTransport()
	}
	recorder := cassette.NewRecorder(config.Transport)
	config.Transport = recorder
	client, err := arm.New(config)
	return target{client, recorder, strings.ToLower(subscription)}, err
}

const agent = "kaz-verify/"

// config returns the configuration of the ARM client, and the subscription that comes with it.
func (t *targetFlags) config(ctx context.Context) (arm.Config, string, error) {
	userAgent := agent + release.Version()
	switch {
	case t.local:
		dir, err := client.AnnounceDir()
		if err != nil {
			return arm.Config{}, "", err
		}
		info, err := client.Find(ctx, t.endpoint, dir)
		if err != nil {
			return arm.Config{}, "", err
		}
		config, err := setup.LocalConfig(info, userAgent)
		return config, info.Subscription, err
	case t.cloudConfig != "":
		return t.configured(ctx, userAgent)
	}
	environment, known := cloudconfig.EnvironmentNamed(t.cloud)
	if !known {
		return arm.Config{}, "", fmt.Errorf("--cloud %s: no such cloud is known; --cloud-config may name the endpoint of another one",
			t.cloud)
	}
	identity, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: azcore.ClientOptions{Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: environment.Authority}},
	})
	return arm.Config{
		UserAgent: userAgent, Endpoint: environment.ResourceManager, Scope: environment.Scope(), Credential: identity,
		APIVersions: versions(environment.Name),
	}, "", err
}

// configured is config for an azure.json.
func (t *targetFlags) configured(ctx context.Context, userAgent string) (arm.Config, string, error) {
	fail := func(err error) (arm.Config, string, error) {
		return arm.Config{}, "", fmt.Errorf("--cloud-config %s: %w", t.cloudConfig, err)
	}
	c, _, err := cloudconfig.Read(cloudconfig.Sources{Path: t.cloudConfig, Environment: os.LookupEnv})
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return fail(err)
	}
	environment, err := access.DescribeCloud(ctx, nil, c)
	if err != nil {
		return fail(err)
	}
	identity, err := access.Identity(c, environment, nil)
	if err != nil {
		return fail(err)
	}
	if identity.Kind == credential.None {
		return fail(errors.New("it names no identity"))
	}
	return arm.Config{
		UserAgent: userAgent, Endpoint: environment.ResourceManager, Scope: environment.Scope(), Credential: identity.Compute,
		APIVersions: versions(environment.Name),
	}, c.SubscriptionID, nil
}

// versions are the api-versions in which a cloud differs.
func versions(cloud string) map[string]string {
	if cloud == cloudconfig.ChinaCloud {
		return types.ChinaVersions()
	}
	return nil
}

// versionOf gives the api-version that kaz uses for a type.
func versionOf(fullType string) string { return types.NewIndex().Of(fullType).Version }

// random returns eight lower-case letters and digits.
func random() string { return strings.ToLower(rand.Text()[:8]) }
