package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/record"
	"kaz/internal/testkit/clustertest"
)

const (
	subscription     = "/subscriptions/00000000-0000-0000-0000-000000000001"
	group            = subscription + "/resourceGroups/"
	policyDefinition = subscription + "/providers/Microsoft.Authorization/policyDefinitions/closed"
	permissions      = "Microsoft.Authorization/permissions"
	marketplace      = subscription + "/providers/Microsoft.Compute/locations/westeurope/publishers/Canonical/artifacttypes/vmimage/" +
		"offers/ubuntu-24_04-lts/skus/"
	gallery          = group + "shared/providers/Microsoft.Compute/galleries/own/images/nodes"
	ours             = group + `dev {"location":"westeurope","tags":{"kaz_cluster":"dev"}}`
	policyAssignment = group + "dev/providers/Microsoft.Authorization/policyAssignments/closed"
)

// newSize is Azure's list of SKUs with a size that kaz does not know.
func newSize(capabilities string) string {
	return `{"resourceType":"virtualMachines","name":"Standard_D2ds_v99","capabilities":[{"name":"vCPUs","value":"4"},
		{"name":"MemoryGB","value":"16"},{"name":"PremiumIO","value":"True"},` + capabilities + `]}`
}

// TestPreflight checks scenarios 19, 21 and 22: each obstacle is found before anything is written, and has a remedy.
func TestPreflight(t *testing.T) {
	identity := group + "shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
	for _, test := range []struct {
		name   string
		change func(*definition.Definition)
		// before are documents that exist, each as "ID BODY", and answers what Azure says instead, by type or id.
		before  []string
		answers map[string]string
		want    string // of what stops a deployment
		warns   string
	}{
		{name: "tenant", change: func(d *definition.Definition) { d.Cluster.Spec.Azure.TenantID = "00000000-0000-0000-0000-0000000000bb" },
			want: "✘ login: subscription 00000000-0000-0000-0000-000000000001 is of tenant " + clustertest.Tenant},
		{name: "subscription", change: func(d *definition.Definition) {
			d.Cluster.Spec.Azure.SubscriptionID = "00000000-0000-0000-0000-000000000009"
		}, want: "✘ login: the caller does not see subscription 00000000-0000-0000-0000-000000000009"},
		{name: "location", change: func(d *definition.Definition) { d.Cluster.Spec.Azure.Location = "westeurop" },
			want: "✘ location: the subscription has no location westeurop"},
		{name: "size", change: func(d *definition.Definition) { d.Pools[0].Spec.VMSize = "Standard_D4s_v55" },
			want: "✘ sizes: NodePool general: spec.vmSize: Standard_D4s_v55 is not offered in westeurope\n" +
				"  remedy: choose another size, such as Standard_D4s_v5"},
		{name: "zone", change: func(d *definition.Definition) {
			d.Cluster.Spec.Azure.Location, d.Pools[0].Spec.Zones = "westus", []int{2}
		}, want: "✘ zones: NodePool general: spec.vmSize: Standard_D4s_v5 is not offered in zone 2 of westus"},
		{name: "premium disks", change: func(d *definition.Definition) { d.Cluster.Spec.ControlPlane.VMSize = "Standard_D4d_v5" },
			want: "✘ sizes: Cluster: spec.controlPlane.vmSize: Standard_D4d_v5 takes no premium disks"},
		{name: "ephemeral disks", change: func(d *definition.Definition) { d.Pools[0].Spec.OSDisk.Ephemeral = true },
			want: "✘ sizes: NodePool general: spec.vmSize: Standard_D4s_v5 takes no ephemeral disks"},
		{name: "processors and memory", change: func(d *definition.Definition) { d.Cluster.Spec.ControlPlane.VMSize = "Standard_B1ms" },
			want: "✘ sizes: Cluster: spec.controlPlane.vmSize: Standard_B1ms has 1 processors, and kubeadm needs 2\n" +
				"  remedy: choose a larger size, or one with this capability\n" +
				"✘ sizes: Cluster: spec.controlPlane.vmSize: Standard_B1ms has 2 GiB of memory, want at least 4"},
		{name: "room for ephemeral disks", change: func(d *definition.Definition) {
			d.Pools[0].Spec.OSDisk.Ephemeral, d.Pools[0].Spec.VMSize = true, "Standard_D2ds_v5"
		}, want: "✘ sizes: NodePool general: spec.vmSize: Standard_D2ds_v5 has room for an ephemeral disk of 50 GiB at the " +
			"placement CacheDisk, and osDisk.sizeGiB is 128"},
		{name: "ephemeral disk of a size without a table", change: func(d *definition.Definition) {
			d.Pools[0].Spec.OSDisk.Ephemeral, d.Pools[0].Spec.VMSize = true, "Standard_D2ds_v99"
		}, answers: map[string]string{"Microsoft.Compute/skus": newSize(`{"name":"EphemeralOSDiskSupported","value":"True"},
			{"name":"CachedDiskBytes","value":"53687091200"},{"name":"MaxResourceVolumeMB","value":"307200"}`)},
			want: "✘ sizes: NodePool general: spec.vmSize: Standard_D2ds_v99 has room for an ephemeral disk of 50 GiB at the " +
				"placement CacheDisk"},
		{name: "accelerated networking that Azure does not have", answers: map[string]string{"Microsoft.Compute/skus": strings.Replace(
			newSize(`{"name":"AcceleratedNetworkingEnabled","value":"False"}`), "D2ds_v99", "D4s_v5", 1)},
			want: "✘ sizes: Cluster: spec.controlPlane.vmSize: Standard_D4s_v5 has no accelerated networking here"},
		{name: "image without NVMe", change: func(d *definition.Definition) {
			d.Pools[0].Spec.VMSize, d.Pools[0].Spec.Image.SKU = "Standard_D4s_v6", "server-gen1"
		}, want: "✘ images: NodePool general: spec.image boots from disks of the type SCSI, and size Standard_D4s_v6 has NVMe disks"},
		{name: "image of a gallery without NVMe",
			answers: map[string]string{gallery: `{"properties":{"osType":"Linux","hyperVGeneration":"V2"}}`},
			change: func(d *definition.Definition) {
				d.Pools[0].Spec.VMSize, d.Pools[0].Spec.Image.ID = "Standard_D4s_v6", gallery
			},
			want: "✘ images: NodePool general: spec.image boots from disks of the type SCSI, and size Standard_D4s_v6 has NVMe disks"},
		{name: "image of a gallery with NVMe", answers: map[string]string{gallery: `{"properties":{"osType":"Linux","hyperVGeneration":"V2",
			"features":[{"name":"DiskControllerTypes","value":"SCSI, NVMe"}]}}`},
			change: func(d *definition.Definition) {
				d.Pools[0].Spec.VMSize, d.Pools[0].Spec.Image.ID = "Standard_D4s_v6", gallery
			}},
		{name: "ephemeral disk on the temporary disk", change: func(d *definition.Definition) {
			d.Pools[0].Spec.OSDisk, d.Pools[0].Spec.VMSize = definition.OSDisk{Ephemeral: true, SizeGiB: 64}, "Standard_D2ds_v5"
		}},
		{name: "data disks", change: func(d *definition.Definition) {
			d.Pools[0].Spec.VMSize = "Standard_B2s"
			d.Pools[0].Spec.DataDisks = slices.Repeat([]definition.Disk{{SizeGiB: 8, Type: "StandardSSD_LRS"}}, 5)
		}, want: "✘ sizes: NodePool general: spec.vmSize: Standard_B2s takes 4 data disks, and each machine has 5"},
		{name: "size that is restricted", answers: map[string]string{"Microsoft.Compute/skus": `{"resourceType":"virtualMachines",
			"name":"Standard_D4s_v5","restrictions":[{"type":"Location","reasonCode":"NotAvailableForSubscription"}]}`},
			want: "✘ sizes: Cluster: spec.controlPlane.vmSize: Standard_D4s_v5 is not available to the subscription in westeurope"},
		{name: "image that is not in the marketplace", change: func(d *definition.Definition) { d.Pools[0].Spec.Image.SKU = "server-gen9" },
			want: "✘ images: NodePool general: spec.image: the marketplace has no image " +
				"Canonical:ubuntu-24_04-lts:server-gen9:latest in westeurope"},
		{name: "version that is not in the marketplace", change: func(d *definition.Definition) { d.Pools[0].Spec.Image.Version = "1" },
			want: "✘ images: NodePool general: spec.image: the marketplace has no image Canonical:ubuntu-24_04-lts:server:1 in westeurope"},
		{name: "image for another processor", change: func(d *definition.Definition) { d.Pools[0].Spec.Image.SKU = "server-arm64" },
			want: "✘ images: NodePool general: spec.image is for Arm64, and size Standard_D4s_v5 is x64"},
		{name: "image of another generation", change: func(d *definition.Definition) {
			d.Pools[0].Spec.VMSize, d.Pools[0].Spec.Image.SKU = "Standard_D4ps_v5", "server-gen1"
		}, want: "✘ images: NodePool general: spec.image is of generation V1, and size Standard_D4ps_v5 boots V2"},
		{name: "image with a plan", answers: map[string]string{marketplace + "server/versions/24.04.202601090": `{"properties":{
			"plan":{"name":"pro"}}}`}, want: "✘ images: Cluster: spec.controlPlane.image: the image Canonical:ubuntu-24_04-lts:server:latest " +
			"is sold with the plan pro, and kaz makes no machines with a plan"},
		{name: "image that is missing", change: func(d *definition.Definition) { d.Pools[0].Spec.Image.ID = gallery + "/versions/1.0.0" },
			want: "✘ existing resources: NodePool general: spec.image.id: " + gallery + "/versions/1.0.0 does not exist"},
		{name: "image in another location", answers: map[string]string{
			gallery + "/versions/1.0.0": `{"properties":{"provisioningState":"Succeeded","publishingProfile":{"targetRegions":[
				{"name":"North Europe"}]}}}`,
			gallery: `{"properties":{"osType":"Linux","hyperVGeneration":"V2"}}`,
		}, change: func(d *definition.Definition) { d.Pools[0].Spec.Image.ID = gallery + "/versions/1.0.0" },
			want: "✘ images: NodePool general: spec.image.id: version 1.0.0 is in North Europe, and not in westeurope"},
		{name: "image with Windows", answers: map[string]string{gallery: `{"properties":{"osType":"Windows"}}`},
			change: func(d *definition.Definition) { d.Pools[0].Spec.Image.ID = gallery },
			want:   "✘ images: NodePool general: spec.image.id: the image nodes has Windows"},
		{name: "public addresses", answers: map[string]string{"Microsoft.Network/locations/usages": `{"name":{"value":"PublicIPAddresses"},
			"currentValue":99,"limit":100}`}, want: "✘ quota: PublicIPAddresses: the limit is 100, 99 are used, and the cluster needs 2 more"},
		{name: "resource provider",
			answers: map[string]string{subscription + "/providers/Microsoft.KeyVault": `{"registrationState":"NotRegistered"}`},
			want: "✘ resource providers: Microsoft.KeyVault is not registered in the subscription\n" +
				"  remedy: az provider register --namespace Microsoft.KeyVault"},
		{name: "subscription that is disabled", answers: map[string]string{subscription: `{"state":"Disabled"}`},
			want: "✘ login: subscription 00000000-0000-0000-0000-000000000001 is Disabled"},
		{name: "quota", change: func(d *definition.Definition) {
			d.Pools[0].Spec.VMSize, d.Pools[0].Spec.Replicas = "Standard_D64s_v5", 1000
			more := d.Pools[0]
			more.Metadata.Name = "more"
			d.Pools = append(d.Pools, more)
		}, want: "✘ quota: cores: the limit is 100000, 0 are used, and the cluster needs 128004 more"},
		{name: "group of others", before: []string{group + `dev {"location":"westeurope"}`},
			want: "✘ resource group: resource group dev exists and kaz did not make it for cluster dev"},
		{name: "group that is missing", change: func(d *definition.Definition) { d.Cluster.Spec.Azure.ResourceGroup.Lifecycle = "Existing" },
			want: "✘ resource group: resource group dev does not exist"},
		{name: "identity that is missing", change: func(d *definition.Definition) { d.Cluster.Spec.Identity.Nodes.ID = identity },
			want: "✘ existing resources: spec.identity.nodes.id: " + identity + " does not exist"},
		{name: "no way out", change: func(d *definition.Definition) { d.Cluster.Spec.Network.Outbound.Type = "None" },
			want: "✘ outbound: spec.network.outbound.type is None, so machines do not reach https://dl.k8s.io"},
		{name: "no way to a public API server", change: func(d *definition.Definition) {
			d.Cluster.Spec.Network.Outbound.Type, d.Cluster.Spec.Kubernetes.ArtifactMirror = "None", "https://mirror.example.com"
		}, want: "✘ outbound: spec.network.outbound.type is None, so machines do not reach the API server at its public address"},
		{name: "no way out, and a mirror", change: func(d *definition.Definition) {
			d.Cluster.Spec.Network.Outbound.Type, d.Cluster.Spec.Kubernetes.ArtifactMirror = "None", "https://mirror.example.com"
			d.Cluster.Spec.Network.APIServer.Access = "PublicAndInternal"
		}, warns: "⚠ outbound: spec.network.outbound.type is None, so machines do not reach the public addresses of Azure Resource Manager"},
		{name: "no way out, and a mirror without checksums", change: func(d *definition.Definition) {
			d.Cluster.Spec.Network.Outbound.Type, d.Cluster.Spec.Kubernetes.ArtifactMirror = "None", "https://mirror.example.com"
			d.Cluster.Spec.Network.APIServer.Access, d.Cluster.Spec.Kubernetes.Version = "PublicAndInternal", "1.36.99"
		}, warns: "⚠ outbound: spec.network.outbound.type is None, so machines do not reach https://dl.k8s.io for checksums, " +
			"and the mirror vouches for its own programs"},
		{name: "checksum of an own build", change: func(d *definition.Definition) {
			d.Cluster.Spec.Kubernetes.ArtifactChecksums = map[string]string{"v1.36.3/bin/linux/amd64/kubelet": strings.Repeat("0", 64)}
		}, warns: "⚠ checksums: spec.kubernetes.artifactChecksums has another checksum of v1.36.3/bin/linux/amd64/kubelet than the one " +
			"that the project of Kubernetes publishes"},
		{name: "registry without the program for it", change: func(d *definition.Definition) {
			d.Cluster.Spec.Identity.RegistryIDs = []string{group + "dev/providers/Microsoft.ContainerRegistry/registries/example"}
			d.Pools = append(d.Pools, d.Pools[0])
			d.Pools[1].Metadata.Name = "has"
			d.Extensions = append(d.Extensions, definition.Extension{Metadata: definition.Metadata{Name: "x"}, Spec: definition.ExtensionSpec{
				AppliesTo: definition.AppliesTo{Pools: []string{"has"}},
				Files:     []definition.File{{Path: "/usr/local/bin/acr-credential-provider", URL: "https://example.com/acr", SHA256: strings.Repeat("0", 64)}},
			}})
		}, before: []string{ours, group + `dev/providers/Microsoft.ContainerRegistry/registries/example {"location":"westeurope","sku":{"name":"Basic"}}`},
			warns: "⚠ registries: spec.identity.registryIDs gives nodes the right to pull, and no Extension brings pool general the program"},
		{name: "lock", before: []string{ours,
			group + `dev/providers/Microsoft.Authorization/locks/freeze {"properties":{"level":"ReadOnly"}}`,
		}, want: "✘ locks: the lock freeze forbids changes in the resource group"},
		{name: "policy", before: []string{ours,
			policyDefinition + ` {"properties":{"policyRule":{"if":{"field":"type","equals":"Microsoft.Network/publicIPAddresses"},
				"then":{"effect":"deny"}}}}`,
			policyAssignment + ` {"properties":{"policyDefinitionId":"` + policyDefinition + `"}}`,
		}, want: "was disallowed by policy"},
		{name: "a text that looks like an expression", before: []string{ours},
			change: func(d *definition.Definition) {
				d.Extensions = append(d.Extensions, definition.Extension{Metadata: definition.Metadata{Name: "x"}, Spec: definition.ExtensionSpec{
					Resources: []map[string]any{{"type": "Microsoft.Network/routeTables", "apiVersion": "2024-05-01", "name": "r",
						"location": "westeurope", "tags": map[string]any{"a": "[nonsense()]"}}},
				}})
			}, want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.put(test.before...)
			l.writes()
			l.Azure = answering{l.Azure, test.answers}
			found, err := Run(t.Context(), l.Deployer, example(t, test.change, "dev.yaml"))
			if err != nil || found.Stop() != (test.want != "") || !strings.Contains(found.Error(), test.want+test.warns) {
				t.Errorf("%v, got\n%v\nwant %s", err, found, test.want+test.warns)
			}
			if writes := l.writes(); len(writes) > 0 {
				t.Errorf("the preflight wrote %v", writes)
			}
		})
	}
}

