package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"
	mount "k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"kaz/cmd/internal/access"
	"kaz/cmd/internal/release"
	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/imds"
	"kaz/internal/observe"
	plandisk "kaz/internal/plan/disk"
)

// run serves the driver until ctx ends.
func run(ctx context.Context, o *options, lookup func(string) (string, bool)) error {
	log, err := observe.NewLogger(os.Stderr, slog.Level(-int(o.logging.Verbosity)), o.logging.Format)
	if err != nil {
		return err
	}
	observe.UseForKubernetes(log)
	slog.SetDefault(log)
	log.Info(name, "version", release.Version(), "driver", o.driver, "mode", o.mode)
	client, err := o.kubernetes()
	if err != nil {
		return err
	}
	d := &driver{options: o, lookup: lookup, client: client, log: log}
	services, closeAll, err := d.services(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	listener, err := csi.Listen(ctx, o.endpoint)
	if err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return csi.Serve(ctx, listener, services, log) })
	if o.registeredSocket != "" {
		r := csi.Registration{Driver: o.driver, Socket: o.registeredSocket, Dir: o.registrationDir, Log: log}
		tasks.Go(func() error { return r.Register(ctx) })
	}
	return tasks.Wait()
}

// kubernetes returns a client of the Kubernetes API. Outside a cluster and without a kubeconfig there is none.
func (o *options) kubernetes() (client kubernetes.Interface, err error) {
	var config *rest.Config
	if o.kubeconfig == "" {
		if config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
			return client, nil
		}
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	return kubernetes.NewForConfig(rest.AddUserAgent(config, name))
}

// driver composes the services of a driver.
type driver struct {
	options *options
	lookup  func(string) (string, bool)
	client  kubernetes.Interface // nil without a cluster
	log     *slog.Logger
}

// services returns the services of the mode, and what ends them. A node without a cloud configuration has no
// controller.
func (d *driver) services(ctx context.Context) (csi.Services, func(), error) {
	o := d.options
	c := disk.Config{
		Name: o.driver, Version: release.Version(), OnlineResize: o.onlineResize, ListVolumes: o.listVolumes, Log: d.log,
		Limit: func(context.Context, string) int { return 0 },
	}
	s := csi.Services{Identity: &disk.Identity{Config: c}}
	err := d.openAzure(ctx, &c)
	if err != nil && (o.mode == modeController || o.node == "") {
		return s, nil, err
	}
	if err != nil {
		d.log.Warn("no controller, and no limit of disks by the size of the machine", "error", err)
	}
	if o.mode != modeController && o.node != "" {
		if s.Node, err = d.node(c); err != nil {
			return s, nil, err
		}
	}
	if o.mode == modeNode || c.Azure == nil {
		return s, func() {}, nil
	}
	controller := disk.NewController(c)
	s.Controller = controller
	return s, controller.Close, nil
}

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
	c.Limit = disk.NewSizes(client.Fresh(), config.SubscriptionID, config.Location, d.log).DataDisks
	if d.client == nil {
		d.log.Warn("no Kubernetes API: nodes are virtual machines of the resource group with the names of the nodes")
		c.Nodes = disk.NamedMachines{Group: azure.GroupID(config.SubscriptionID, config.ResourceGroup), Azure: c.Azure}
		return nil
	}
	c.Nodes, err = disk.NewKubernetesNodes(ctx, d.client)
	return err
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
	case err != nil:
		return nil, fmt.Errorf("read secret %s/%s: %w", o.secretNamespace, o.secretName, err)
	}
	return secret.Data[cloudconfig.SecretKey], nil
}

// node returns the node service.
func (d *driver) node(c disk.Config) (csispec.NodeServer, error) {
	o := d.options
	metadata, err := imds.New(imds.Config{UserAgent: c.Name + "/" + c.Version})
	if err != nil {
		return nil, err
	}
	const formatTimeout = 5 * time.Minute
	return disk.NewNode(disk.NodeConfig{
		Driver: o.driver, Node: o.node,
		Mounter: mount.NewSafeFormatAndMount(mount.New(""), utilexec.New(), mount.WithMaxConcurrentFormat(o.maxFormat, formatTimeout)),
		Place:   func(ctx context.Context) (string, int64, error) { return d.place(ctx, c, metadata) },
	}), nil
}

// place returns the zone of the machine, and how many disks the driver may attach to it.
func (d *driver) place(ctx context.Context, c disk.Config, metadata *imds.Client) (zone string, most int64, err error) {
	o := d.options
	if !o.supportZone && o.attachLimit >= 0 {
		return "", disk.Slots(o.attachLimit, o.reserved), nil
	}
	machine, err := metadata.Instance(ctx)
	if err != nil {
		return "", 0, err
	}
	if machine.Compute == nil {
		return "", 0, errors.New("the metadata service does not describe the machine")
	}
	if o.supportZone && machine.Compute.Zone != "" {
		zone = machine.Compute.Location + "-" + machine.Compute.Zone
	}
	most = o.attachLimit
	if most < 0 {
		most = int64(c.Limit(ctx, machine.Compute.VMSize))
	}
	return zone, disk.Slots(most, o.reserved), nil
}
