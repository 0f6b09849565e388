package nodes

import v1 "k8s.io/api/core/v1"

// Azure-specific labels of nodes.
const (
	LabelSubFaultDomain    = "topology.kubernetes.azure.com/sub-fault-domain"
	LabelInterconnectGroup = "topology.kubernetes.azure.com/interconnect-group"
)

// Labels returns the labels of a node, without unknown values.
func (d Metadata) Labels() map[string]string {
	labels := map[string]string{}
	for _, l := range []struct{ key, value string }{
		{v1.LabelInstanceTypeStable, d.InstanceType},
		{v1.LabelTopologyZone, d.Zone},
		{v1.LabelTopologyRegion, d.Region},
		{LabelSubFaultDomain, d.SubFaultDomain},
		{LabelInterconnectGroup, d.InterconnectGroup},
	} {
		if l.value != "" {
			labels[l.key] = l.value
		}
	}
	return labels
}

// BetaLabels returns the deprecated labels of a node with the values of the current ones.
func BetaLabels(labels map[string]string) map[string]string {
	beta := map[string]string{}
	for _, l := range []struct{ present, deprecated string }{
		{v1.LabelInstanceTypeStable, v1.LabelInstanceType},
		{v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone},
		{v1.LabelTopologyRegion, v1.LabelFailureDomainBetaRegion},
	} {
		if value, ok := labels[l.present]; ok {
			beta[l.deprecated] = value
		}
	}
	return beta
}
