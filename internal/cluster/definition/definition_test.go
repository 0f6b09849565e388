package definition

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/cluster/definition/fields"
)

const examples = "../../../docs/example-manifests/cluster"

func layer(t *testing.T, name string) Layer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return Layer{Name: name, Text: text}
}

func TestExamples(t *testing.T) {
	for _, layers := range [][]string{{"dev.yaml"}, {"ha.yaml"}, {"ha.yaml", "team-a.yaml", "team-b.yaml"}} {
		var all []Layer
		for _, name := range layers {
			all = append(all, layer(t, name))
		}
		d, err := Load(all...)
		if err != nil {
			t.Errorf("%v: %v", layers, err)
		}
		if d.Cluster.Spec.Kubernetes.PodCIDR != "10.244.0.0/16" {
			t.Errorf("%v: the default of podCIDR is missing: %+v", layers, d.Cluster.Spec.Kubernetes)
		}
	}
}

// TestTable checks that each field of the Go types has a row, and each row a field.
func TestTable(t *testing.T) {
	rows := fields.Table()
	for _, kind := range kinds() {
		shapes()[kind].each(func(s *shape) {
			row, has := rows[s.path]
			delete(rows, s.path)
			leaf := len(s.fields) == 0
			switch {
			case leaf && !has:
				t.Errorf("%s: no row in the table", s.path)
			case leaf && !row.Required && row.Default == "":
				t.Errorf("%s: is neither required nor has a default", s.path)
			case row.Required && row.Default != "":
				t.Errorf("%s: is required and has a default", s.path)
			case has && (row.Doc == "" || row.Change == ""):
				t.Errorf("%s: has no meaning, or does not say what a change does", s.path)
			case row.Default != "":
				c := checker{document: "default"}
				c.check(s, defaultValue(s, Position{}), s.path)
				if len(c.problems) > 0 {
					t.Errorf("the default is not allowed: %v", c.problems)
				}
			}
		})
	}
	for path := range rows {
		t.Errorf("%s: a row without a field", path)
	}
	used := fields.Consumers()
	for path := range fields.Table() {
		if used[path] == "" {
			t.Errorf("%s: no consumer in the table", path)
		}
		delete(used, path)
	}
	for path := range used {
		t.Errorf("%s: consumers of no field", path)
	}
}

// changed is the text of an example with one part replaced.
func changed(t *testing.T, old, with string) Layer {
	t.Helper()
	l := layer(t, "ha.yaml")
	if !strings.Contains(string(l.Text), old) {
		t.Fatalf("the example has no %q", old)
	}
	l.Text = []byte(strings.Replace(string(l.Text), old, with, 1))
	return l
}

