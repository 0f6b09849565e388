package loadbalancer

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

// Config is what the cloud configuration says of load balancers, with all defaults
// filled in.
type Config struct {
	ClusterName string // names pool and public IPs
	Location    string

	Subscription  string // of the scale sets
	ResourceGroup string // of the scale sets and public IPs

	NetworkSubscription       string // of load balancer, public IPs and security group
	LoadBalancerName          string
	LoadBalancerResourceGroup string

	SecurityGroupName          string // "" when none is configured
	SecurityGroupResourceGroup string

	Tags       azure.Tags // of everything that kaz makes
	SystemTags []string   // prefixes of tags that survive; where there are any, other unknown tags go

	Zones               []string // of the region, for new public IPs
	DisableOutboundSNAT bool     // of rules
	ExcludeControlPlane bool     // from the backend pool
}

// LoadBalancer is the id of the cluster's load balancer: the document that all of
// Desired's Services share, and so the key of their group commit.
func (c Config) LoadBalancer() azure.ID {
	return azure.GroupID(c.NetworkSubscription, c.LoadBalancerResourceGroup).Resource(network.LoadBalancers, c.LoadBalancerName)
}

// internalBalancer is the id of the load balancer that internal Services have.
func (c Config) internalBalancer() azure.ID { return c.LoadBalancer() + "-internal" }

func (c Config) securityGroup() azure.ID {
	return azure.GroupID(c.NetworkSubscription, c.SecurityGroupResourceGroup).Resource(network.SecurityGroups, c.SecurityGroupName)
}

func (c Config) publicIPs() azure.ID { return azure.GroupID(c.NetworkSubscription, c.ResourceGroup) }

func (c Config) publicIP(name string) azure.ID {
	return c.publicIPs().Resource(network.PublicIPAddresses, name)
}

func (c Config) machines() azure.ID { return azure.GroupID(c.Subscription, c.ResourceGroup) }

func (c Config) pool() azure.ID {
	return c.LoadBalancer().Child(network.BackendAddressPools, c.ClusterName)
}

// Service is one Service of a commit.
type Service struct {
	*v1.Service
	// Gone says that the Service is being deleted, or is no load balancer any more.
	Gone bool
}

// Key is the Service's "namespace/name".
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// Input is all that a decision is made of.
type Input struct {
	Config   Config
	Services []Service
	// Nodes are all nodes of the cluster. Where there are none, nobody joins or
	// leaves the backend pool.
	Nodes []*v1.Node
	Have  plan.Snapshot
}

// Needs names what Have must hold to decide, given what it holds already: ask
// again with what was read, until it names nothing new.
func Needs(in Input) ([]azure.ID, []azure.Query) {
	c := in.Config
	ids := []azure.ID{c.LoadBalancer()}
	if c.SecurityGroupName != "" {
		ids = append(ids, c.securityGroup())
	}
	if slices.ContainsFunc(in.Services, asksForMore) {
		ids = append(ids, c.internalBalancer())
	}
	lists := []azure.Query{
		{Scope: c.publicIPs(), Type: network.PublicIPAddresses},
		{Scope: c.machines(), Type: compute.ScaleSets},
	}
	for _, set := range scaleSetsInvolved(in) {
		lists = append(lists, azure.Query{Scope: set, Type: compute.ScaleSetInstances, Expand: "instanceView"})
	}
	return ids, lists
}

// asksForMore reports whether a Service asks for what kaz does not serve yet, and so
// may have things in Azure that kaz did not make.
func asksForMore(s Service) bool {
	_, _, asked := key.FirstUnsupported(s.Annotations)
	return asked
}

func sameText(a, b string) bool { return strings.EqualFold(a, b) }
