// Package naming has the names of a cluster's resources and addresses, as functions of its definition. Layer L1: pure.
package naming

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/plan/poolnode"
)

// Names are the names of a cluster.
type Names struct {
	// Cluster is the name in the definition.
	Cluster string
	// Suffix tells clusters with the same name apart where names are global.
	Suffix string

	definition definition.Cluster
}

// Of returns the names of a cluster.
func Of(c definition.Cluster) Names {
	text := strings.ToLower(strings.Join([]string{c.Spec.Azure.SubscriptionID, c.Spec.Azure.ResourceGroup.Name, c.Metadata.Name}, "|"))
	sum := sha256.Sum256([]byte(text))
	return Names{c.Metadata.Name, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:6], c}
}

// With is the cluster's name and a further part.
func (n Names) With(part string) string { return n.Cluster + "-" + part }

// OutboundBalancer is the name of the load balancer with the outbound rule of nodes, if outbound traffic is of the type
// LoadBalancer. A network interface can be in one public load balancer, so it is that of Services, too.
func (n Names) OutboundBalancer() string { return n.With("out-lb") }

// OutboundAddress is the name of a public address of outbound traffic.
func (n Names) OutboundAddress(i int) string { return n.With(fmt.Sprintf("out-pip-%d", i)) }

// APIAddress is the name of the public address of the API server.
func (n Names) APIAddress() string { return n.With("api-pip") }

// Group is the cluster's resource group.
func (n Names) Group() azure.ID {
	a := n.definition.Spec.Azure
	return azure.GroupID(a.SubscriptionID, a.ResourceGroup.Name)
}

func cut(s string, most int) string { return strings.TrimRight(s[:min(len(s), most)], "-") }

// Vault is the name of the key vault.
func (n Names) Vault() string {
	if id := n.definition.Spec.KeyVault.ID; id != "" {
		return azure.ID(id).Name()
	}
	return "kv-" + cut(n.Cluster, 12) + "-" + n.Suffix
}

// VaultID is the key vault.
func (n Names) VaultID() azure.ID {
	if id := n.definition.Spec.KeyVault.ID; id != "" {
		return azure.ID(id)
	}
	return n.Group().Resource("Microsoft.KeyVault/vaults", n.Vault())
}

// Account is the name of the storage account.
func (n Names) Account() string {
	if id := n.definition.Spec.Storage.ID; id != "" {
		return azure.ID(id).Name()
	}
	return "st" + cut(strings.ReplaceAll(n.Cluster, "-", ""), 10) + n.Suffix
}

// Container is the name of the container for the election of the first member.
func (n Names) Container() string { return "kaz-" + n.Cluster }

// Secret is the name of a secret in the key vault.
func (n Names) Secret(what string) string { return n.Cluster + "-" + what }

// suffixes are the domains of a cloud.
type suffixes struct{ machines, vault, blob, login string }

func (n Names) suffixes() suffixes {
	switch n.definition.Spec.Azure.Cloud {
	case "AzureUSGovernmentCloud":
		return suffixes{"cloudapp.usgovcloudapi.net", "vault.usgovcloudapi.net", "blob.core.usgovcloudapi.net", "login.microsoftonline.us"}
	case "AzureChinaCloud":
		return suffixes{"cloudapp.chinacloudapi.cn", "vault.azure.cn", "blob.core.chinacloudapi.cn", "login.chinacloudapi.cn"}
	default:
		return suffixes{"cloudapp.azure.com", "vault.azure.net", "blob.core.windows.net", "login.microsoftonline.com"}
	}
}

// VaultURL is the address of the key vault.
func (n Names) VaultURL() string { return fmt.Sprintf("https://%s.%s", n.Vault(), n.suffixes().vault) }

// VaultAudience is the resource for which machines ask a token to read secrets.
func (n Names) VaultAudience() string { return "https://" + n.suffixes().vault }

// ContainerURL is the address of the container.
func (n Names) ContainerURL() string {
	return fmt.Sprintf("https://%s.%s/%s", n.Account(), n.suffixes().blob, n.Container())
}

// DNSLabel is the first label of the API server's public name.
func (n Names) DNSLabel() string {
	if label := n.definition.Spec.Network.APIServer.DNSLabel; label != "" {
		return label
	}
	return n.Cluster + "-" + n.Suffix
}

// PublicHost is the public name of the API server, "" without a public address.
func (n Names) PublicHost() string {
	if !n.Public() {
		return ""
	}
	return fmt.Sprintf("%s.%s.%s", n.DNSLabel(), n.definition.Spec.Azure.Location, n.suffixes().machines)
}

// Zone is the private DNS zone.
func (n Names) Zone() string { return n.Cluster + ".kaz.internal" }

// InternalHost is the name of the API server in the virtual network, "" without an internal address.
func (n Names) InternalHost() string {
	if !n.Internal() {
		return ""
	}
	return "api." + n.Zone()
}

// Host is the name by which nodes reach the API server.
func (n Names) Host() string {
	if host := n.InternalHost(); host != "" {
		return host
	}
	return n.PublicHost()
}

// Public reports whether the API server has a public address.
func (n Names) Public() bool { return n.definition.Spec.Network.APIServer.Access != "Internal" }

// Internal reports whether the API server has an address in the virtual network.
func (n Names) Internal() bool { return n.definition.Spec.Network.APIServer.Access != "Public" }

// Member is the name of a machine of the control plane. Its replacements have generations above 0.
func (n Names) Member(index, generation int) string { return n.With(MemberUnit(index, generation)) }

// PoolUnit is the name of a pool's unit.
func PoolUnit(pool string) string { return "pool-" + pool }

// MemberUnit is the name of the unit of a machine of the control plane: cp-0, and cp-0-2 for its second replacement.
func MemberUnit(index, generation int) string {
	if generation == 0 {
		return fmt.Sprintf("cp-%d", index)
	}
	return fmt.Sprintf("cp-%d-%d", index, generation)
}

// MemberSlot is the index and the generation of a unit of the control plane, false for other units.
func MemberSlot(unit string) (index, generation int, ok bool) {
	if n, err := fmt.Sscanf(unit, "cp-%d-%d", &index, &generation); n == 0 || err != nil && n != 1 {
		return 0, 0, false
	}
	return index, generation, MemberUnit(index, generation) == unit
}

// Deployment is the name of the deployment of the cluster.
func (n Names) Deployment() string { return "kaz-" + n.Cluster }

// Change is the name of the deployment that records a change of the cluster that has not ended. A name of a cluster has no dot.
func (n Names) Change() string { return n.Deployment() + ".change" }

// SecretDeployment is the name of the deployment that writes a secret into the key vault after the first deployment.
func (n Names) SecretDeployment() string { return n.Deployment() + ".secret" }

// UnitDeployment is the name of the nested deployment of a unit.
func (n Names) UnitDeployment(unit string) string { return n.Cluster + "-" + unit }

// RevisionLabel is the label of a node with the revision that it was made from.
const RevisionLabel = poolnode.RevisionLabel

// The tags of resources.
const (
	ClusterTag    = "kaz_cluster"
	UnitTag       = "kaz_unit"
	PoolTag       = poolnode.PoolTag
	RoleTag       = poolnode.RoleTag
	VersionTag    = "kaz_version"
	RevisionTag   = poolnode.RevisionTag
	DefinitionTag = "kaz_definition"
	// LifecycleTag says at a resource group whether kaz made it.
	LifecycleTag = "kaz_lifecycle"
)