// file is a pool and an Extension with a file.
func file(text string) string {
	return "spec: {replicas: 2}\n---\napiVersion: cluster.kaz/v1alpha1\nkind: Extension\nmetadata: {name: e}\nspec:\n" +
		"  appliesTo: {pools: [general]}\n  files:\n  - " + text
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct{ old, with, want string }{
		{"location: westeurope", "location: West Europe",
			`ha.yaml:9: Cluster prod: spec.azure.location: "West Europe": want the name of a region such as westeurope: small letters and digits`},
		{"location: westeurope", "locatoin: westeurope",
			"ha.yaml:9: Cluster prod: spec.azure.locatoin: unknown field: want one of cloud, location, resourceGroup, subscriptionID, tags, tenantID; " +
				"did you mean location?"},
		{"{version: 1.36.3}", "{version: 1.36}", `ha.yaml:11: Cluster prod: spec.kubernetes.version: "1.36": want a text: put it in quotes`},
		{"{version: 1.36.3}", `{version: "1.36"}`,
			`ha.yaml:11: Cluster prod: spec.kubernetes.version: "1.36": want a version of Kubernetes such as 1.36.3`},
		{"spec: {replicas: 2}", "spec: {replicas: two}", `ha.yaml:24: NodePool general: spec.replicas: "two": want a whole number`},
		{"spec: {replicas: 2}", "spec: {replicas: 1001}", `ha.yaml:24: NodePool general: spec.replicas: "1001": want 0 to 1000`},
		{"spec: {replicas: 2}", "spec: {replicas: 2, replicas: 3}", "ha.yaml:24: replicas is set twice: it is also in line 24"},
		{"spec: {replicas: 2}", "spec: {backend: VMSSUniformly}",
			`ha.yaml:24: NodePool general: spec.backend: "VMSSUniformly": want VMSSUniform, VMSSFlexible or StandaloneVM; did you mean VMSSUniform?`},
		{"spec: {replicas: 2}", "spec: {zones: [1, 4]}",
			`ha.yaml:24: NodePool general: spec.zones[1]: "4": want each of the zones 1, 2 and 3 at most once`},
		{"spec: {replicas: 2}", "spec: {autoscaling: {min: 3, max: 5}}",
			`ha.yaml:24: NodePool general: spec.replicas: "1": want the number at first between spec.autoscaling.min and max, 3 to 5`},
		{"spec: {replicas: 2}", "spec: {upgrade: {maxSurge: 1.5}}",
			`ha.yaml:24: NodePool general: spec.upgrade.maxSurge: "1.5": want a text: put it in quotes`},
		{"spec: {replicas: 2}", "spec: {upgrade: {maxSurge: -1}}",
			`ha.yaml:24: NodePool general: spec.upgrade.maxSurge: "-1": want a number of nodes such as 1, or a share of the pool such as 25%`},
		{"spec: {replicas: 2}", "spec: {upgrade: {maxSurge: 0}}",
			`ha.yaml:24: NodePool general: spec.upgrade.maxSurge: "0": with neither further nodes nor missing ones no node can be replaced: ` +
				"want more than 0, or spec.upgrade.maxUnavailable"},
		{"spec: {replicas: 2}", file("{path: /opt/x, url: https://example.com/x}"),
			"ha.yaml:32: Extension e: spec.files[0].sha256: \"\": missing: want the SHA-256 of the file at the URL"},
		{"spec: {replicas: 2}", file("{path: /opt/x, url: https://example.com/x, sha256: 12ab}"),
			`ha.yaml:32: Extension e: spec.files[0].sha256: "12ab": want 64 small hexadecimal digits, as sha256sum prints them`},
		{"spec: {replicas: 2}", file("{path: /opt/x, url: \"https://example.com/x?sig=secret\"}"),
			`ha.yaml:32: Extension e: spec.files[0].url: "https://example.com/x?sig=secret": want a URL such as https://mirror.example.com/kubernetes`},
		{"{version: 1.36.3}", `{version: 1.36.99, artifactMirror: "http://mirror.example.com"}`,
			`ha.yaml:11: Cluster prod: spec.kubernetes.artifactMirror: "http://mirror.example.com": http does not protect programs on ` +
				"their way, and this kaz has no checksums of version 1.36.99: want a URL with https, or the checksums in " +
				"spec.kubernetes.artifactChecksums"},
		{"{version: 1.36.3}", "{version: 1.36.3, artifactChecksums: {kubelet: " + strings.Repeat("a", 64) + "}}",
			`ha.yaml:11: Cluster prod: spec.kubernetes.artifactChecksums.kubelet: the name "kubelet" is not valid: want the path of a ` +
				"program below the mirror such as v1.36.3/bin/linux/amd64/kubelet"},
		{"{version: 1.36.3}", "{version: 1.36.3, artifactChecksums: {v1.36.3/bin/linux/amd64/kubelet: " + strings.Repeat("a", 64) + "}}",
			"ha.yaml:11: Cluster prod: spec.kubernetes.artifactChecksums: some programs of version 1.36.3 have a checksum: want those of " +
				"v1.36.3/bin/linux/amd64/kubeadm, v1.36.3/bin/linux/amd64/kubectl, too"},
		{"spec: {replicas: 2}", file("{path: /opt/x}"),
			"ha.yaml:32: Extension e: spec.files[0]: the file has no content: want content, or url and sha256"},
		{"name: general", "name: gen-eral",
			`ha.yaml:23: NodePool gen-eral: metadata.name: "gen-eral": want at most 12 small letters and digits, first a letter`},
		{"kind: NodePool", "kind: Nodepool", `ha.yaml:22: kind: "Nodepool": want Cluster, NodePool, Extension or TemplatePatch; did you mean NodePool?`},
		{"kind: Cluster", "kind: NodePool", "ha.yaml:1: has no document of the kind Cluster: want one"},
		{"  network:", "  controlPlane: {replicas: 4}\n  network:",
			`ha.yaml:12: Cluster prod: spec.controlPlane.replicas: "4": want 1, 3 or 5: an even number of members of etcd tolerates no more failures than one less`},
		{"    apiServer:", "    cidrs: [10.0.0.0/8]\n    apiServer:",
			`ha.yaml:13: Cluster prod: spec.network.cidrs[0]: "10.0.0.0/8": overlaps with spec.kubernetes.podCIDR of Cluster prod, 10.244.0.0/16: ` +
				"want ranges without common addresses"},
		{"    apiServer:", "    subnets: {nodes: {cidr: 10.128.0.0/16}}\n    apiServer:",
			`ha.yaml:13: Cluster prod: spec.network.subnets.nodes.cidr: "10.128.0.0/16": is outside of the virtual network: want a part of 10.224.0.0/12`},
		{"access: PublicAndInternal", "access: Internal\n      internalIP: 10.224.0.3",
			`ha.yaml:15: Cluster prod: spec.network.apiServer.internalIP: "10.224.0.3": want an address of the control plane's subnet 10.224.0.0/24, ` +
				"from 10.224.0.4 on and without the last one"},
		{"    sshPublicKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFBxuoIeTSfTXGaGKzAHTUHVtfCCkjYZHlpL1r6Kf0Kk ops]", "    adminUser: ops",
			"ha.yaml:16: Cluster prod: spec.access.sshPublicKeys: missing: want a public key such as 'ssh-ed25519 AAAA...'"},
		{"{name: prod}\n  kubernetes", "{name: prod}\n    tags: {kaz_cluster: x}\n  kubernetes",
			`ha.yaml:11: Cluster prod: spec.azure.tags.kaz_cluster: "x": tags that begin with kaz_ are kaz's own: want another name`},
		{"{version: 1.36.3}", "{version: 1.33.0, apiServer: {extraArgs: {cloud-config: /etc/azure.json}}}",
			`ha.yaml:11: Cluster prod: spec.kubernetes.apiServer.extraArgs.cloud-config: "/etc/azure.json": Kubernetes 1.33 has removed this flag, ` +
				"and the program would not start: want it removed"},
		{"{version: 1.36.3}", "{version: 1.36.3, scheduler: {extraArgs: {feature-gates: \"A=true, MemoryManager=true,SidecarContainers=true\"}}}",
			"ha.yaml:11: Cluster prod: spec.kubernetes.scheduler.extraArgs.feature-gates: \"A=true, MemoryManager=true,SidecarContainers=true\": " +
				"Kubernetes 1.36 has removed the gate MemoryManager, and the program would not start: want it removed"},
		{"spec: {replicas: 2}", "spec: {bootFormat: Ignition}",
			`ha.yaml:24: NodePool general: spec.image.publisher: "Canonical": Ubuntu does not read Ignition: want an image that does, such as ` +
				"publisher kinvolk, offer flatcar-container-linux-corevm-amd64 and sku stable-gen2, or spec.bootFormat CloudInit"},
		{"spec: {replicas: 2}", "spec: {image: {publisher: kinvolk}}",
			`ha.yaml:24: NodePool general: spec.bootFormat: "CloudInit": Flatcar Container Linux boots with Ignition: want Ignition`},
		{"spec: {replicas: 2}", "spec: {bootFormat: ignition}",
			`ha.yaml:24: NodePool general: spec.bootFormat: "ignition": want CloudInit or Ignition; did you mean Ignition?`},
		{"  network:", "  controlPlane: {bootFormat: Ignition, vmSize: Standard_D4s_v6, image: {publisher: kinvolk}}\n  network:",
			`ha.yaml:12: Cluster prod: spec.controlPlane.vmSize: "Standard_D4s_v6": Ignition finds the disk of etcd by its SCSI name, and this ` +
				"size has NVMe disks only: want a size up to v5, or spec.controlPlane.bootFormat CloudInit"},
		{"spec: {replicas: 2}", "spec: {bootFormat: Ignition, image: {publisher: kinvolk}}\n---\napiVersion: cluster.kaz/v1alpha1\n" +
			"kind: Extension\nmetadata: {name: tool}\nspec: {appliesTo: {pools: [general]}, files: [{path: /usr/local/bin/tool, content: x}]}",
			`ha.yaml:29: Extension tool: spec.files[0].path: "/usr/local/bin/tool": machines that boot with Ignition have a read-only /usr: ` +
				"want a path below another directory, such as /opt"},
		{"spec: {replicas: 2}", "spec: {bootFormat: Ignition, image: {publisher: kinvolk}}\n---\napiVersion: cluster.kaz/v1alpha1\n" +
			"kind: Extension\nmetadata: {name: tool}\nspec: {appliesTo: {pools: [general]}, files: [{path: /etc//../usr/tool, content: x}]}",
			`ha.yaml:29: Extension tool: spec.files[0].path: "/etc//../usr/tool": Ignition takes only clean paths: want /usr/tool`},
		{"metadata: {name: prod}", "metadata: &m {name: prod}\nextra: *m", "ha.yaml:5: *m is an alias: want the value itself, because each field must have one place where it is set"},
	} {
		_, err := Load(changed(t, test.old, test.with))
		if err == nil {
			t.Errorf("%q instead of %q: no error, want %s", test.with, test.old, test.want)
			continue
		}
		found := false
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found = found || line == test.want
		}
		if !found {
			t.Errorf("%q instead of %q:\n got %v\nwant %s", test.with, test.old, err, test.want)
		}
	}
}

