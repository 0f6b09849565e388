package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/metadata"
	"kaz/internal/plan/nodes"
)

// Source describes the machine of a node. The error kind is NotFound if the machine does not exist.
// Sources are compared with ==.
type Source interface {
	Describe(ctx context.Context, node *corev1.Node) (Facts, error)
}

// Facts are the properties of a machine.
type Facts struct {
	nodes.Metadata
	// OutsideUnknown says why the external addresses are unknown. The node then keeps the ones it
	// has.
	OutsideUnknown error
}

// Service is an instance metadata service. Its errors are [*azure.Error].
type Service interface {
	Instance(ctx context.Context) (metadata.Instance, error)
	LoadBalancer(ctx context.Context) (metadata.LoadBalancer, error)
}

// FromMetadata is a Source that reads the instance metadata service.
type FromMetadata struct {
	Service Service
	// Named requires that the machine has the node's name. On the node itself the host name may
	// differ. In a list of nodes and services, the entries could be mixed up.
	Named bool
}

// Describe implements [Source].
func (s FromMetadata) Describe(ctx context.Context, node *corev1.Node) (Facts, error) {
	instance, err := s.Service.Instance(ctx)
	if err != nil {
		return Facts{}, err
	}
	if s.Named && !nodes.Bears(instance, node.Name) {
		return Facts{}, contradiction(fmt.Sprintf("the metadata service of node %s is that of the machine %q (computer name %q)",
			node.Name, instance.Compute.Name, instance.Compute.OSProfile.ComputerName))
	}
	var balancer metadata.LoadBalancer
	var unknown error
	if !nodes.ShowsPublic(instance) {
		if balancer, unknown = s.Service.LoadBalancer(ctx); azure.IsNotFound(unknown) {
			unknown = nil // the machine is not behind a load balancer
		}
		if err := ctx.Err(); err != nil {
			return Facts{}, err
		}
	}
	d, err := nodes.FromMetadata(instance, balancer.LoadBalancer.PublicIPAddresses, node.Name)
	return Facts{Metadata: d, OutsideUnknown: unknown}, err
}

// FromAzure is a Source that reads the Azure API, like the cloud provider does for all nodes.
type FromAzure struct{ Instances framework.InstancesV2 }

// unmanaged is the label of nodes that the cloud provider ignores. A node manager still describes its
// own node.
const unmanaged = "kubernetes.azure.com/managed"

// Describe implements [Source].
func (s FromAzure) Describe(ctx context.Context, node *corev1.Node) (Facts, error) {
	if strings.EqualFold(node.Labels[unmanaged], "false") {
		node = node.DeepCopy()
		maps.DeleteFunc(node.Labels, func(key, _ string) bool { return key == unmanaged })
	}
	m, err := s.Instances.InstanceMetadata(ctx, node)
	if errors.Is(err, framework.InstanceNotFound) {
		return Facts{}, &azure.Error{Kind: azure.NotFound, Op: "look for the machine", Cause: err}
	}
	if err != nil {
		return Facts{}, err
	}
	d := nodes.Description{
		ProviderID: m.ProviderID, InstanceType: m.InstanceType, Addresses: m.NodeAddresses,
		Zone: m.Zone, Region: m.Region,
	}
	switch {
	case d.ProviderID == "":
		err = fmt.Errorf("azure returned no id for the machine of node %s", node.Name)
	case d.InstanceType == "":
		err = fmt.Errorf("azure returned no size for the machine of node %s", node.Name)
	case len(d.Addresses) == 0:
		err = fmt.Errorf("azure returned no addresses for the machine of node %s", node.Name)
	}
	return Facts{Metadata: nodes.Metadata{Description: d}}, err
}

// contradiction is an error that retries do not solve: node and machine do not match.
type contradiction string

func (c contradiction) Error() string { return string(c) }
