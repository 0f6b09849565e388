package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/component/access"
	"kaz/internal/component/election"
	"kaz/internal/plan/joining"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
	"kaz/internal/plan/routes"
	"kaz/internal/reconcile"
)

// atStart is the timeout of the Azure requests before the controllers start.
const atStart = time.Minute

// openCloud opens the cloud of a configuration. It also returns the missing rights.
func openCloud(ctx context.Context, c cloudconfig.Config, options access.ClientOptions, wrap func(reconcile.Azure) reconcile.Azure,
	missing *prometheus.GaugeVec) (*cloudprovider.Cloud, []access.Lack, error) {
	client, err := connect(ctx, c, options)
	if err != nil {
		return nil, nil, err
	}
	lacks, err := checkRights(ctx, c, client, missing)
	if err != nil {
		return nil, nil, err
	}
	config := providerConfig(c, options.Registerer)
	config.Zones = zonesWhenAsked(client, c)
	return cloudprovider.New(config, wrap(client)), lacks, nil
}

// connect signs in and opens the ARM client.
func connect(ctx context.Context, c cloudconfig.Config, options access.ClientOptions) (*access.Clients, error) {
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	options.TTL, options.Finish = lifetimes(c), election.StopGrace
	client, _, err := access.Open(ctx, c, options)
	if err != nil {
		return nil, err
	}
	if err := client.SignIn(ctx); err != nil {
		return nil, err
	}
	return client, nil
}

// unserved returns an error for settings that kaz does not support. Ignoring them would look like
// support.
func unserved(c cloudconfig.Config) error {
	const gateway = "%s: %v needs the service gateway, which balances load to pods and is not supported here; allowed: %s"
	var problems []error
	if c.LoadBalancerSKU == cloudconfig.SKUService {
		problems = append(problems, fmt.Errorf(gateway, "loadBalancerSku", c.LoadBalancerSKU, "standard"))
	}
	if c.LoadBalancerBackendPoolConfigurationType == cloudconfig.PoolPodIP {
		problems = append(problems,
			fmt.Errorf(gateway, "loadBalancerBackendPoolConfigurationType", c.LoadBalancerBackendPoolConfigurationType,
				"nodeIPConfiguration or nodeIP"))
	}
	return errors.Join(problems...)
}

// withoutBasic replaces the load balancer SKU Basic, which Azure has retired, by Standard. It then
// validates the keys that only count with Standard.
func withoutBasic(c cloudconfig.Config) (cloudconfig.Config, error) {
	if c.LoadBalancerSKU != cloudconfig.SKUBasic {
		return c, nil
	}
	c.LoadBalancerSKU = cloudconfig.SKUStandard
	slog.Warn("cloud configuration", "key", "loadBalancerSku", "message",
		"azure has retired the SKU Basic: basic is read as standard; load balancers of SKU Basic are replaced, and dynamic public IPs "+
			"get a new address")
	return c, c.Validate()
}

// lifetimes returns how long cached reads stay valid, by resource type.
func lifetimes(c cloudconfig.Config) map[string]time.Duration {
	if c.DisableAPICallCache {
		return nil
	}
	return map[string]time.Duration{
		network.LoadBalancers:       c.LoadBalancerCacheTTL,
		network.PublicIPAddresses:   c.PublicIPCacheTTL,
		network.SecurityGroups:      c.NSGCacheTTL,
		network.PrivateLinkServices: c.PLSCacheTTL,
		network.RouteTables:         c.RouteTableCacheTTL,
		compute.ScaleSets:           c.VMSSCacheTTL,
		compute.ScaleSetInstances:   c.VMSSVirtualMachinesCacheTTL,
		compute.VirtualMachines:     c.VMCacheTTL,
		network.Interfaces:          c.NonVmssUniformNodesCacheTTL,
	}
}

// zonesWhenAsked returns a function that reads the zones of the region once. Only new public IPs need
// zones, and Azure cannot add zones later. Without the right to read them, public IPs get no zones.
// Any other failure is returned, and the next call reads again.
func zonesWhenAsked(client azure.Reader, c cloudconfig.Config) func(context.Context) ([]string, error) {
	const forbidden = 403
	var mu sync.Mutex // guards known and zones; never held while waiting
	var known bool
	var zones []string
	return func(ctx context.Context) ([]string, error) {
		mu.Lock()
		had, asked := zones, known
		mu.Unlock()
		if asked {
			return had, nil
		}
		ctx, cancel := context.WithTimeout(ctx, atStart)
		defer cancel()
		read, err := regionZones(ctx, client, c)
		if e, ok := errors.AsType[*azure.Error](err); ok && e.Kind == azure.Denied && e.Status == forbidden {
			// Existing public IPs keep their zones. Public IPs without zones are better than no
			// Services.
			slog.WarnContext(ctx, "no right to read the zones of the region: new public IPs get no zones", "region", c.Location,
				"error", err)
		} else if err != nil {
			return nil, fmt.Errorf("read the zones of region %s: %w", c.Location, err)
		}
		mu.Lock()
		defer mu.Unlock()
		zones, known = read, true
		return read, nil
	}
}

// regionZones returns the zones for new public IPs, as numbered for the subscription. Azure Stack has
// none.
func regionZones(ctx context.Context, client azure.Reader, c cloudconfig.Config) ([]string, error) {
	if c.Stack() {
		return nil, nil
	}
	doc, err := client.Get(ctx, azure.SubscriptionID(or(c.NetworkResourceSubscriptionID, c.SubscriptionID))+"/providers/Microsoft.Compute")
	if err != nil {
		return nil, err
	}
	return nodes.Zones(doc, c.Location)
}

