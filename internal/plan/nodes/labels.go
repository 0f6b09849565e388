package nodes

import v1 "k8s.io/api/core/v1"

// Labels that only Azure's nodes have.
const (
	LabelSubFaultDomain    = "topology.kubernetes.azure.com/sub-fault-domain"
	LabelInterconnectGroup = "topology.kubernetes.azure.com/interconnect-group"
)

// Labels are what a node is labelled with; what is not known is no label.
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

// BetaLabels are the deprecated names of a node's labels, with the values that the
// present names have.
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
