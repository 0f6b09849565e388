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

// nodeIPAM is the controller's name and, for those who have always called it so,
// nodeIPAMAlias.
const (
	nodeIPAM      = "node-ipam-controller"
	nodeIPAMAlias = "node-ipam"
)

// addNodeIPAMFlags adds the flags that the framework does not have.
func addNodeIPAMFlags(sets *cliflag.NamedFlagSets, flags *ipam.Flags) {
	fs := sets.FlagSet(nodeIPAM)
	fs.StringVar(&flags.ServiceClusterIPRange, "service-cluster-ip-range", "",
		"Ranges of the addresses of Services, one of each family at most. Nodes get no part of them. Only with --allocate-node-cidrs.")
	fs.IntVar(&flags.MaskSize, "node-cidr-mask-size", 24, "Has no effect: see --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6.")
	fs.IntVar(&flags.MaskSizeIPv4, "node-cidr-mask-size-ipv4", 0, "Size of a node's IPv4 range: 0 for 24, which is a /24. Only with --allocate-node-cidrs.")
	fs.IntVar(&flags.MaskSizeIPv6, "node-cidr-mask-size-ipv6", 0, "Size of a node's IPv6 range: 0 for 64, which is a /64. Only with --allocate-node-cidrs.")
}

// readNodeIPAM makes sense of the flags, where nodes are to get ranges at all.
func readNodeIPAM(c *config.CompletedConfig, flags ipam.Flags) (ipam.Config, error) {
	shared := c.ComponentConfig.KubeCloudShared
	if !shared.AllocateNodeCIDRs {
		return ipam.Config{}, nil
	}
	flags.AllocatorType, flags.ClusterCIDR = shared.CIDRAllocatorType, shared.ClusterCIDR
	return flags.Read()
}

// withNodeIPAM adds the controller to the framework's.
func withNodeIPAM(controllers map[string]frameworkapp.ControllerInitFuncConstructor, settings *ipam.Config) map[string]frameworkapp.ControllerInitFuncConstructor {
	all := maps.Clone(controllers)
	all[nodeIPAM] = frameworkapp.ControllerInitFuncConstructor{
		InitContext: frameworkapp.ControllerInitContext{ClientName: "node-controller"},
		Constructor: func(init frameworkapp.ControllerInitContext, c *config.CompletedConfig, cloud framework.Interface) frameworkapp.InitFunc {
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

func startNodeIPAM(ctx context.Context, init frameworkapp.ControllerInitContext, c *config.CompletedConfig, cloud framework.Interface, settings ipam.Config) error {
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

// aliases are other names of controllers that --controllers takes.
func aliases() map[string]string {
	all := names.CCMControllerAliases()
	all[nodeIPAMAlias] = nodeIPAM
	return all
}
