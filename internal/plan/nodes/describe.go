package nodes

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Description has the properties of a machine that Kubernetes needs.
type Description struct {
	ProviderID   string
	InstanceType string
	Addresses    []v1.NodeAddress
	Zone         string // "westeurope-1", or a fault domain such as "0" in a region without zones
	Region       string
}

// Describe describes a machine under the name of its node. The addresses are those of the primary
// interface: internal addresses, host name, external addresses. Existing clusters have this order;
// another one would rewrite the status of every node. region applies to a machine without a location.
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
		return d, fmt.Errorf("machine %s has no size", m.Instance.ID)
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

// zone returns the availability zone, or else the fault domain.
func (m Machine) zone(region string) (string, error) {
	if len(m.Instance.Zones) > 0 {
		if _, err := strconv.Atoi(m.Instance.Zones[0]); err != nil {
			return "", fmt.Errorf("machine %s: zone %q is not a number", m.Instance.ID, m.Instance.Zones[0])
		}
		return region + "-" + m.Instance.Zones[0], nil
	}
	if view := m.Instance.Properties.InstanceView; view != nil && view.PlatformFaultDomain != nil {
		return strconv.Itoa(int(*view.PlatformFaultDomain)), nil
	}
	if !isInstance(m.Instance.ID) && m.Instance.Properties.VirtualMachineScaleSet == nil {
		return "0", nil // not in an availability set, or in one without fault domains
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

// Labels returns the Azure-specific labels of a machine's node.
func (m Machine) Labels() map[string]string {
	group := m.Instance.Tags[interconnectTag]
	if group == "" || len(validation.IsValidLabelValue(group)) > 0 {
		return nil
	}
	return map[string]string{LabelInterconnectGroup: group}
}
