package app

import (
	"context"
	"maps"

	framework "k8s.io/cloud-provider"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics/legacyregistry"
	genericmanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"

	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/ipam"
)

// nodeIPAM is the controller's name; nodeIPAMAlias is the name that the framework also accepts.
const (
	nodeIPAM      = "node-ipam-controller"
	nodeIPAMAlias = "node-ipam"
)

// addNodeIPAMFlags adds the controller's flags. The framework does not have them.
func addNodeIPAMFlags(sets *cliflag.NamedFlagSets, flags *ipam.Flags) {
	fs := sets.FlagSet(nodeIPAM)
	fs.StringVar(&flags.ServiceClusterIPRange, "service-cluster-ip-range", "",
		"CIDR ranges of Services, at most one for each IP family. Nodes get no addresses in them. Requires --allocate-node-cidrs.")
	fs.IntVar(&flags.MaskSize, "node-cidr-mask-size", 24, "Has no effect: use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6.")
	fs.IntVar(&flags.MaskSizeIPv4, "node-cidr-mask-size-ipv4", 0,
		"Prefix length of a node's IPv4 range; 0 is 24. Requires --allocate-node-cidrs.")
	fs.IntVar(&flags.MaskSizeIPv6, "node-cidr-mask-size-ipv6", 0,
		"Prefix length of a node's IPv6 range; 0 is 64. Requires --allocate-node-cidrs.")
}

// readNodeIPAM parses the flags. Without --allocate-node-cidrs it returns the zero Config.
func readNodeIPAM(c *config.CompletedConfig, flags ipam.Flags) (ipam.Config, error) {
	shared := c.ComponentConfig.KubeCloudShared
	if !shared.AllocateNodeCIDRs {
		return ipam.Config{}, nil
	}
	flags.AllocatorType, flags.ClusterCIDR = shared.CIDRAllocatorType, shared.ClusterCIDR
	return flags.Read()
}

// withNodeIPAM adds the node IPAM controller to the framework's controllers.
func withNodeIPAM(controllers map[string]frameworkapp.ControllerInitFuncConstructor,
	settings *ipam.Config) map[string]frameworkapp.ControllerInitFuncConstructor {
	all := maps.Clone(controllers)
	all[nodeIPAM] = frameworkapp.ControllerInitFuncConstructor{
		InitContext: frameworkapp.ControllerInitContext{ClientName: "node-controller"},
		Constructor: func(init frameworkapp.ControllerInitContext, c *config.CompletedConfig,
			cloud framework.Interface) frameworkapp.InitFunc {
			return func(ctx context.Context, _ genericmanager.ControllerContext) (controller.Interface, bool, error) {
				if !c.ComponentConfig.KubeCloudShared.AllocateNodeCIDRs {
					return nil, false, nil
				}
				return nil, true, startNodeIPAM(ctx, init, c, cloud, *settings)
			}
		},
	}
	return all
}

func startNodeIPAM(ctx context.Context, init frameworkapp.ControllerInitContext, c *config.CompletedConfig, cloud framework.Interface,
	settings ipam.Config) error {
	var tags ipam.Tags
	if azure, ours := cloud.(*cloudprovider.Cloud); ours && settings.Tagged {
		tags = azure.SetTags
	}
	controller, err := ipam.New(settings, c.ClientBuilder.ClientOrDie(init.ClientName),
		c.SharedInformers.Core().V1().Nodes(), tags, legacyregistry.Registerer())
	if err != nil {
		return err
	}
	go controller.Run(ctx)
	return nil
}

// aliases returns the alternative controller names that --controllers accepts.
func aliases() map[string]string {
	all := names.CCMControllerAliases()
	all[nodeIPAMAlias] = nodeIPAM
	return all
}
