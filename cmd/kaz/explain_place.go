package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/internal/cloudconfig"
	"kaz/internal/local"
)

// explainPlace says which cluster is meant, and where its azure.json is.
type explainPlace struct {
	dir, kubeconfig, cloudConfig, clusterName string

	here, named bool // dir is given, clusterName is given
}

func (p *explainPlace) flags(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster (default that of the cluster in --dir if that is given, or $KUBECONFIG)")
	f.StringVar(&p.cloudConfig, "cloud-config", "", "path of azure.json (default that of the cluster in --dir)")
	f.StringVar(&p.clusterName, "cluster-name", "", `name of the cluster, as the cloud-controller-manager is told (default "kubernetes", or that of the cluster in --dir)`)
	dirFlag(command, &p.dir)
}

// check notes what is given, and refuses two clusters.
func (p *explainPlace) check(f *pflag.FlagSet) error {
	p.here, p.named = f.Changed("dir"), f.Changed("cluster-name")
	if p.here && f.Changed("kubeconfig") {
		return errors.New("--dir and --kubeconfig: want one of them")
	}
	return nil
}

// defaultClusterName is that of the cloud-controller-manager.
const defaultClusterName = "kubernetes"

// find is the cluster that is meant. named is the environment's kubeconfig.
func (p explainPlace) find(ctx context.Context, named string) (ccm.Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.kubeconfig
	cluster := ccm.Cluster{CloudConfig: p.cloudConfig, Name: p.clusterName}
	if p.here {
		named = "" // what is said wins over what happens to be set
	}
	home, err := p.local(named)
	if p.here && err != nil {
		return cluster, fmt.Errorf("--dir: %w", err)
	}
	if err != nil {
		home = local.Status{} // another one may be in the directory
	} else {
		if p.kubeconfig == "" && named == "" {
			rules.ExplicitPath = home.Kubeconfig
		}
		if cluster.CloudConfig == "" {
			cluster.CloudConfig = home.CloudConfig
		}
		if cluster.Name == "" {
			cluster.Name = home.ClusterName
		}
	}
	if err := p.actAsClient(ctx, home); err != nil {
		return cluster, err
	}
	cluster.Kubernetes, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return cluster, fmt.Errorf("no cluster is named: want --kubeconfig, $KUBECONFIG, or a cluster that runs in %s (kaz local up)", p.dir)
	}
	if err != nil {
		return cluster, fmt.Errorf("kubeconfig: %w", err)
	}
	if cluster.CloudConfig == "" {
		return cluster, errors.New("--cloud-config is missing: the path of the azure.json that the cloud-controller-manager has")
	}
	if cluster.Name == "" {
		cluster.Name = defaultClusterName
	}
	return cluster, nil
}

// local is the cluster of kaz local up that is meant: the one whose kubeconfig is
// named, or without a name the one in --dir. The error says why there is none.
func (p explainPlace) local(named string) (local.Status, error) {
	kubeconfig := named
	if p.kubeconfig != "" {
		kubeconfig = p.kubeconfig
	}
	dir := p.dir
	if kubeconfig != "" {
		dir = filepath.Dir(kubeconfig)
	}
	status, err := local.ReadStatus(dir)
	if err == nil && kubeconfig != "" && !sameFile(kubeconfig, status.Kubeconfig) {
		err = fmt.Errorf("%s is not of the cluster in %s", kubeconfig, dir)
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

// actAsClient gives this process what a client of a local Azure has in its environment: the
// libraries for identities and TLS look for it there.
func (p explainPlace) actAsClient(ctx context.Context, home local.Status) error {
	azure, found, err := p.azure(ctx, home)
	if err != nil || !found {
		return err
	}
	return errors.Join(
		os.Setenv("IDENTITY_ENDPOINT", azure.IdentityEndpoint),
		os.Setenv("IDENTITY_HEADER", azure.IdentityHeader),
		os.Setenv("SSL_CERT_FILE", azure.CAFile),
	)
}

// azure is the local Azure that is meant: the one to which an azure.json leads that is given,
// or that of a cluster. A file that leads elsewhere, or cannot be read, is not its matter.
func (p explainPlace) azure(ctx context.Context, home local.Status) (info local.AzureInfo, found bool, err error) {
	if p.cloudConfig == "" {
		if home.Dir == "" {
			return info, false, nil
		}
		if info, err = local.FindAzure(ctx, "", home.Dir); err != nil {
			err = fmt.Errorf("the local Azure of %s: %w", home.Dir, err)
		}
		return info, err == nil, err
	}
	c, _, err := cloudconfig.Load(p.cloudConfig)
	if err != nil || c.ResourceManagerEndpoint == "" {
		return info, false, nil
	}
	dirs := []string{filepath.Dir(p.cloudConfig), p.dir}
	if home.Dir != "" {
		dirs = append(dirs, home.Dir)
	}
	if announced, err := local.AnnounceDir(); err == nil {
		dirs = append(dirs, announced)
	}
	info, err = local.FindAzure(ctx, c.ResourceManagerEndpoint, dirs...)
	return info, err == nil, nil
}

// plainly says in a person's words why a cluster could not be looked at.
func plainly(err error, host string) error {
	if urlError, ok := errors.AsType[*url.Error](err); ok && strings.HasPrefix(urlError.URL, host) {
		return fmt.Errorf("cannot reach Kubernetes at %s: %w", host, urlError.Err)
	}
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the credentials of the kubeconfig are not those of Kubernetes at %s: %w", host, err)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the user of the kubeconfig may not look: %w", err)
	}
	return err
}