// TestBootFormat checks that another boot format replaces machines. A definition without the field means the same as one with
// the default, so machines that were made before the field existed stay.
func TestBootFormat(t *testing.T) {
	const spec = "spec: {replicas: 2}"
	d := load(t, changed(t, spec, "spec: {replicas: 2, image: {id: "+galleryImage+"}}"))
	old := load(t, changed(t, spec, "spec: {replicas: 2, image: {id: "+galleryImage+"}}"))
	old.Pools[0].Spec.BootFormat, old.Cluster.Spec.ControlPlane.BootFormat = "", ""
	if differences := Compare(old, d); len(differences) > 0 {
		t.Errorf("a definition without the field differs: %v", differences)
	}
	for _, pool := range []string{"general", ""} {
		if Revision(old, pool) != Revision(d, pool) {
			t.Errorf("%q: a definition without the field has another revision", pool)
		}
	}
	now := load(t, changed(t, spec, "spec: {replicas: 2, bootFormat: Ignition, image: {id: "+galleryImage+"}}"))
	want := `NodePool general: spec.bootFormat: "CloudInit" -> "Ignition" (replaces machines)`
	if differences := Compare(old, now); len(differences) != 1 || differences[0].String() != want {
		t.Errorf("got %v, want %s", differences, want)
	}
	if Revision(old, "general") == Revision(now, "general") || Revision(old, "") != Revision(now, "") {
		t.Error("another boot format of a pool does not change the revision of its nodes, or changes that of members")
	}
}

