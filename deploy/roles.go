package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/plan/rights"
)

// Role is a custom role definition for `az role definition create`.
type Role struct {
	Name             string
	IsCustom         bool
	Description      string
	Actions          []string
	NotActions       []string
	DataActions      []string
	NotDataActions   []string
	AssignableScopes []string
}

// anySubscription is a placeholder for the user's subscription.
const anySubscription = "/subscriptions/00000000-0000-0000-0000-000000000000"

func newRole(name, description string, needs []rights.Need) Role {
	r := Role{
		Name: name, IsCustom: true, Description: description, Actions: []string{},
		NotActions: []string{}, DataActions: []string{}, NotDataActions: []string{},
		AssignableScopes: []string{anySubscription},
	}
	for _, n := range needs {
		r.Actions = append(r.Actions, n.Action)
	}
	slices.Sort(r.Actions)
	r.Actions = slices.Compact(r.Actions)
	return r
}

// ofSubscription reports whether a need has a subscription as its scope.
func ofSubscription(n rights.Need) bool {
	return n.Scope == rights.Subscription || n.Scope == rights.NetworkSubscription
}

// needs returns the needs of features at resource groups, or at subscriptions.
func needs(subscription bool, features ...rights.Feature) []rights.Need {
	return slices.DeleteFunc(rights.Needed(features...), func(n rights.Need) bool { return ofSubscription(n) != subscription })
}

// checkedNeeds adds to the needs the right to read one's rights, but only next to other rights.
func checkedNeeds(subscription bool, features ...rights.Feature) []rights.Need {
	all := needs(subscription, append([]rights.Feature{rights.Check}, features...)...)
	if !slices.ContainsFunc(all, func(n rights.Need) bool { return n.Feature != rights.Check }) {
		return nil
	}
	return all
}

// reads returns the needs of all components to read, for what decides as they do and writes nothing.
func reads(subscription bool) []rights.Need {
	all := needs(subscription, slices.Concat(rights.ClusterFeatures(), rights.DiskFeatures(), rights.FileFeatures(),
		rights.NodeGroupFeatures(), rights.GatewayFeatures(), rights.DNSFeatures())...)
	return slices.DeleteFunc(all, func(n rights.Need) bool { return !strings.HasSuffix(n.Action, "/read") })
}

// Roles returns the least-privilege roles by file name in deploy/roles.
func Roles() map[string]Role {
	all := map[string]Role{
		"cloud-controller-manager": newRole("kaz cloud-controller-manager",
			"All that the cloud-controller-manager may have to do, in the resource groups of a cluster.",
			checkedNeeds(false, rights.ClusterFeatures()...)),
		"cloud-controller-manager-subscription": newRole("kaz cloud-controller-manager (subscription)",
			"What the cloud-controller-manager reads in the subscription of a cluster.", checkedNeeds(true, rights.ClusterFeatures()...)),
		"azuredisk-csi-driver": newRole("kaz azuredisk-csi-driver",
			"All that the azuredisk-csi-driver may have to do, in the resource groups of a cluster, of its disks and snapshots, and of "+
				"disk encryption sets and disk accesses.",
			needs(false, rights.DiskFeatures()...)),
		"azuredisk-csi-driver-subscription": newRole("kaz azuredisk-csi-driver (subscription)",
			"What the azuredisk-csi-driver reads in the subscription of a cluster.", needs(true, rights.DiskFeatures()...)),
		"azurefile-csi-driver": newRole("kaz azurefile-csi-driver",
			"All that the azurefile-csi-driver may have to do, in the resource groups of storage accounts, of the virtual network with "+
				"its security group and route table, and of private DNS zones.",
			needs(false, rights.FileFeatures()...)),
		"cluster-autoscaler-provider": newRole("kaz cluster-autoscaler-provider",
			"All that the cluster-autoscaler-provider may have to do, in the resource group of the scale sets.",
			needs(false, rights.NodeGroupFeatures()...)),
		"cluster-autoscaler-provider-subscription": newRole("kaz cluster-autoscaler-provider (subscription)",
			"What the cluster-autoscaler-provider reads in the subscription of a cluster.", needs(true, rights.NodeGroupFeatures()...)),
		"application-gateway-controller": newRole("kaz application-gateway-controller",
			"All that the application-gateway-controller may have to do, in the resource groups of the application gateway, of its public "+
				"IP, and of the virtual network.",
			needs(false, rights.GatewayFeatures()...)),
		"external-dns-webhook": newRole("kaz external-dns-webhook",
			"All that the external-dns-webhook may have to do, in the resource groups of the DNS zones, and of public IPs that records "+
				"follow.",
			needs(false, rights.DNSFeatures()...)),
		"cloud-node-manager": newRole("kaz cloud-node-manager",
			"What the cloud-node-manager reads with --use-instance-metadata=false, in the resource groups of the machines. With "+
				"instance metadata it needs no role.",
			needs(false, rights.Nodes)),
		"kubelet-acr-pull": newRole("kaz kubelet",
			"Pull images, in a container registry: what acr-credential-provider needs for a kubelet. The built-in role AcrPull "+
				"has it, too.",
			[]rights.Need{{Action: "Microsoft.ContainerRegistry/registries/pull/read"}}),
		"kaz-shadow": newRole("kaz shadow",
			"What kaz shadow reads, in the resource groups of all that it compares.", reads(false)),
		"kaz-shadow-subscription": newRole("kaz shadow (subscription)",
			"What kaz shadow reads in the subscription of a cluster.", reads(true)),
	}
	addFeatures(all, "cloud-controller-manager", rights.ClusterFeatures(), checkedNeeds)
	addFeatures(all, "azuredisk-csi-driver", rights.DiskFeatures(), needs)
	addFeatures(all, "azurefile-csi-driver", rights.FileFeatures(), needs)
	addFeatures(all, "cluster-autoscaler-provider", rights.NodeGroupFeatures(), needs)
	addFeatures(all, "application-gateway-controller", rights.GatewayFeatures(), needs)
	addFeatures(all, "external-dns-webhook", rights.DNSFeatures(), needs)
	return all
}

// addFeatures adds a role for each feature of a program that needs rights at resource groups.
func addFeatures(roles map[string]Role, program string, features []rights.Feature,
	needs func(bool, ...rights.Feature) []rights.Need,
) {
	for _, f := range features {
		if list := needs(false, f); len(list) > 0 {
			roles["features/"+string(f)] = newRole("kaz "+string(f),
				fmt.Sprintf("What the feature %s of the %s needs, in resource groups.", f, program), list)
		}
	}
}

// Text returns the content of the role's file.
func (r Role) Text() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Reference returns the table of docs/reference/roles.md: each action with its scope and purpose.
func Reference() string {
	var b bytes.Buffer
	for _, scope := range rights.Scopes() {
		fmt.Fprintf(&b, "\n### In %s\n\n| action | features | needed to | without it |\n|---|---|---|---|\n", scope)
		for _, n := range rights.Needed() {
			if n.Scope != scope {
				continue
			}
			var features, why string
			degrades := true
			for _, f := range rights.Features() {
				for _, other := range rights.Needed(f) {
					if other.Scope == scope && other.Action == n.Action {
						features += ", " + string(f)
						why += "; " + other.Why
						degrades = degrades && other.Degrades
					}
				}
			}
			without := "the feature does not work"
			if degrades {
				without = "it does less, or a single Service or volume gets an error"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", n.Action, features[2:], why[2:], without)
		}
	}
	return b.String()
}
