package nodes

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Description is what Kubernetes is told of a machine.
type Description struct {
	ProviderID   string
	InstanceType string
	Addresses    []v1.NodeAddress
	Zone         string // "westeurope-1", or a fault domain "0" where there are no zones
	Region       string
}

// Describe tells of a machine under its node's name. The addresses are those of
// the primary interface: inside addresses, host name, outside addresses. Their
// order is that which clusters have, because another one would rewrite the status
// of every node. region is the cluster's, for a machine that does not say its own.
func Describe(m Machine, name, region string) (Description, error) {
	id, err := ProviderID(m.Instance.ID)
	if err != nil {
		return Description{}, err
	}
	d := Description{ProviderID: id, Region: normal(region)}
	if m.Instance.Location != "" {
		d.Region = normal(m.Instance.Location)
	}
	if d.InstanceType = m.size(); d.InstanceType == "" {
		return d, fmt.Errorf("machine %s says no size", m.Instance.ID)
	}
	if d.Zone, err = m.zone(d.Region); err != nil {
		return d, err
	}
	if d.Addresses = m.addresses(name); len(d.Addresses) < 2 {
		return d, fmt.Errorf("machine %s has no primary interface with an address", m.Instance.ID)
	}
	return d, nil
}

func (m Machine) size() string {
	if m.Instance.SKU != nil {
		return m.Instance.SKU.Name
	}
	if h := m.Instance.Properties.HardwareProfile; h != nil {
		return h.VMSize
	}
	return ""
}

// zone is the availability zone, else the fault domain.
func (m Machine) zone(region string) (string, error) {
	if len(m.Instance.Zones) > 0 {
		if _, err := strconv.Atoi(m.Instance.Zones[0]); err != nil {
			return "", fmt.Errorf("machine %s is in zone %q, which is no number", m.Instance.ID, m.Instance.Zones[0])
		}
		return region + "-" + m.Instance.Zones[0], nil
	}
	if view := m.Instance.Properties.InstanceView; view != nil && view.PlatformFaultDomain != nil {
		return strconv.Itoa(int(*view.PlatformFaultDomain)), nil
	}
	if !isInstance(m.Instance.ID) && m.Instance.Properties.VirtualMachineScaleSet == nil {
		return "0", nil // it is alone, or in an availability set that does not tell
	}
	return "", fmt.Errorf("machine %s says neither a zone nor a fault domain", m.Instance.ID)
}

func (m Machine) addresses(name string) []v1.NodeAddress {
	var inside, outside []v1.NodeAddress
	for _, c := range m.configurations() {
		if a := c.Properties.PrivateIPAddress; a != "" {
			inside = append(inside, v1.NodeAddress{Type: v1.NodeInternalIP, Address: a})
		}
		if ip := c.Properties.PublicIPAddress; ip != nil && m.PublicIPs[ip.ID.Key()] != "" {
			outside = append(outside, v1.NodeAddress{Type: v1.NodeExternalIP, Address: m.PublicIPs[ip.ID.Key()]})
		}
	}
	all := append(inside, v1.NodeAddress{Type: v1.NodeHostName, Address: name})
	return append(all, outside...)
}

// Labels are those of a machine that only Azure's nodes have.
func (m Machine) Labels() map[string]string {
	group := m.Instance.Tags[interconnectTag]
	if group == "" || len(validation.IsValidLabelValue(group)) > 0 {
		return nil
	}
	return map[string]string{LabelInterconnectGroup: group}
}
