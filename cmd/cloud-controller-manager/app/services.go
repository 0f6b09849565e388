package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	framework "k8s.io/cloud-provider"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // the work queue metrics
	genericmanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"

	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/component/event"
)

// serviceComponent is the source of the controller's events and the name of its client, as in the
// framework.
const serviceComponent = "service-controller"

// repairPeriod is the default interval of drift repair.
const repairPeriod = 30 * time.Minute

// addServiceFlags adds the service controller's own flags.
func addServiceFlags(sets *cliflag.NamedFlagSets, settings *service.Config) {
	fs := sets.FlagSet(names.ServiceLBController)
	AddClassFlag(fs, (*[]string)(&settings.Classes))
	fs.DurationVar(&settings.RepairPeriod, "drift-repair-period", repairPeriod,
		"How often load balancers, public IPs and security rules are compared with Azure and drift is repaired; the first time "+
			"90s after the start, or after this period if it is shorter. 0 disables the comparison.")
}

// AddClassFlag adds the flag that selects Services by load balancer class.
func AddClassFlag(fs *pflag.FlagSet, classes *[]string) {
	fs.StringSliceVar(classes, "load-balancer-class", []string{"", service.Class},
		"Load balancer classes of the Services that are served. The empty class selects Services without a class.")
}

// checkServiceFlags validates the flags of the service controller.
func checkServiceFlags(settings service.Config, syncs int32) error {
	errs := []error{checkClasses(settings.Classes)}
	if settings.RepairPeriod < 0 {
		errs = append(errs, fmt.Errorf("--drift-repair-period %v: must not be negative; 0 disables drift repair", settings.RepairPeriod))
	}
	if syncs < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-service-syncs %d: must be at least 1", syncs))
	}
	return errors.Join(errs...)
}

// checkClasses rejects classes that are not valid in a Service.
func checkClasses(flag []string) error {
	var errs []error
	for _, class := range flag {
		if class != "" && len(validation.IsQualifiedName(class)) > 0 {
			errs = append(errs,
				fmt.Errorf("--load-balancer-class %q: not a valid class name; an example is %s", class, service.Class))
		}
	}
	return errors.Join(errs...)
}

// classes returns the classes of the flag. --load-balancer-class= is the empty class alone.
func classes(flag []string) service.Classes {
	if len(flag) == 0 {
		return service.Classes{""}
	}
	return flag
}

// withServices replaces the framework's service controller by kaz's. The controller is part of
// running until it has no work in flight.
func withServices(controllers map[string]frameworkapp.ControllerInitFuncConstructor, settings *service.Config, dry *dryRun,
	running *sync.WaitGroup) map[string]frameworkapp.ControllerInitFuncConstructor {
	all := maps.Clone(controllers)
	all[names.ServiceLBController] = frameworkapp.ControllerInitFuncConstructor{
		InitContext: frameworkapp.ControllerInitContext{ClientName: serviceComponent},
		Constructor: func(init frameworkapp.ControllerInitContext, c *config.CompletedConfig,
			cloud framework.Interface) frameworkapp.InitFunc {
			return func(ctx context.Context, manager genericmanager.ControllerContext) (controller.Interface, bool, error) {
				azure, ours := cloud.(*cloudprovider.Cloud)
				if !ours {
					return nil, false,
						fmt.Errorf("%s serves %s only, not %s", names.ServiceLBController, cloudprovider.Name, cloud.ProviderName())
				}
				return nil, true, startServices(ctx, init, c, manager, azure, *settings, dry, running)
			}
		},
	}
	return all
}

// startServices starts the service controller. Events use a client of their own, so that many events
// do not delay Services.
func startServices(ctx context.Context, init frameworkapp.ControllerInitContext, c *config.CompletedConfig,
	manager genericmanager.ControllerContext, cloud *cloudprovider.Cloud, settings service.Config, dry *dryRun,
	running *sync.WaitGroup) error {
	settings.Classes = classes(settings.Classes)
	settings.Syncs = int(c.ComponentConfig.ServiceController.ConcurrentServiceSyncs)
	events, stopEvents := event.NewRecorder(ctx, c.ClientBuilder.ClientOrDie(init.ClientName), serviceComponent)
	services, err := cloud.Services(c.ComponentConfig.KubeCloudShared.ClusterName, settings, service.Deps{
		Client: c.ClientBuilder.ClientOrDie(init.ClientName), Informers: c.SharedInformers,
		Events: events, Registerer: legacyregistry.Registerer(),
	})
	if err != nil {
		stopEvents()
		return err
	}
	running.Go(func() {
		defer stopEvents()
		manager.ControllerManagerMetrics.ControllerStarted("service")
		defer manager.ControllerManagerMetrics.ControllerStopped("service")
		dry.run(ctx, services)
	})
	return nil
}
