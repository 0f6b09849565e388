package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/cmd/kaz/cli"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/component/kubeconfig"
	"kaz/internal/localazure/client"
	"kaz/internal/localcluster"
)

// clusterFlags select a cluster and its azure.json.
type clusterFlags struct {
	dir, kubeconfig, context, cloudConfig, clusterName string
	secret                                             string // with the cloud configuration, NAMESPACE/NAME

	dirGiven, nameGiven bool
}

func (c *clusterFlags) define(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&c.kubeconfig, "kubeconfig", "",
		"kubeconfig file of the cluster (default that of the cluster in --dir if given, or $KUBECONFIG)")
	f.StringVar(&c.context, "context", "", "context of the kubeconfig (default its current one)")
	f.StringVar(&c.cloudConfig, "cloud-config", "", "path of azure.json (default that of the cluster in --dir)")
	f.StringVar(&c.clusterName, "cluster-name", "",
		`name of the cluster, as of the cloud-controller-manager (default "kubernetes", or that of the cluster in --dir)`)
	cli.DirFlag(command, &c.dir)
}

// defineSecret defines the flag for a cloud configuration in a Secret.
func (c *clusterFlags) defineSecret(command *cobra.Command) {
	command.Flags().StringVar(&c.secret, "cloud-config-secret", "", "NAMESPACE/NAME of the Secret with the cloud configuration, or with "+
		"what it adds to --cloud-config, as of the cloud-controller-manager")
}

// secretOf is the Secret with the cloud configuration, without a name if none is given.
func (c *clusterFlags) secretOf() ccm.Secret {
	namespace, name, _ := strings.Cut(c.secret, "/")
	return ccm.Secret{Namespace: namespace, Name: name}
}

// check records which flags are given, and refuses two clusters.
func (c *clusterFlags) check(f *pflag.FlagSet) error {
	c.dirGiven, c.nameGiven = f.Changed("dir"), f.Changed("cluster-name")
	if c.dirGiven && f.Changed("kubeconfig") {
		return errors.New("--dir and --kubeconfig: want one of them")
	}
	if s := c.secretOf(); c.secret != "" && (s.Namespace == "" || s.Name == "" || strings.Contains(s.Name, "/")) {
		return fmt.Errorf("--cloud-config-secret %q: want NAMESPACE/NAME", c.secret)
	}
	return nil
}

// defaultClusterName is the default of the cloud-controller-manager.
const defaultClusterName = "kubernetes"

// findAzure returns the path of the selected azure.json, for a command that does not ask Kubernetes, and the name server of the local Azure
// that it refers to, "" for none.
func (c clusterFlags) findAzure(ctx context.Context, environment string) (path, nameServer string, err error) {
	up, err := c.localCluster(environment)
	if c.dirGiven && err != nil {
		return "", "", fmt.Errorf("--dir: %w", err)
	}
	if err != nil {
		up = localcluster.Status{}
	}
	path = cmp.Or(c.cloudConfig, up.CloudConfig)
	if path == "" {
		return "", "", errors.New("--cloud-config is missing: want the path of an azure.json")
	}
	azure, found, err := c.localAzure(ctx, up)
	if err != nil || !found {
		return path, "", err
	}
	return path, azure.DNS, setClientEnvironment(azure)
}