// TestNamesTaken checks names that are global: those of others are found, and those of the cluster itself are none of others.
func TestNamesTaken(t *testing.T) {
	l := newLab(t)
	p := example(t, nil, "dev.yaml")
	taken := group + "other/providers/Microsoft.Storage/storageAccounts/" + p.Names.Account()
	l.put(group+`other {"location":"westeurope"}`, taken+` {"location":"westeurope","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`)
	found, err := Run(t.Context(), l.Deployer, p)
	if err != nil || !found.Stop() || !strings.Contains(found.Error(), "✘ names: Microsoft.Storage/storageAccounts "+p.Names.Account()) {
		t.Errorf("%v %v", err, found)
	}
	if err := l.client.Delete(t.Context(), azure.ID(taken)); err != nil {
		t.Fatal(err)
	}
	l.deploy(p)
	more := example(t, func(d *definition.Definition) {
		d.Pools = append(d.Pools, d.Pools[0])
		d.Pools[1].Metadata.Name = "more"
	}, "dev.yaml")
	if found, err := Run(t.Context(), l.Deployer, more); err != nil || len(found) > 0 {
		t.Errorf("the cluster's own names count as taken: %v %v", err, found)
	}
}

// TestPublicNameTaken checks the public name of the API server, which others may have in the location.
func TestPublicNameTaken(t *testing.T) {
	l := newLab(t)
	p := example(t, nil, "dev.yaml")
	l.put(group+`other {"location":"westeurope"}`, group+`other/providers/Microsoft.Network/publicIPAddresses/web {"location":"westeurope",
		"sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","dnsSettings":{"domainNameLabel":"`+p.Names.DNSLabel()+`"}}}`)
	found, err := Run(t.Context(), l.Deployer, p)
	want := "✘ names: the public name " + p.Names.DNSLabel() + " is taken in westeurope\n" +
		"  remedy: choose another name in spec.network.apiServer.dnsLabel"
	if err != nil || !strings.Contains(found.Error(), want) {
		t.Errorf("got %v %v\nwant %s", err, found, want)
	}
}

