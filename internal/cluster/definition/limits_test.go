package definition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kaz/internal/cluster/definition/fields"
)

// TestConsumerRules checks that a definition is refused with the path, the value and what is allowed where a consumer of the value would
// refuse it: after minutes, or on a machine that boots.
func TestConsumerRules(t *testing.T) {
	const version, pool = "{version: 1.36.3}", "spec: {replicas: 2}"
	long := strings.Repeat("a", 80)
	for _, test := range []struct{ old, with, want string }{
		// kubeadm
		{version, "{version: 1.30.1}", `spec.kubernetes.version: "1.30.1": want a version from 1.31.0 on`},
		{version, "{version: 1.036.3}", `spec.kubernetes.version: "1.036.3": want a version of Kubernetes`},
		{version, `{version: 1.36.3, apiServer: {certSANs: ["https://api.example.com"]}}`,
			`spec.kubernetes.apiServer.certSANs[0]: "https://api.example.com": want a DNS name such as api.example.com`},
		{version, `{version: 1.36.3, apiServer: {certSANs: ["host:6443"]}}`, `certSANs[0]: "host:6443": want a DNS name`},
		{version, `{version: 1.36.3, apiServer: {certSANs: [API_x]}}`, `certSANs[0]: "API_x": want a DNS name`},
		{version, `{version: 1.36.3, apiServer: {certSANs: [ok.example.com, "*.example.com", "10.0.0.1", "::1", a..b]}}`,
			`certSANs[4]: "a..b": want a DNS name`},
		{version, `{version: 1.36.3, apiServer: {certSANs: ["10.0.0.300"]}}`, `certSANs[0]: "10.0.0.300": want a DNS name`},
		{version, "{version: 1.36.3, dnsDomain: " + long + ".local}", "with labels of at most 63 characters"},
		{version, "{version: 1.36.3, dnsDomain: " + strings.Repeat("abcdefg.", 29) + "x}", "with labels of at most 63 characters and 230 in all"},
		{version, "{version: 1.36.3, serviceCIDR: 10.0.0.0/29}", `spec.kubernetes.serviceCIDR: "10.0.0.0/29": is not of a size that kubeadm takes: want /12 to /28`},
		{version, "{version: 1.36.3, podCIDR: 10.244.0.0/25}", `spec.kubernetes.podCIDR: "10.244.0.0/25": each node gets a /24`},
		{version, "{version: 1.36.3, podCIDR: 64.0.0.0/7}", "want a podCIDR of /8 to /24"},
		// the programs of the control plane
		{version, `{version: 1.36.3, controllerManager: {extraArgs: {node-cidr-mask-size: "8"}}}`,
			`spec.kubernetes.controllerManager.extraArgs.node-cidr-mask-size: "8": each node gets a /8 of spec.kubernetes.podCIDR, 10.244.0.0/16`},
		{version, `{version: 1.36.3, controllerManager: {extraArgs: {node-cidr-mask-size: big}}}`, `"big": want the length of a prefix, 1 to 30`},
		{version, `{version: 1.36.3, controllerManager: {extraArgs: {node-cidr-mask-size: "26"}}}`,
			`NodePool general: spec.maxPods: "110": a node has a /26 of spec.kubernetes.podCIDR: want at most 61`},
		{version, "{version: 1.36.3, podCIDR: 10.244.0.0/22}", `spec.kubernetes.podCIDR: "10.244.0.0/22": has 4 ranges of /24, one for each node, and the ` +
			"control plane and all pools have up to 5 nodes"},
		{version, `{version: 1.36.3, scheduler: {extraArgs: {feature-gates: "A=true,B"}}}`,
			`spec.kubernetes.scheduler.extraArgs.feature-gates: "A=true,B": "B" is no feature gate`},
		{version, `{version: 1.36.3, apiServer: {extraArgs: {feature-gates: "A=on"}}}`, `"A=on" is no feature gate`},
		{pool, "spec: {replicas: 398}\n---\napiVersion: cluster.kaz/v1alpha1\nkind: NodePool\nmetadata: {name: b}\nspec: {}",
			"a route table has at most 400 routes in Azure, one for each node, and the control plane and all pools have up to 402 nodes"},
		// kubelet
		{pool, `spec: {labels: {node-role.kubernetes.io/worker: ""}}`, "NodePool general: spec.labels.node-role.kubernetes.io/worker: the name " +
			`"node-role.kubernetes.io/worker" is not valid: want of kubernetes.io and k8s.io only labels with node.kubernetes.io/ or kubelet.kubernetes.io/`},
		{pool, `spec: {labels: {x.k8s.io/a: b}}`, `"x.k8s.io/a" is not valid`},
		{pool, `spec: {labels: {kubernetes.io/hostname: b}}`, `"kubernetes.io/hostname" is not valid: want another label: kubelet or cloud-node-manager sets this one`},
		{pool, `spec: {labels: {kaz/pool: b}}`, `"kaz/pool" is not valid: want another label: kaz sets this one`},
		{pool, `spec: {labels: {Team/a: b}}`, `"Team/a" is not valid: want a label key of Kubernetes`},
		{pool, `spec: {labels: {a: "b c"}}`, `NodePool general: spec.labels.a: "b c": want the value of a label`},
		{pool, `spec: {labels: {a: ` + long + `}}`, `want the value of a label: at most 63 letters`},
		{pool, `spec: {taints: ["a=b c:NoSchedule"]}`, `spec.taints[0]: "a=b c:NoSchedule": want KEY=VALUE:EFFECT`},
		{pool, `spec: {taints: ["a=-b:NoSchedule"]}`, `spec.taints[0]: "a=-b:NoSchedule": want KEY=VALUE:EFFECT with a value like that of a label`},
		{pool, `spec: {taints: ["a..b/c=b:NoSchedule"]}`, `want KEY=VALUE:EFFECT with a key like that of a label`},
		// the autoscaler
		{pool, `spec: {replicas: 2, autoscaling: {min: 1, max: 3}, labels: {Team: a, team: b}}`, `spec.labels.team: "b": the autoscaler reads labels in names of tags`},
		{pool, `spec: {replicas: 2, autoscaling: {min: 1, max: 3}, taints: ["a:NoSchedule", "a:NoExecute"]}`, `spec.taints[1]: "a:NoExecute": the autoscaler reads taints in tags`},
		{pool, "spec: {replicas: 2, autoscaling: {min: 1, max: 3}, labels: {" + many(40) + "}}", "want at most 50"},
		// Azure
		{"{name: prod}\nspec", "{name: pr--od}\nspec", `metadata.name: "pr--od": want at most 30 small letters, digits and single '-'`},
		{"{name: prod}\nspec", "{name: my-windows}\nspec", `metadata.name: "my-windows": want a name without windows, which Azure reserves`},
		{"    location: westeurope", "    location: chinanorth2", `spec.azure.cloud: "AzurePublicCloud": the region chinanorth2 belongs to another cloud: want AzureChinaCloud`},
		{"    location: westeurope", "    location: westeurope\n    cloud: AzureUSGovernmentCloud", `"AzureUSGovernmentCloud": the region westeurope belongs to another cloud: want AzurePublicCloud`},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {azure-team: x}\n  kubernetes", `spec.azure.tags.azure-team: the name "azure-team" is not valid: want a name that ` +
			"does not begin with microsoft, azure or windows"},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {a: " + strings.Repeat("b", 257) + "}\n  kubernetes", "want at most 256 characters"},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {a.b: c, A.b: c}\n  kubernetes", `spec.azure.tags.a.b: "c": Azure compares names of tags without letter case, and A.b is a tag, too`},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {min: c}\n  kubernetes", `spec.azure.tags.min: "c": the autoscaler reads this tag`},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {cost center: c}\n  kubernetes", `spec.azure.tags.cost center: "c": the private DNS zone gets this tag`},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {" + strings.Repeat("t", 129) + ": c}\n  kubernetes", "the storage account gets this tag: want 1 to 128 characters"},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {a: c, b: c, c: c, d: c, e: c, f: c, g: c, h: c, i: c, j: c, k: c, l: c, m: c, n: c}\n  kubernetes",
			"spec.azure.tags: has 14 tags: a private DNS zone has at most 15 in Azure, two of which are kaz's: want at most 13"},
		{"  network:", "  network:\n    outbound: {type: LoadBalancer, idleTimeoutMinutes: 120}",
			`spec.network.outbound.idleTimeoutMinutes: "120": an outbound rule of a load balancer has at most 100 minutes`},
		{"    apiServer:", "    apiServer:\n      port: 10250", `spec.network.apiServer.port: "10250": kubelet listens on this port`},
		{"    apiServer:", "    sshSources: [10.0.0.0/8, 10.1.0.0/16]\n    apiServer:", `spec.network.sshSources[1]: "10.1.0.0/16": overlaps with 10.0.0.0/8`},
		{"    apiServer:", "    sshSources: [10.0.0.0/8, \"2001:db8::/32\"]\n    apiServer:", `spec.network.sshSources[1]: "2001:db8::/32": is of another address family than 10.0.0.0/8`},
		{"    apiServer:", "    sshSources: [10.0.0.0/33]\n    apiServer:", `spec.network.sshSources[0]: "10.0.0.0/33": want a valid range`},
		{"    apiServer:", "    sshSources: [Internet, Internet]\n    apiServer:", `spec.network.sshSources[1]: "Internet": is element 0, too`},
		{"    apiServer:", "    cidrs: [169.254.0.0/16]\n    apiServer:", `spec.network.cidrs[0]: "169.254.0.0/16": overlaps with 169.254.0.0/16, which Azure keeps`},
		{"    apiServer:", "    subnets: {nodes: {cidr: 10.225.0.0/29}}\n    apiServer:\n      dnsLabel: login-x",
			`spec.network.apiServer.dnsLabel: "login-x": want a name that does not begin with login`},
		{pool, "spec: {replicas: 2, subnet: {cidr: 10.226.0.0/29}, autoscaling: {min: 1, max: 9}}",
			`spec.subnet.cidr: "10.226.0.0/29": has 3 addresses, without those that Azure keeps, and up to 9 are needed`},
		{"\n  access:", "\n  access:\n    adminUser: admin", `spec.access.adminUser: "admin": want a name that Azure takes`},
		{"\n  access:", "\n  access:\n    adminUser: www-data", `spec.access.adminUser: "www-data": want a name that is no system user`},
		{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFBxuoIeTSfTXGaGKzAHTUHVtfCCkjYZHlpL1r6Kf0Kk", "ecdsa-sha2-nistp256 AAAA", "want an Ed25519 key or an RSA key"},
		{"AAAAIFBxuoIeTSfTXGaGKzAHTUHVtfCCkjYZHlpL1r6Kf0Kk", "AAAAIFBxuoIeTSfTXGaGKzAHTUHVtfCCkjYZHlpL", "the key is cut off"},
		{pool, "spec: {image: {sku: 'a b'}}", `spec.image.sku: "a b": want letters, digits`},
		{pool, "spec: {image: {version: newest}}", `spec.image.version: "newest": want latest, or a version`},
		{pool, "spec: {image: {id: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d}}", "want the id of an image"},
		{pool, "spec: {replicas: 601, image: {id: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/i}}", "a scale set of a managed image has at most 600"},
		{pool, `spec: {priority: Spot, spot: {maxPrice: "0"}}`, `spec.spot.maxPrice: "0": want a price`},
		{pool, `spec: {upgrade: {maxUnavailable: 150%}}`, `spec.upgrade.maxUnavailable: "150%": want at most 100% of the pool`},
		{"metadata: {name: general}\nspec: {", "metadata: {name: cp}\nspec: {backend: StandaloneVM, ", `NodePool cp: metadata.name: "cp": standalone machines of this pool`},
		{pool, resource("{type: privateEndpoints, apiVersion: \"2024-05-01\", name: a}"), `Extension e: spec.resources[0].type: "privateEndpoints": want the type of a resource`},
		{pool, resource("{type: Microsoft.Network/privateEndpoints, apiVersion: v1, name: a}"), `spec.resources[0].apiVersion: "v1": want a date in quotes`},
		{pool, resource("{type: Microsoft.Network/virtualNetworks/subnets, apiVersion: \"2024-05-01\", name: a}"), `spec.resources[0].name: "a": a resource of the type ` +
			"Microsoft.Network/virtualNetworks/subnets has a name of 2 parts"},
		// the API server
		{pool, manifest("a: [b"), "spec.manifests[0]: \"a: [b\": cannot be read as YAML"},
		{pool, manifest("kind: Namespace"), `spec.manifests[0]: "kind: Namespace": an object lacks apiVersion, kind or metadata.name`},
	} {
		_, err := Load(changed(t, test.old, test.with))
		if err == nil {
			t.Errorf("%q instead of %q: no error, want %s", test.with, test.old, test.want)
			continue
		}
		if !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool { return strings.Contains(line, test.want) }) {
			t.Errorf("%q instead of %q:\n got %v\nwant %s", test.with, test.old, err, test.want)
		}
	}
}

