package leftover

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/loadbalancer/tag"
)

// OtherName is the name of a cluster under which the addresses of this one's Services were made.
type OtherName struct {
	Name      string
	Addresses int      // how many there are
	PublicIP  azure.ID // one of them
	Address   string
	Service   string
}

// FindOtherName looks for public IPs that were made for Services of this cluster under another cluster's
// name, where none was made under its own. Then the configured name is probably wrong, and each of these
// Services would get a new address. A public IP that its Service names does not count.
func FindOtherName(in index.Input) (other OtherName, found bool) {
	services := map[string]*v1.Service{}
	for _, s := range in.All() {
		services[spec.KeyOf(s)] = s
	}
	const everywhere = azure.ID("")
	ips, _ := plan.Views[network.PublicIPAddress](in.Have, everywhere, network.PublicIPAddresses) // the decision reports an error
	for _, ip := range ips {
		name, ok := tag.ClusterIn(ip.Tags)
		owner := ownerAmong(services, ip, name)
		switch {
		case !ok, owner == nil, ip.Properties.IPConfiguration == nil:
		case strings.EqualFold(name, in.Config.ClusterName):
			return OtherName{}, false
		case asksFor(owner, ip):
		default:
			other.Addresses++
			if !found {
				found = true
				other.Name, other.Service, other.PublicIP, other.Address = name, spec.KeyOf(owner), ip.ID,
					ip.Properties.IPAddress
			}
		}
	}
	return other, found
}

// ownerAmong is the Service for which a public IP was made under the name of a cluster, nil
// where it was made for none of them.
func ownerAmong(services map[string]*v1.Service, ip azure.Resource[network.PublicIPAddress], cluster string) *v1.Service {
	keys, _ := tag.ServicesIn(ip.Tags)
	for _, key := range keys {
		s := services[key]
		if s == nil {
			continue
		}
		made, name := naming.PublicIP(cluster, naming.Base(s), "", ""), ip.ID.Name()
		if len(name) >= len(made) && strings.EqualFold(name[:len(made)], made) {
			return s
		}
	}
	return nil
}

// asksFor reports whether a Service asks for a public IP by its name or address.
func asksFor(s *v1.Service, ip azure.Resource[network.PublicIPAddress]) bool {
	said := append(slices.Collect(maps.Values(s.Annotations)), s.Spec.LoadBalancerIP)
	return slices.ContainsFunc(said, func(value string) bool {
		value = strings.TrimSpace(value)
		return value != "" && (strings.EqualFold(value, ip.ID.Name()) || value == ip.Properties.IPAddress)
	})
}