// TestDeletedVault checks the name of a vault that was deleted and can be recovered.
func TestDeletedVault(t *testing.T) {
	l := newLab(t)
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	if err := l.client.Delete(t.Context(), azure.ID(group+"dev")); err != nil {
		t.Fatal(err)
	}
	l.writes()
	found, err := Run(t.Context(), l.Deployer, p)
	want := "✘ names: Microsoft.KeyVault/vaults " + p.Names.VaultID().Name()
	if err != nil || !strings.Contains(found.Error(), want) || !strings.Contains(found.Error(), "purge what was deleted") {
		t.Errorf("got %v %v\nwant %s", err, found, want)
	}
	if writes := l.writes(); len(writes) > 1 || len(writes) == 1 && !strings.Contains(writes[0], "checkNameAvailability") {
		t.Errorf("the preflight wrote %v", writes)
	}
}

// TestExistingSubnets checks subnets that exist: room, routes, and the address of the internal load balancer.
func TestExistingSubnets(t *testing.T) {
	l := newLab(t)
	const net = group + "net/providers/Microsoft.Network/"
	vnet, table := net+"virtualNetworks/hub", net+"routeTables/pods"
	l.put(group+`net {"location":"westeurope"}`, table+` {"location":"westeurope"}`,
		vnet+` {"location":"westeurope","properties":{"addressSpace":{"addressPrefixes":["10.50.0.0/16"]},"subnets":[
			{"name":"cp","properties":{"addressPrefix":"10.50.0.0/24","routeTable":{"id":"`+table+`"}}},
			{"name":"nodes","properties":{"addressPrefix":"10.50.1.0/28"}}]}}`,
		net+`networkInterfaces/other {"location":"westeurope","properties":{"ipConfigurations":[{"name":"a","properties":{
			"privateIPAddress":"10.50.0.50","privateIPAllocationMethod":"Static","subnet":{"id":"`+vnet+`/subnets/cp"}}}]}}`)
	for _, test := range []struct {
		name   string
		change func(n *definition.Network, d *definition.Definition)
		want   string
	}{
		{"room", func(_ *definition.Network, d *definition.Definition) { d.Pools[0].Spec.Replicas = 12 },
			"✘ subnets: spec.network.subnets.nodes.id: subnet nodes has 11 free addresses, and the cluster needs 12"},
		{"route table of pods", func(n *definition.Network, d *definition.Definition) {
			n.RouteTableID, d.Cluster.Spec.Kubernetes.PodNetwork = table, "CloudRoutes"
		}, "✘ subnets: spec.network.subnets.nodes.id: subnet nodes does not have the route table of spec.network.routeTableID, " + table},
		{"no route out", func(n *definition.Network, _ *definition.Definition) { n.Outbound.Type = "UserDefinedRouting" },
			"✘ subnets: spec.network.subnets.nodes.id: spec.network.outbound.type is UserDefinedRouting, and subnet nodes has neither " +
				"a route table nor a NAT gateway"},
		{"address outside", func(n *definition.Network, _ *definition.Definition) { n.APIServer.InternalIP = "10.50.1.9" },
			"✘ subnets: spec.network.apiServer.internalIP: 10.50.1.9 is not in subnet cp\n" +
				"  remedy: set spec.network.apiServer.internalIP to a free address of 10.50.0.0/24"},
		{"address in use", func(n *definition.Network, _ *definition.Definition) { n.APIServer.InternalIP = "10.50.0.50" },
			"✘ subnets: spec.network.apiServer.internalIP: 10.50.0.50 is in use\n" +
				"  remedy: set spec.network.apiServer.internalIP to a free address such as"},
	} {
		p := example(t, func(d *definition.Definition) {
			n := &d.Cluster.Spec.Network
			n.Subnets.ControlPlane.ID, n.Subnets.Nodes.ID = vnet+"/subnets/cp", vnet+"/subnets/nodes"
			n.Outbound.Type, d.Cluster.Spec.Kubernetes.PodNetwork = "None", "None"
			d.Cluster.Spec.Kubernetes.ArtifactMirror = "https://mirror"
			n.APIServer.Access, n.APIServer.InternalIP = "PublicAndInternal", "10.50.0.9"
			test.change(n, d)
		}, "dev.yaml")
		l.writes()
		found, err := Run(t.Context(), l.Deployer, p)
		if err != nil || !strings.Contains(found.Error(), test.want) {
			t.Errorf("%s: got %v %v\nwant %s", test.name, err, found, test.want)
		}
		for _, write := range l.writes() {
			if !strings.HasSuffix(write, "/checkNameAvailability") {
				t.Errorf("%s: the preflight wrote %s", test.name, write)
			}
		}
	}
}

