// Package app composes the cloud-controller-manager: the framework of k8s.io/cloud-provider with
// kaz's cloud provider in it. Layer L4. It is a package of its own so that the kaz command can run it
// too.
package app

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric

	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/ipam"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/component/access"
	"kaz/internal/reconcile"
)

// serviceSyncs limits how many Services are updated in Kubernetes at the same time.
const serviceSyncs = 64

// Defaults above the framework's. The framework is tuned for clouds where each controller sends one
// request at a time; here the controllers are the bottleneck.
const (
	nodeSyncs = 8
	kubeQPS   = 200
	kubeBurst = 400
)

// Command returns the program's command. lookup reads the environment.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		// Only a broken build gets here: the framework fails to make its own defaults.
		panic(fmt.Sprintf("cloud-controller-manager options: %v", err))
	}
	o.KubeCloudShared.CloudProvider.Name = cloudprovider.Name
	o.ServiceController.ConcurrentServiceSyncs = serviceSyncs
	o.NodeController.ConcurrentNodeSyncs = nodeSyncs
	o.Generic.ClientConnection.QPS, o.Generic.ClientConnection.Burst = kubeQPS, kubeBurst

	var ranges ipam.Flags
	var allocation ipam.Config
	flags := cliflag.NamedFlagSets{}
	addNodeIPAMFlags(&flags, &ranges)
	var services service.Config
	addServiceFlags(&flags, &services)
	var approve bool
	addNodeApprovalFlag(&flags, &approve)
	dry := &dryRun{out: os.Stdout}
	dry.addFlag(&flags)
	var running sync.WaitGroup // controllers that may have Azure writes in flight
	p := &program{
		options: o, aliases: aliases(),
		source: source{lookup: lookup}, running: &running,
		controllers: withNodeApproval(withServices(withNodeIPAM(frameworkapp.DefaultInitFuncConstructors, &allocation), &services, dry,
			&running), &approve, &running),
	}
	p.check = func() error {
		return checkServiceFlags(services, o.ServiceController.ConcurrentServiceSyncs)
	}
	p.prepare = func(c *config.CompletedConfig) error {
		if err := dry.prepare(c); err != nil {
			return err
		}
		var err error
		allocation, err = readNodeIPAM(c, ranges)
		return err
	}
	missing := registered(newMissingRights())
	p.open = func(ctx context.Context, c *config.CompletedConfig, settings cloudconfig.Config,
		wrap func(reconcile.Azure) reconcile.Azure) (*cloudprovider.Cloud, error) {
		saveMemory(c, lookup)
		cloud, lacks,
			err := openCloud(ctx, settings, access.ClientOptions{Registerer: legacyregistry.Registerer()},
			func(client reconcile.Azure) reconcile.Azure { return wrap(dry.client(client)) }, missing)
		if err != nil {
			return nil, err
		}
		p.notices.missing(lacks)
		if err := checkRoutes(c, cloud); err != nil {
			cloud.Close()
			return nil, err
		}
		return cloud, nil
	}
	return p.command(flags)
}

// saveMemory reduces the memory of the informers. It drops managedFields, which no controller reads
// and which are often larger than the rest of the object. It also runs the garbage collector more
// often, unless GOGC is set.
func saveMemory(c *config.CompletedConfig, lookup func(string) (string, bool)) {
	c.SharedInformers = informers.NewSharedInformerFactoryWithOptions(c.VersionedClient, c.ComponentConfig.Generic.MinResyncPeriod.Duration,
		informers.WithTransform(withoutManagedFields))
	if _, set := lookup("GOGC"); !set {
		const percent = 50
		debug.SetGCPercent(percent)
	}
}

func withoutManagedFields(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil { // objects without metadata have no managedFields
		o.SetManagedFields(nil)
	}
	return object, nil
}