// find returns the selected cluster. environment is the kubeconfig of $KUBECONFIG.
func (c clusterFlags) find(ctx context.Context, environment string) (ccm.Cluster, error) {
	if c.dirGiven {
		environment = "" // a flag wins over the environment
	}
	up, err := c.localCluster(environment)
	if c.dirGiven && err != nil {
		return ccm.Cluster{}, fmt.Errorf("--dir: %w", err)
	}
	if err != nil {
		up = localcluster.Status{} // the directory may have another cluster
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	if c.kubeconfig == "" && environment == "" {
		rules.ExplicitPath = up.Kubeconfig
	}
	if err := c.setClientEnvironment(ctx, up); err != nil {
		return ccm.Cluster{}, err
	}
	kubernetes, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) && c.context == "" && rules.ExplicitPath == "" {
		return ccm.Cluster{}, fmt.Errorf("no cluster given: want --kubeconfig, $KUBECONFIG, or a cluster of kaz local up in %s", c.dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ccm.Cluster{}, fmt.Errorf("kubeconfig: %w", err) // it names the file
	}
	if err != nil {
		file := cmp.Or(rules.ExplicitPath, environment, clientcmd.RecommendedHomeFile)
		return ccm.Cluster{}, fmt.Errorf("kubeconfig %s: %w", file, kubeconfig.Explain(err))
	}
	cluster := ccm.Cluster{
		CloudConfig: cmp.Or(c.cloudConfig, up.CloudConfig), Name: cmp.Or(c.clusterName, up.ClusterName, defaultClusterName),
		Secret: c.secretOf(), Kubernetes: kubernetes,
	}
	if cluster.CloudConfig == "" && cluster.Secret.Name == "" {
		return cluster, errors.New("--cloud-config is missing: want the path of the cloud-controller-manager's azure.json")
	}
	return cluster, nil
}

// localCluster returns the selected cluster of kaz local up: the one with the kubeconfig, or without a kubeconfig the one
// in --dir.
func (c clusterFlags) localCluster(environment string) (localcluster.Status, error) {
	kubeconfig := cmp.Or(c.kubeconfig, environment)
	dir := c.dir
	if kubeconfig != "" {
		dir = filepath.Dir(kubeconfig)
	}
	status, err := localcluster.ReadStatus(dir)
	if err == nil && kubeconfig != "" && !sameFile(kubeconfig, status.Kubeconfig) {
		err = fmt.Errorf("%s is not the kubeconfig of the cluster in %s", kubeconfig, dir)
	}
	return status, err
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// setClientEnvironment sets the environment variables of a client of a local Azure in this process. The libraries for
// identities and TLS read them.
func (c clusterFlags) setClientEnvironment(ctx context.Context, up localcluster.Status) error {
	azure, found, err := c.localAzure(ctx, up)
	if err != nil || !found {
		return err
	}
	return setClientEnvironment(azure)
}

func setClientEnvironment(azure client.Info) error {
	return errors.Join(
		os.Setenv("IDENTITY_ENDPOINT", azure.IdentityEndpoint),
		os.Setenv("IDENTITY_HEADER", azure.IdentityHeader),
		os.Setenv("SSL_CERT_FILE", azure.CAFile),
	)
}

// localAzure returns the local Azure of --cloud-config, or without that flag the one of a cluster. It finds none for an
// azure.json that is invalid or refers to another Azure.
func (c clusterFlags) localAzure(ctx context.Context, up localcluster.Status) (info client.Info, found bool, err error) {
	if c.cloudConfig == "" {
		if up.Dir == "" {
			return info, false, nil
		}
		if info, err = client.Find(ctx, "", up.Dir); err != nil {
			err = fmt.Errorf("the local Azure of %s: %w", up.Dir, err)
		}
		return info, err == nil, err
	}
	config, _, err := cloudconfig.Load(c.cloudConfig)
	if err != nil || config.ResourceManagerEndpoint == "" {
		return info, false, nil
	}
	dirs := []string{filepath.Dir(c.cloudConfig), c.dir}
	if up.Dir != "" {
		dirs = append(dirs, up.Dir)
	}
	if announced, err := client.AnnounceDir(); err == nil {
		dirs = append(dirs, announced)
	}
	info, err = client.Find(ctx, config.ResourceManagerEndpoint, dirs...)
	return info, err == nil, nil
}

// explainError adds the cause to an error of the Kubernetes API.
func explainError(err error, host string) error {
	if urlError, ok := errors.AsType[*url.Error](err); ok && strings.HasPrefix(urlError.URL, host) {
		return fmt.Errorf("cannot reach Kubernetes at %s: %w", host, urlError.Err)
	}
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the credentials of the kubeconfig are invalid for Kubernetes at %s: %w", host, err)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the user of the kubeconfig lacks permissions: %w", err)
	}
	return err
}

// openAzure opens the Azure of a cloud configuration, to read it.
func openAzure(ctx context.Context, path string) (*access.Clients, cloudconfig.Config, error) {
	config, _, err := cloudconfig.Read(cloudconfig.Sources{Path: path, Environment: os.LookupEnv})
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		return nil, config, fmt.Errorf("cloud configuration %s: %w", path, err)
	}
	client, _, err := access.Open(ctx, config, access.ClientOptions{})
	return client, config, err
}
