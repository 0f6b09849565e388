package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/cmd/internal/access"
	"kaz/cmd/internal/release"
	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/csi/disk"
	plandisk "kaz/internal/plan/disk"
)

// openAzure opens Azure as the cloud configuration describes it.
func (d *driver) openAzure(ctx context.Context, c *disk.Config) error {
	config, err := d.cloudConfig(ctx)
	if err != nil {
		return err
	}
	config.UserAgent = cmp.Or(d.options.userAgent, d.options.driver+"/"+release.Version())
	if d.options.userAgentSuffix != "" {
		config.UserAgent += " " + d.options.userAgentSuffix
	}
	environment, err := access.DescribeCloud(ctx, nil, config)
	if err != nil {
		return err
	}
	// Attachments are decided on what Azure has now. Only the list of sizes is kept, by its reader.
	client, err := access.OpenClient(config, environment, access.ClientOptions{
		TTL: map[string]time.Duration{"": 0}, Registerer: legacyregistry.Registerer(), Finish: time.Minute,
	})
	if err != nil {
		return err
	}
	c.Azure = struct {
		azure.Reader
		azure.Writer
	}{client.Fresh(), client}
	c.Cluster = plandisk.Cluster{
		Subscription: config.SubscriptionID, ResourceGroup: config.ResourceGroup, Location: config.Location,
	}
	if config.EdgeZone() {
		c.Cluster.ExtendedLocation = &azure.ExtendedLocation{Name: config.ExtendedLocationName, Type: config.ExtendedLocationType}
	}
	d.sizes = disk.NewSizes(client.Fresh(), config.SubscriptionID, config.Location, d.log)
	c.Limit = d.sizes.DataDisks
	if d.options.mode == modeNode {
		return nil // only the controller looks for machines
	}
	d.ready.add("sign in to Azure", client.SignIn)
	if d.client == nil {
		d.log.Warn("no Kubernetes API: nodes are virtual machines of the resource group with the names of the nodes")
		c.Nodes = disk.NamedMachines{Group: azure.GroupID(config.SubscriptionID, config.ResourceGroup), Azure: c.Azure}
		return nil
	}
	uses, err := disk.NewAttachments(ctx, d.client, d.options.driver)
	if err != nil {
		return err
	}
	d.ready.add("VolumeAttachments", uses.Synced)
	c.Uses = uses
	nodes, err := disk.NewKubernetesNodes(ctx, d.client)
	if err != nil {
		return err
	}
	d.ready.add("Node objects", nodes.Synced)
	c.Nodes = nodes
	return nil
}

// cloudConfig reads azure.json: the Secret if there is one, else the file.
func (d *driver) cloudConfig(ctx context.Context) (cloudconfig.Config, error) {
	path := d.options.cloudConfig
	if path == "" {
		path = defaultConfig
		if named, ok := d.lookup("AZURE_CREDENTIAL_FILE"); ok && named != "" {
			path = named
		}
	}
	sources := cloudconfig.Sources{Path: path, Environment: d.lookup}
	where := path
	if text, err := d.secret(ctx); err != nil {
		return cloudconfig.Config{}, err
	} else if text != nil {
		sources.Path, sources.Secret, where = "", text, "secret "+d.options.secretNamespace+"/"+d.options.secretName
	}
	c, warnings, err := cloudconfig.Read(sources)
	for _, w := range warnings {
		d.log.Warn("cloud configuration", "source", where, "key", w.Key, "message", w.Message)
	}
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return c, fmt.Errorf("cloud configuration %s: %w", where, err)
	}
	return c, nil
}

// secret returns the cloud configuration in the Secret, nil if there is none.
func (d *driver) secret(ctx context.Context) ([]byte, error) {
	o := d.options
	if d.client == nil || o.secretName == "" || o.secretNamespace == "" || o.cloudConfig != "" {
		return nil, nil
	}
	secret, err := d.client.CoreV1().Secrets(o.secretNamespace).Get(ctx, o.secretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		d.log.Warn("the secret with the cloud configuration may not be read: the file is used", "error", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read secret %s/%s: %w", o.secretNamespace, o.secretName, err)
	}
	return secret.Data[cloudconfig.SecretKey], nil
}