// TestRightsAtExistingResources checks that a caller that may not use a resource of another group learns it before anything is written.
func TestRightsAtExistingResources(t *testing.T) {
	l := newLab(t)
	identity := group + "shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
	l.put(group+`shared {"location":"westeurope"}`, identity+` {"location":"westeurope"}`)
	l.writes()
	l.Azure = atScope{l.Azure, azure.ID(identity)}
	p := example(t, func(d *definition.Definition) { d.Cluster.Spec.Identity.Nodes.ID = identity }, "dev.yaml")
	found, err := Run(t.Context(), l.Deployer, p)
	want := "✘ rights: spec.identity.nodes.id: the caller may not: Microsoft.ManagedIdentity/userAssignedIdentities/assign/action\n" +
		"  remedy: ask an owner for a role with Microsoft.ManagedIdentity/userAssignedIdentities/assign/action at " + identity
	if err != nil || !strings.HasPrefix(found.Error(), want) {
		t.Errorf("got %v %v\nwant %s", err, found, want)
	}
	if writes := l.writes(); len(writes) > 0 {
		t.Errorf("the preflight wrote %v", writes)
	}
}

// atScope is an Azure in which the caller may only read at one resource.
type atScope struct {
	record.Azure
	resource azure.ID
}

func (a atScope) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if q.Type == permissions && q.Scope == a.resource {
		return []azure.Document{azure.Document(`{"actions":["*/read"]}`)}, nil
	}
	return a.Azure.List(ctx, q)
}

