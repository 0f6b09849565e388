package nodes

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/metadata"
)

// Metadata is the description of a machine by its metadata service. It has properties that Azure's
// API lacks.
type Metadata struct {
	Description
	// SubFaultDomain and InterconnectGroup are empty for most machines.
	SubFaultDomain    string
	InterconnectGroup string
	// Problems are invalid values that were left out.
	Problems []string
}

// interconnectTag is the tag with the interconnect group.
const interconnectTag = "Platform_Interconnect_Group"

// FromMetadata describes a machine by its metadata, under the name of its node. public are the
// addresses in the load balancer metadata. The addresses are those of the primary interface: host
// name, then the internal and external address for each IP version. Existing nodes have this order.
//
// The error says what is missing or invalid. A machine without zone and fault domain is valid.
func FromMetadata(m metadata.Instance, public []metadata.PublicIPAddress, name string) (Metadata, error) {
	var d Metadata
	if m.Compute == nil || m.Network == nil {
		return d, fmt.Errorf("the metadata of node %s lacks compute or network", name)
	}
	var err error
	if d.ProviderID, err = metadataProviderID(m.Compute.ResourceID); err != nil {
		return d, fmt.Errorf("the metadata of node %s: %w", name, err)
	}
	if d.InstanceType, err = label("vmSize", m.Compute.VMSize); err != nil {
		return d, fmt.Errorf("the metadata of node %s: %w", name, err)
	}
	if d.Region, err = label("location", normal(m.Compute.Location)); err != nil {
		return d, fmt.Errorf("the metadata of node %s: %w", name, err)
	}
	if d.Zone, err = metadataZone(m.Compute, d.Region); err != nil {
		return d, fmt.Errorf("the metadata of node %s: %w", name, err)
	}
	if d.Addresses, err = metadataAddresses(m.Network.Interfaces, public, name); err != nil {
		return d, fmt.Errorf("the metadata of node %s: %w", name, err)
	}
	d.placement(m.Compute)
	return d, nil
}

// metadataProviderID returns the provider id of a resource id in metadata. Existing nodes described
// by metadata have the subscription in lower case too.
func metadataProviderID(resource string) (string, error) {
	if resource == "" {
		return "", fmt.Errorf("resourceId is empty")
	}
	id, err := azure.ParseID(resource)
	if err != nil {
		return "", fmt.Errorf("resourceId: %w", err)
	}
	if !id.Is(compute.VirtualMachines) && !id.Is(compute.ScaleSetInstances) {
		return "", fmt.Errorf("resourceId %s is that of no virtual machine", resource)
	}
	const before = "/subscriptions/"
	if end := len(before) + len(id.Subscription()); strings.HasPrefix(resource, before) {
		id = azure.ID(resource[:len(before)] + strings.ToLower(resource[len(before):end]) + resource[end:])
	}
	text, err := ProviderID(id)
	if err != nil {
		return "", fmt.Errorf("resourceId: %w", err)
	}
	return text, nil
}

// label checks a required value that becomes a label.
func label(field, value string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("%s is empty", field)
	}
	if why := validation.IsValidLabelValue(value); len(why) > 0 {
		return "", fmt.Errorf("%s %q cannot be a label: %s", field, value, strings.Join(why, ", "))
	}
	return value, nil
}

// metadataZone returns the availability zone, or else the fault domain, or else "".
func metadataZone(c *metadata.Compute, region string) (string, error) {
	if c.Zone != "" {
		if _, err := strconv.ParseUint(c.Zone, 10, 16); err != nil {
			return "", fmt.Errorf("zone %q is not a number", c.Zone)
		}
		return label("zone", region+"-"+c.Zone)
	}
	if c.PlatformFaultDomain != "" {
		if _, err := strconv.ParseUint(c.PlatformFaultDomain, 10, 16); err != nil {
			return "", fmt.Errorf("platformFaultDomain %q is not a number", c.PlatformFaultDomain)
		}
	}
	return c.PlatformFaultDomain, nil
}

// ShowsPublic reports whether the instance metadata has a public address. The load balancer metadata
// is then not needed.
func ShowsPublic(m metadata.Instance) bool {
	if m.Network == nil || len(m.Network.Interfaces) == 0 {
		return false
	}
	first := m.Network.Interfaces[0]
	return slices.ContainsFunc([]metadata.Family{first.IPv4, first.IPv6}, func(f metadata.Family) bool {
		return len(f.Addresses) > 0 && f.Addresses[0].Public != ""
	})
}

func metadataAddresses(all []metadata.Interface, public []metadata.PublicIPAddress, name string) ([]v1.NodeAddress, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("network has no interface")
	}
	addresses := []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}}
	for _, f := range []struct {
		word   string
		six    bool
		family metadata.Family
	}{{"ipv4", false, all[0].IPv4}, {"ipv6", true, all[0].IPv6}} {
		if len(f.family.Addresses) == 0 || f.family.Addresses[0].Private == "" {
			continue
		}
		first := f.family.Addresses[0]
		inside, err := address(f.word+" privateIpAddress", first.Private, f.six)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: inside.String()})
		outside := first.Public
		if outside == "" {
			outside = frontend(public, inside)
		}
		if outside == "" {
			continue
		}
		out, err := address(f.word+" public address", outside, f.six)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, v1.NodeAddress{Type: v1.NodeExternalIP, Address: out.String()})
	}
	if len(addresses) == 1 {
		return nil, fmt.Errorf("the first interface %s has no address", all[0].MACAddress)
	}
	return addresses, nil
}

func address(field, text string, six bool) (netip.Addr, error) {
	a, err := netip.ParseAddr(unbracketed(text))
	if err != nil || a.Zone() != "" || a.Is4() == six {
		version := 4
		if six {
			version = 6
		}
		return netip.Addr{}, fmt.Errorf("%s is %q, which is no IPv%d address", field, text, version)
	}
	return a, nil
}

// frontend returns the public address of a load balancer for a private address.
func frontend(public []metadata.PublicIPAddress, inside netip.Addr) string {
	for _, p := range public {
		if a, err := netip.ParseAddr(unbracketed(p.Private)); err == nil && a == inside {
			return p.Frontend
		}
	}
	return ""
}

func unbracketed(address string) string {
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}

// placement reads optional properties. An invalid one is left out and reported, because it must not
// prevent the node from becoming ready.
func (d *Metadata) placement(c *metadata.Compute) {
	optional := func(field, value string) string {
		if value == "" {
			return ""
		}
		value, err := label(field, value)
		if err != nil {
			d.Problems = append(d.Problems, err.Error())
			return ""
		}
		return value
	}
	d.SubFaultDomain = optional("platformSubFaultDomain", c.PlatformSubFaultDomain)
	for _, t := range c.TagsList {
		if t.Name == interconnectTag {
			d.InterconnectGroup = optional("tag "+interconnectTag, t.Value)
			return
		}
	}
}

// Bears reports whether a machine has the given name, as computer name or resource name.
func Bears(m metadata.Instance, name string) bool {
	return m.Compute != nil && (strings.EqualFold(m.Compute.OSProfile.ComputerName, name) || strings.EqualFold(m.Compute.Name, name))
}
