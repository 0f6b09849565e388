package loadbalancer

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// OtherName is the name of a cluster under which the addresses of this one's Services were made.
type OtherName struct {
	Name      string
	Addresses int      // how many there are
	PublicIP  azure.ID // one of them
	Address   string
	Service   string
}

// FindOtherName looks for public IPs that were made for Services of this cluster under another
// cluster's name, where none was made under its own: then somebody has forgotten to tell the
// name, or mistyped it, and each of those Services would get a new address. A public IP that
// its Service names stays, whatever the name of the cluster.
func FindOtherName(in Input) (other OtherName, found bool, err error) {
	services := map[string]*v1.Service{}
	for _, s := range in.Services {
		services[s.Key()] = s.Service
	}
	for _, s := range in.Others {
		services[s.Namespace+"/"+s.Name] = s
	}
	const everywhere = azure.ID("")
	for _, d := range in.Have.List(everywhere, network.PublicIPAddresses) {
		ip, err := azure.Decode[network.PublicIPAddress](d)
		if err != nil {
			return OtherName{}, false, err
		}
		name, ok := clusterIn(ip.Tags)
		owner := ownerAmong(services, ip, name)
		switch {
		case !ok, owner == nil, ip.Properties.IPConfiguration == nil:
		case sameText(name, in.Config.ClusterName):
			return OtherName{}, false, nil
		case asksFor(owner, ip):
		default:
			other.Addresses++
			if !found {
				found = true
				other.Name, other.Service, other.PublicIP, other.Address = name, owner.Namespace+"/"+owner.Name, ip.ID, ip.Properties.IPAddress
			}
		}
	}
	return other, found, nil
}

// ownerAmong is the Service for which a public IP was made under the name of a cluster, nil
// where it was made for none of them.
func ownerAmong(services map[string]*v1.Service, ip publicIP, cluster string) *v1.Service {
	keys, _ := servicesIn(ip.Tags)
	for _, key := range keys {
		s := services[key]
		if s == nil {
			continue
		}
		made, name := publicIPName(cluster, baseName(s), "", ""), ip.ID.Name()
		if len(name) >= len(made) && sameText(name[:len(made)], made) {
			return s
		}
	}
	return nil
}

// asksFor reports whether a Service asks for a public IP by its name or address.
func asksFor(s *v1.Service, ip publicIP) bool {
	said := append(slices.Collect(maps.Values(s.Annotations)), s.Spec.LoadBalancerIP)
	return slices.ContainsFunc(said, func(value string) bool {
		value = strings.TrimSpace(value)
		return value != "" && (sameText(value, ip.ID.Name()) || value == ip.Properties.IPAddress)
	})
}