func extension(spec string) string {
	return "spec: {replicas: 2}\n---\napiVersion: cluster.kaz/v1alpha1\nkind: Extension\nmetadata: {name: e}\nspec: {" + spec + "}"
}

// many are entries of a map.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%d: v", i))
	}
	return strings.Join(all, ", ")
}

func resource(text string) string { return extension("resources: [" + text + "]") }

func manifest(text string) string { return extension("manifests: [\"" + text + "\"]") }

// TestConsumersTake checks that values at the edge of what consumers take are taken.
func TestConsumersTake(t *testing.T) {
	const version, pool = "{version: 1.36.3}", "spec: {replicas: 2}"
	for _, test := range []struct{ old, with string }{
		{version, `{version: 1.36.3, apiServer: {certSANs: [api.example.com, "*.example.com", 203.0.113.7, "2001:db8::1", api]}}`},
		{version, `{version: 1.36.3, controllerManager: {extraArgs: {node-cidr-mask-size: "25", feature-gates: "A=true, B=false"}}}`},
		{version, "{version: 1.36.3, serviceCIDR: 10.0.0.0/28, podCIDR: 10.244.0.0/21}"},
		{pool, `spec: {labels: {node.kubernetes.io/exclude-from-external-load-balancers: "", team_a: x.y_z, example.com/a: b}}`},
		{pool, `spec: {taints: ["a:NoSchedule", "node-role.kubernetes.io/x=:NoExecute"]}`},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {a: c, b: c, c: c, d: c, e: c, f: c, g: c, h: c, i: c, j: c, k: c, l: c, m: ''}\n  kubernetes"},
		{"    apiServer:", "    sshSources: [10.0.0.0/8, 11.0.0.1, Internet, Storage.WestEurope]\n    apiServer:"},
		{pool, manifest(`---\napiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}`)},
		{pool, resource(`{type: Microsoft.Network/virtualNetworks/subnets, apiVersion: 2024-05-01-preview, name: "[concat('a', '/b')]"}`)},
		{pool, `spec: {priority: Spot, spot: {maxPrice: "0.05"}}`},
	} {
		if _, err := Load(changed(t, test.old, test.with)); err != nil {
			t.Errorf("%q: %v", test.with, err)
		}
	}
}

// TestNamesOfOldClusters checks that a command finds a cluster whose name no new definition may have.
func TestNamesOfOldClusters(t *testing.T) {
	field := fields.Table()["Cluster.metadata.name"]
	for name, valid := range map[string]bool{"pr--od": true, "my-windows": true, "prod": true, "Prod": false, "docs/ha.yaml": false} {
		if err := field.Check(name); (err == nil) != valid {
			t.Errorf("%s: %v, want valid %v", name, err, valid)
		}
	}
}

func TestCloudOf(t *testing.T) {
	for region, want := range map[string]string{"westeurope": "AzurePublicCloud", "chinanorth2": "AzureChinaCloud", "ChinaEast": "AzureChinaCloud",
		"usgovvirginia": "AzureUSGovernmentCloud", "usdodeast": "AzureUSGovernmentCloud", "centralus": "AzurePublicCloud"} {
		if got := CloudOf(region); got != want {
			t.Errorf("%s: got %s, want %s", region, got, want)
		}
	}
}