// refusing answers every request with an error.
type refusing struct {
	status    int
	code, why string
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, err := fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, r.code, r.why)
	answer := w.Result()
	answer.Request = req
	return answer, err
}

// noToken fails as azidentity does.
type noToken struct{ text string }

func (n noToken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New(n.text) }

// readOnly notes requests that write.
type readOnly struct {
	next   http.RoundTripper
	writes []string
}

func (r *readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		r.writes = append(r.writes, req.Method+" "+req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// TestLogin checks scenario 17: wrong, expired, foreign and rightless credentials are told apart, and nothing is written with them.
func TestLogin(t *testing.T) {
	for _, test := range []struct {
		way  http.RoundTripper
		want string
	}{
		{noToken{"AADSTS7000215: Invalid client secret provided."}, "✘ login: the client secret is wrong (AADSTS7000215)"},
		{noToken{"AADSTS7000222: The provided client secret keys are expired."}, "✘ login: the client secret is expired (AADSTS7000222)"},
		{noToken{"AADSTS700016: Application was not found in the directory."}, "✘ login: the application is not in the tenant (AADSTS700016)"},
		{noToken{"AADSTS90002: Tenant not found."}, "✘ login: the tenant does not exist (AADSTS90002)"},
		{noToken{"AADSTS700027: The certificate is not registered."}, "✘ login: the client certificate is wrong (AADSTS700027)"},
		{noToken{"AADSTS70021: No matching federated identity record found."}, "✘ login: no federated credential fits to the token (AADSTS70021)"},
		{refusing{401, "ExpiredAuthenticationToken", "expired"}, "✘ login: the token is expired"},
		{refusing{401, "InvalidAuthenticationTokenTenant", "wrong issuer"}, "✘ login: the credential is of another tenant"},
		{refusing{403, "AuthorizationFailed", "no"}, "✘ login: the caller has no role in subscription"},
		{refusing{404, "SubscriptionNotFound", "no"}, "✘ login: the caller does not see subscription"},
	} {
		l := &lab{t: t}
		way := &readOnly{next: test.way}
		l.connect(way)
		found, err := Run(t.Context(), l.Deployer, example(t, nil, "dev.yaml"))
		if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].String(), test.want) || found[0].Remedy == "" {
			t.Errorf("got %v %v, want %s", err, found, test.want)
		}
		if len(way.writes) > 0 {
			t.Errorf("%s: the preflight wrote %v", test.want, way.writes)
		}
	}
}