const galleryImage = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/images/images/flatcar"

// TestRemoved checks scenario 34: a flag and a gate are refused from the version on that no longer has them, and not before.
func TestRemoved(t *testing.T) {
	for args, want := range map[string]bool{
		"{version: 1.32.9, apiServer: {extraArgs: {cloud-config: x}}}":                                  true,
		"{version: 1.34.0, apiServer: {extraArgs: {cloud-config: x}}}":                                  false,
		"{version: 1.36.3, controllerManager: {extraArgs: {feature-gates: \"APIServerTracing=true\"}}}": true,
		"{version: 1.37.0, controllerManager: {extraArgs: {feature-gates: \"APIServerTracing=true\"}}}": false,
	} {
		if _, err := Load(changed(t, "{version: 1.36.3}", args)); (err == nil) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestAmounts checks that an amount may be a number, and a share in quotes or without.
func TestAmounts(t *testing.T) {
	d := load(t, changed(t, "spec: {replicas: 2}", "spec: {upgrade: {maxSurge: 2, maxUnavailable: 25%}}"))
	if diff := cmp.Diff(Upgrade{MaxSurge: "2", MaxUnavailable: "25%"}, d.Pools[0].Spec.Upgrade); diff != "" {
		t.Error(diff)
	}
}

// TestRevision checks that a revision changes with each field for which an upgrade replaces those machines, and with no other.
func TestRevision(t *testing.T) {
	base := load(t, layer(t, "ha.yaml"))
	for _, test := range []struct {
		old, with      string
		members, nodes bool
	}{
		{"{version: 1.36.3}", "{version: 1.36.9}", false, false},
		{"spec: {replicas: 2}", "spec: {replicas: 3, upgrade: {maxSurge: 2}}", false, false},
		{"spec: {replicas: 2}", "spec: {replicas: 2, labels: {a: b}}", false, true},
		{"spec: {replicas: 2}", "spec: {replicas: 2, dataDisks: [{sizeGiB: 8}]}", false, true},
		{"  network:", "  controlPlane: {vmSize: Standard_D8s_v5}\n  network:", true, false},
		{"{version: 1.36.3}", "{version: 1.36.3, scheduler: {extraArgs: {v: \"4\"}}}", true, false},
		{"Kk ops", "Kk dev", true, true},
		{"spec: {replicas: 2}", "spec: {replicas: 2}\n---\napiVersion: cluster.kaz/v1alpha1\nkind: Extension\nmetadata: {name: e}\n" +
			"spec: {appliesTo: {pools: [general]}, commands: [date]}", false, true},
		{"spec: {replicas: 2}", "spec: {replicas: 2}\n---\napiVersion: cluster.kaz/v1alpha1\nkind: Extension\nmetadata: {name: e}\n" +
			"spec: {appliesTo: {controlPlane: true}, commands: [date]}", true, false},
	} {
		d := load(t, changed(t, test.old, test.with))
		members, nodes := Revision(d, "") != Revision(base, ""), Revision(d, "general") != Revision(base, "general")
		if members != test.members || nodes != test.nodes {
			t.Errorf("%s: other members %v, other nodes %v; want %v and %v", test.with, members, nodes, test.members, test.nodes)
		}
	}
}

func load(t *testing.T, layers ...Layer) Definition {
	t.Helper()
	d, err := Load(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAllMistakesAtOnce checks that one run reports mistakes of every kind, in the order of the lines.
func TestAllMistakesAtOnce(t *testing.T) {
	text := `apiVersion: cluster.kaz/v1alpha1
kind: Cluster
metadata: {name: Prod}
spec:
  azure: {location: 5}
  colour: red
---
apiVersion: cluster.kaz/v1alpha1
kind: NodePool
metadata: {name: a}
spec: {maxPods: 5, taints: [x]}
`
	_, err := Load(Layer{"c.yaml", []byte(text)})
	problems, _ := errors.AsType[Problems](err)
	var got []string
	for _, p := range problems {
		got = append(got, p.At.String()+" "+p.Path)
	}
	want := []string{
		"c.yaml:3 Cluster Prod: metadata.name",
		"c.yaml:4 Cluster Prod: spec.access.sshPublicKeys", "c.yaml:4 Cluster Prod: spec.kubernetes.version",
		"c.yaml:5 Cluster Prod: spec.azure.location", "c.yaml:5 Cluster Prod: spec.azure.resourceGroup.name",
		"c.yaml:5 Cluster Prod: spec.azure.subscriptionID", "c.yaml:5 Cluster Prod: spec.azure.tenantID",
		"c.yaml:6 Cluster Prod: spec.colour",
		"c.yaml:11 NodePool a: spec.maxPods", "c.yaml:11 NodePool a: spec.taints[0]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLayers(t *testing.T) {
	d, err := Load(layer(t, "ha.yaml"), layer(t, "team-a.yaml"), layer(t, "team-b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"198.51.100.7/32", "198.51.100.8/32"}, d.Cluster.Spec.Network.SSHSources); diff != "" {
		t.Errorf("sources of two layers: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"cost-center-a": "4711", "cost-center-b": "4712"}, d.Cluster.Spec.Azure.Tags); diff != "" {
		t.Errorf("tags of two layers: %s", diff)
	}
	var pools []string
	for _, pool := range d.Pools {
		pools = append(pools, pool.Metadata.Name)
	}
	if diff := cmp.Diff([]string{"batch", "db", "general"}, pools); diff != "" {
		t.Error(diff)
	}
	other, err := Load(layer(t, "ha.yaml"), layer(t, "team-b.yaml"), layer(t, "team-a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	other.Cluster.Spec.Network.SSHSources = d.Cluster.Spec.Network.SSHSources // in the order of the layers
	if diff := cmp.Diff(d, other); diff != "" {
		t.Errorf("the order of the teams' layers matters: %s", diff)
	}
}

func TestConflictsNameBothLayers(t *testing.T) {
	base := layer(t, "ha.yaml")
	a := Layer{"a.yaml", []byte("apiVersion: cluster.kaz/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  kubernetes: {version: 1.35.4}\n")}
	b := Layer{"b.yaml", []byte("apiVersion: cluster.kaz/v1alpha1\nkind: NodePool\nmetadata: {name: general}\nspec: {replicas: 9}\n")}
	same := Layer{"same.yaml", []byte("apiVersion: cluster.kaz/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec: {azure: {location: westeurope}}\n")}
	other := Layer{"other.yaml", []byte("apiVersion: cluster.kaz/v1alpha1\nkind: Cluster\nmetadata: {name: other}\n")}
	_, err := Load(base, a, b, same, other)
	want := strings.Join([]string{
		`a.yaml:5: Cluster prod: spec.kubernetes.version: "1.35.4": conflicts with ha.yaml:11, which has "1.36.3": want the field in one layer, or the same value in both`,
		`b.yaml:1: NodePool general: conflicts with ha.yaml:21, which has the same kind and name: want another name`,
		`other.yaml:3: Cluster prod: metadata.name: "other": conflicts with ha.yaml:4, which has "prod": want the field in one layer, or the same value in both`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestExistingNetwork checks the rules of subnets that exist.
func TestExistingNetwork(t *testing.T) {
	const id = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/"
	for _, test := range []struct{ network, want string }{
		{"subnets: {nodes: {id: " + id + "n}}", "want the id of both subnets, or of none"},
		{"subnets: {nodes: {id: " + id + "n}, controlPlane: {id: " + id + "c}}", "kaz does not change subnets that exist"},
		{"subnets: {nodes: {id: " + id + "n}, controlPlane: {id: " + id + "c}}\n    outbound: {type: None}", "spec.network.routeTableID"},
		{"subnets: {nodes: {id: " + strings.Replace(id, "/v/", "/w/", 1) + "n}, controlPlane: {id: " + id + "c}}",
			"want a subnet of the control plane's virtual network"},
	} {
		_, err := Load(changed(t, "    apiServer:", "    "+test.network+"\n    apiServer:"))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.network, err, test.want)
		}
	}
}

func TestExplain(t *testing.T) {
	got, err := Explain("cluster.spec.controlPlane.zones")
	want := `FIELD:   Cluster.spec.controlPlane.zones
TYPE:    list of whole numbers
MEANING: Availability zones of the machines, in turn. An empty list puts them into an availability set.
ALLOWED: 0 to 3 elements
DEFAULT: [1, 2, 3]
CHANGE:  fixed
USED BY: machines, public IP addresses
`
	if err != nil || got != want {
		t.Errorf("got %s %v\nwant %s", got, err, want)
	}
	if got, err := Explain("NodePool.spec.dataDisks"); err != nil || !strings.Contains(got, "sizeGiB            whole number          Size of the disk.") {
		t.Errorf("got %s %v", got, err)
	}
	if _, err := Explain("NodePool.spec.datadisk"); err == nil || !strings.HasSuffix(err.Error(), "did you mean dataDisks?") {
		t.Errorf("got %v", err)
	}
}

// TestSchemaPatterns checks that the schema has only expressions that every editor can read.
func TestSchemaPatterns(t *testing.T) {
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "(?i") {
		t.Error("the schema has flags in an expression")
	}
	r := fields.Rule{Pattern: regexp.MustCompile(`^(?:a/(?i:Ab\.c)/d)$`)}
	if got, want := portable(&r), `^(?:a/[Aa][Bb]\.[Cc]/d)$`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("apiVersion: cluster.kaz/v1alpha1\nkind: Cluster\nmetadata: {name: a}\nspec: {azure: [1], network: {cidrs: 5}}\n"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = Load(Layer{"f.yaml", text}) })
}
