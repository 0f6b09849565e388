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
		keys, _ := tag.ServicesIn(ip.Tags)
		i := slices.IndexFunc(keys, func(key string) bool { return services[key] != nil && isMadeFor(services[key], ip.ID, name) })
		switch {
		case !ok, i < 0, ip.Properties.IPConfiguration == nil:
		case strings.EqualFold(name, in.Config.ClusterName):
			return OtherName{}, false
		case asksFor(services[keys[i]], ip):
		default:
			if other.Addresses == 0 {
				other = OtherName{Name: name, PublicIP: ip.ID, Address: ip.Properties.IPAddress, Service: keys[i]}
			}
			other.Addresses++
		}
	}
	return other, other.Addresses > 0
}

// isMadeFor reports whether a public IP was made for a Service under the name of a cluster.
func isMadeFor(s *v1.Service, ip azure.ID, cluster string) bool {
	made, name := naming.PublicIP(cluster, naming.Base(s), "", ""), ip.Name()
	return len(name) >= len(made) && strings.EqualFold(name[:len(made)], made)
}

// asksFor reports whether a Service asks for a public IP by its name or address.
func asksFor(s *v1.Service, ip azure.Resource[network.PublicIPAddress]) bool {
	said := append(slices.Collect(maps.Values(s.Annotations)), s.Spec.LoadBalancerIP)
	return slices.ContainsFunc(said, func(value string) bool {
		value = strings.TrimSpace(value)
		return value != "" && (strings.EqualFold(value, ip.ID.Name()) || value == ip.Properties.IPAddress)
	})
}