// answering is an Azure that gives other answers to some reads: lists by their type, and documents by their id.
type answering struct {
	record.Azure
	answers map[string]string
}

func (a answering) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if answer, has := a.answers[q.Type]; has {
		return []azure.Document{azure.Document(answer)}, nil
	}
	return a.Azure.List(ctx, q)
}

func (a answering) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	if answer, has := a.answers[string(id)]; has {
		return azure.Document(answer), nil
	}
	return a.Azure.Get(ctx, id)
}

// TestRights checks scenario 19: a caller that may not assign roles learns it before anything is written, with both remedies.
func TestRights(t *testing.T) {
	l := newLab(t)
	l.Azure = answering{l.Azure, map[string]string{permissions: `{"actions":["*"],"notActions":["Microsoft.Authorization/*/Write"]}`}}
	found, err := Run(t.Context(), l.Deployer, example(t, nil, "dev.yaml"))
	want := "✘ rights: the caller may not: Microsoft.Authorization/roleAssignments/write\n  remedy: ask an owner for the role Contributor at " +
		"/subscriptions/00000000-0000-0000-0000-000000000001, and for User Access Administrator, or set spec.identity.roles to None"
	if err != nil || !strings.HasPrefix(found.Error(), want) {
		t.Errorf("got %v %v\nwant %s", err, found, want)
	}
	found, err = Run(t.Context(), l.Deployer, example(t, func(d *definition.Definition) { d.Cluster.Spec.Identity.Roles = "None" }, "dev.yaml"))
	if err != nil || found.Stop() {
		t.Errorf("without role assignments: %v %v", err, found)
	}
	if writes := l.writes(); len(writes) > 0 {
		t.Errorf("the preflight wrote %v", writes)
	}
}

// TestNothingLeft counts the requests of a deployment with its checks where nothing is left to deploy.
func TestNothingLeft(t *testing.T) {
	l := newLab(t)
	p := example(t, nil, "ha.yaml")
	l.deploy(p)
	l.azure.Requests()
	found, err := Run(t.Context(), l.Deployer, p)
	if err != nil || len(found) > 0 {
		t.Errorf("%v\n%v", err, found)
	}
	l.deploy(p)
	if made := l.azure.Requests(); len(made) > 12 || slices.ContainsFunc(made, func(r clustertest.Request) bool { return r.Method != http.MethodGet }) {
		t.Errorf("%d requests: %v", len(made), made)
	}
}

// TestNothingFound checks that the example definitions have no finding.
func TestNothingFound(t *testing.T) {
	found, err := Run(t.Context(), newLab(t).Deployer, example(t, nil, "ha.yaml", "team-a.yaml", "team-b.yaml", "flatcar.yaml"))
	if err != nil || len(found) > 0 {
		t.Errorf("%v\n%v", err, found)
	}
}