func providerConfig(c cloudconfig.Config, registerer prometheus.Registerer) cloudprovider.Config {
	tags := azure.Tags{}
	maps.Copy(tags, c.ResourceTags())
	return cloudprovider.Config{
		Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location,
		NotFoundGrace: c.NodeInstanceNotFoundGracePeriod,
		Uncached:      c.DisableAPICallCache,
		Attester:      joining.Domain(c.Cloud),
		Registerer:    registerer,
		Routes: routes.Config{
			Subscription: or(c.NetworkResourceSubscriptionID, c.SubscriptionID),
			Table:        c.RouteTableName, ResourceGroup: or(c.RouteTableResourceGroup, c.ResourceGroup),
			ClusterGroup: c.ResourceGroup, Location: c.Location,
			Tags: tags, SystemTags: c.SystemTagPrefixes(),
		},
		LoadBalancer: loadbalancer.Config{
			Location: c.Location, Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup,
			NetworkSubscription: or(c.NetworkResourceSubscriptionID, c.SubscriptionID),
			LoadBalancerName:    c.LoadBalancerName, LoadBalancerResourceGroup: or(c.LoadBalancerResourceGroup, c.ResourceGroup),
			SecurityGroupName: c.SecurityGroupName, SecurityGroupResourceGroup: or(c.SecurityGroupResourceGroup, c.ResourceGroup),
			VirtualNetwork: c.VnetName, VirtualNetworkResourceGroup: or(c.VnetResourceGroup, c.ResourceGroup), Subnet: c.SubnetName,
			PrivateLinkResourceGroup: or(c.PrivateLinkServiceResourceGroup, c.ResourceGroup),
			Tags:                     tags, SystemTags: c.SystemTagPrefixes(),
			DisableOutboundSNAT: c.DisableOutboundSNAT, ExcludeControlPlane: c.ExcludeMasterFromStandardLB,
			IPTagsMayChange: c.EnableIPTagMutationForExistingPublicIP, SharedProbe: sharedProbe(c), EdgeZone: edgeZone(c),
			Balancers: severalBalancers(c), MaximumRules: c.MaximumLoadBalancerRuleCount,
			PoolByIP:     c.LoadBalancerBackendPoolConfigurationType == cloudconfig.PoolNodeIP,
			MigrateByAPI: c.EnableMigrateToIPBasedBackendPoolAPI,
			PresetExternal: c.PreConfiguredBackendPoolLoadBalancerTypes == cloudconfig.PreConfiguredExternal ||
				c.PreConfiguredBackendPoolLoadBalancerTypes == cloudconfig.PreConfiguredAll,
			PresetInternal: c.PreConfiguredBackendPoolLoadBalancerTypes == cloudconfig.PreConfiguredInternal ||
				c.PreConfiguredBackendPoolLoadBalancerTypes == cloudconfig.PreConfiguredAll,
		},
	}
}

// sharedProbe returns the probe that all Services with traffic policy Cluster share, or nil if each
// Service has its own.
func sharedProbe(c cloudconfig.Config) *loadbalancer.SharedProbe {
	if c.ClusterServiceLoadBalancerHealthProbeMode != cloudconfig.ProbeShared {
		return nil
	}
	return &loadbalancer.SharedProbe{Port: int32(c.ClusterServiceSharedLoadBalancerProbePort),
		Path: c.ClusterServiceSharedLoadBalancerProbePath}
}

// severalBalancers returns the load balancers over which Services are spread, or nil if there is only
// one.
func severalBalancers(c cloudconfig.Config) []loadbalancer.Balancer {
	if !c.MultipleLoadBalancers() {
		return nil
	}
	var all []loadbalancer.Balancer
	for _, b := range c.MultipleStandardLoadBalancerConfigurations {
		all = append(all, loadbalancer.Balancer{
			Name: b.Name, AllowPlacement: b.AllowServicePlacement, PrimaryVMSet: b.PrimaryVMSet,
			ServiceSelector: selector(b.ServiceLabelSelector), NamespaceSelector: selector(b.ServiceNamespaceSelector),
			NodeSelector: selector(b.NodeSelector),
		})
	}
	return all
}

// checkSelectors rejects selectors with invalid label keys or values. They would select nothing.
func checkSelectors(c cloudconfig.Config) error {
	var problems []error
	for i, b := range c.MultipleStandardLoadBalancerConfigurations {
		for _, one := range []struct {
			key string
			of  *cloudconfig.LabelSelector
		}{{"serviceLabelSelector", b.ServiceLabelSelector}, {"serviceNamespaceSelector", b.ServiceNamespaceSelector},
			{"nodeSelector", b.NodeSelector}} {
			if _, err := metav1.LabelSelectorAsSelector(selector(one.of)); err != nil {
				problems = append(problems, fmt.Errorf("multipleStandardLoadBalancerConfigurations[%d].%s: %w", i, one.key, err))
			}
		}
	}
	return errors.Join(problems...)
}

// selector converts a label selector of azure.json to Kubernetes' type.
func selector(s *cloudconfig.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
	}
	return out
}

func edgeZone(c cloudconfig.Config) *azure.ExtendedLocation {
	if !c.EdgeZone() {
		return nil
	}
	return &azure.ExtendedLocation{Name: c.ExtendedLocationName, Type: "EdgeZone"}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
