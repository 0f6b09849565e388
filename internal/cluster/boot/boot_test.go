package boot

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/pki"
)

func example(t *testing.T, names ...string) definition.Definition {
	t.Helper()
	var layers []definition.Layer
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("../../../docs/example-manifests/cluster", name))
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, definition.Layer{Name: name, Text: text})
	}
	d, err := definition.Load(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// written are the files of a boot file, by path.
func written(t *testing.T, text []byte) map[string]file {
	t.Helper()
	var config struct {
		Files []file `yaml:"write_files"`
	}
	if !strings.HasPrefix(string(text), "#cloud-config\n") {
		t.Error("cloud-init takes only files that begin with #cloud-config")
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	all := map[string]file{}
	for _, f := range config.Files {
		if _, twice := all[f.Path]; twice {
			t.Errorf("%s is written twice", f.Path)
		}
		all[f.Path] = f
	}
	return all
}

// TestCharts checks that the first member applies the objects of charts after the manifests of their extension, but not those that are
// for upgrades only.
func TestCharts(t *testing.T) {
	d := example(t, "dev.yaml")
	d.Extensions = []definition.Extension{{Metadata: definition.Metadata{Name: "web"}, Spec: definition.ExtensionSpec{
		Manifests: []string{"# own"}}}}
	d.Rendered = []definition.Rendered{{Extension: "web", AtBoot: true, Manifests: []definition.Packed{"# definitions", "# objects"}},
		{Extension: "web", Manifests: []definition.Packed{"# large"}},
		{Extension: "other", AtBoot: true, Manifests: []definition.Packed{"# no"}}}
	files, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for path, f := range written(t, files.ControlPlane) {
		if name, is := strings.CutPrefix(path, "/etc/kaz/manifests/web-"); is {
			got = append(got, name+" "+f.Content)
		}
	}
	slices.Sort(got)
	want := []string{"000.yaml # own", "001.yaml # definitions", "002.yaml # objects"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var all []string
	for _, m := range Manifests(d) {
		if strings.HasPrefix(m.Name, "web-") {
			all = append(all, m.Text)
		}
	}
	if diff := cmp.Diff([]string{"# own", "# definitions", "# objects", "# large"}, all); diff != "" {
		t.Error(diff)
	}
	inventory := written(t, files.ControlPlane)["/etc/kaz/applied.yaml"].Content
	if !strings.Contains(inventory, Checksum(AtBoot(d))) || strings.Contains(inventory, Checksum(Manifests(d))) {
		t.Errorf("an upgrade does not see that a chart was not applied:\n%s", inventory)
	}
}

// TestInventory checks that the first member says what it applies, and that it is read again.
func TestInventory(t *testing.T) {
	d := example(t, "dev.yaml")
	files, err := Build(d)
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(written(t, files.ControlPlane)["/etc/kaz/applied.yaml"].Content), &m); err != nil {
		t.Fatal(err)
	}
	objects, err := ReadInventory(m.Data[ObjectsKey])
	if err != nil {
		t.Fatal(err)
	}
	all, err := Objects(Manifests(d))
	if err != nil {
		t.Fatal(err)
	}
	keys := func(objects []*unstructured.Unstructured) (keys []string) {
		for _, o := range objects {
			keys = append(keys, o.GetAPIVersion()+" "+Key(o))
		}
		return keys
	}
	if diff := cmp.Diff(keys(all), keys(objects)); diff != "" || len(all) < 20 || m.Data[ChecksumKey] != Checksum(Manifests(d)) {
		t.Errorf("%d objects, checksum %s\n%s", len(all), m.Data[ChecksumKey], diff)
	}
	d.Extensions = []definition.Extension{{Metadata: definition.Metadata{Name: "web"}, Spec: definition.ExtensionSpec{
		Manifests: []string{"kind: ["}}}}
	if _, err := Build(d); err == nil || !strings.HasPrefix(err.Error(), "manifest web-000: ") {
		t.Errorf("a manifest that cannot be read: %v", err)
	}
}

// FuzzInventory reads inventories: what is read has as many objects as lines.
func FuzzInventory(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"Secret","name":"a","keep":true}` + "\n\n" + `{"kind":"Pod","namespace":"b","name":"c"}`)
	f.Add("[]")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := ReadInventory(text)
		if lines := strings.Count(text, "\n") + 1; err == nil && len(objects) > lines {
			t.Errorf("%d objects in %d lines", len(objects), lines)
		}
		for _, o := range objects {
			_ = Key(o)
		}
	})
}

func TestFiles(t *testing.T) {
	files, err := Build(example(t, "ha.yaml", "team-a.yaml", "team-b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	db, batch, members := written(t, files.Pools["db"]), written(t, files.Pools["batch"]), written(t, files.ControlPlane)
	if _, has := db["/etc/sysctl.d/90-db.conf"]; !has {
		t.Error("the file of team-b is not on the nodes of its pool")
	}
	if _, has := batch["/etc/sysctl.d/90-db.conf"]; has {
		t.Error("the file of team-b is on the nodes of another pool")
	}
	if _, has := members["/etc/kaz/manifests/team-a-000.yaml"]; !has {
		t.Error("the manifest of team-a is not on the control plane")
	}
	if _, has := db["/etc/kaz/kubeadm-init.yaml"]; has {
		t.Error("a node can make a cluster")
	}
	const afterDisk = "/etc/systemd/system/kubelet.service.d/20-etcd.conf"
	if _, has := db[afterDisk]; has || !strings.Contains(members[afterDisk].Content, "mountpoint -q /var/lib/etcddisk") {
		t.Errorf("the kubelet of a member does not wait for its disk: %v, or that of a node does", members[afterDisk])
	}
	for _, want := range []string{"name: cloud-provider", "value: kaz/pool=batch,kaz/revision=35776f4ed1,team=a", "effect: NoSchedule",
		"key: team"} {
		if !strings.Contains(batch["/etc/kaz/kubeadm-join.yaml"].Content, want) {
			t.Errorf("the configuration of the nodes has no %s:\n%s", want, batch["/etc/kaz/kubeadm-join.yaml"].Content)
		}
	}
	for _, want := range []string{"controlPlaneEndpoint: api.prod.kaz.internal:6443", "- 10.224.0.100", "kubernetesVersion: v1.36.3",
		"- 10.0.0.10"} {
		if !strings.Contains(members["/etc/kaz/kubeadm-init.yaml"].Content, want) {
			t.Errorf("the configuration of the first member has no %s:\n%s", want, members["/etc/kaz/kubeadm-init.yaml"].Content)
		}
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(db["/etc/kubernetes/azure.json"].Content), &config); err != nil || config["vmType"] != "vmssflex" {
		t.Errorf("%v %v", err, config)
	}
	for role, text := range map[string][]byte{"control plane": files.ControlPlane, "pool": files.Pools["db"]} {
		data, err := CustomData(text)
		if err != nil || len(data) > 60*1024 {
			t.Errorf("%s: %d characters of custom data, want at most 60 KiB: %v", role, len(data), err)
		}
	}
}

// TestMasquerade checks that pods keep their addresses in the virtual network if its ranges are known, and nowhere else.
func TestMasquerade(t *testing.T) {
	d := example(t, "ha.yaml")
	rules := func() string {
		files, err := Build(d)
		if err != nil {
			t.Fatal(err)
		}
		return written(t, files.Pools["general"])["/etc/kaz/masquerade.nft"].Content
	}
	want := "ip saddr 10.244.0.0/16 ip daddr != { 10.244.0.0/16, 10.0.0.0/16, 10.224.0.0/12 } masquerade"
	if !strings.Contains(rules(), want) {
		t.Errorf("want %s:\n%s", want, rules())
	}
	d.Cluster.Spec.Network.Subnets.Nodes.ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
	if want := "ip daddr != { 10.244.0.0/16, 10.0.0.0/16 } masquerade"; !strings.Contains(rules(), want) {
		t.Errorf("with a network that exists, want %s:\n%s", want, rules())
	}
	d.Cluster.Spec.Kubernetes.PodNetwork = "None"
	if rules() != "" {
		t.Errorf("with a network plugin:\n%s", rules())
	}
}

// cloud is what a machine reaches while it boots: instance metadata, the key vault and the storage account.
type cloud struct {
	*httptest.Server
	mu      sync.Mutex
	machine string // the unique id of the machine
	name    string // the computer name of the machine
	refuse  int    // how often the vault refuses, as it does while a role is new
	winner  string // content of the blob
	blobs   map[string]string
	asked   []string
	// document is the signed document of the machine, and nonce that for which it was asked.
	document, nonce string
	// authority is the secret of a certificate authority, "" for a text like one.
	authority string
	// encryption is the secret with the keys that encrypt Secrets.
	encryption string
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{blobs: map[string]string{}, encryption: "encrypts key-1 " + encryptionKey("1") + "\n"}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *cloud) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.Method+" "+r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/oauth2/token"):
		_, _ = io.WriteString(w, `{"access_token":"t"}`)
	case strings.HasSuffix(r.URL.Path, "/computerName"):
		_, _ = io.WriteString(w, c.name)
	case r.URL.Path == "/metadata/attested/document":
		c.nonce = r.URL.Query().Get("nonce")
		_, _ = io.WriteString(w, `{"encoding":"pkcs7","signature":"`+c.document+`"}`)
	case strings.HasSuffix(r.URL.Path, "/vmId"):
		_, _ = io.WriteString(w, c.machine)
	case r.Header.Get("Authorization") != "Bearer t":
		w.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/secrets/"):
		if c.refuse > 0 {
			c.refuse--
			w.WriteHeader(http.StatusForbidden)
			return
		}
		value := "-----BEGIN PUBLIC KEY-----\np\n-----END PUBLIC KEY-----\n-----BEGIN CERTIFICATE-----\nc\n-----END CERTIFICATE-----\n" +
			"-----BEGIN PRIVATE KEY-----\nk\n-----END PRIVATE KEY-----\n"
		if c.authority != "" {
			value = c.authority
		}
		if strings.HasSuffix(r.URL.Path, "bootstrap-token") {
			value = `{"token":"abcdef.0123456789abcdef","caCertHash":"sha256:00"}`
		}
		if strings.HasSuffix(r.URL.Path, "encryption") {
			value = c.encryption
		}
		if strings.HasSuffix(r.URL.Path, "pki-sa") {
			value = "" // during a rotation
			for _, block := range []string{"PUBLIC KEY p1", "PUBLIC KEY p2", "PRIVATE KEY k1", "PRIVATE KEY k2"} {
				kind, content := block[:len(block)-3], block[len(block)-2:]
				value += "-----BEGIN " + kind + "-----\n" + content + "\n-----END " + kind + "-----\n"
			}
			value += "every member signs with the first key since 2030-01-02T03:04:05Z\n"
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"value": value})
	case !strings.HasSuffix(r.URL.Path, "/initialized"):
		c.blob(w, r, strings.TrimPrefix(r.URL.Path, "/container/"))
	case r.Method == http.MethodPut && c.winner != "":
		w.WriteHeader(http.StatusConflict)
	case r.Method == http.MethodPut:
		text, _ := io.ReadAll(r.Body)
		c.winner = string(text)
		w.WriteHeader(http.StatusCreated)
	default:
		_, _ = io.WriteString(w, c.winner)
	}
}

// blob serves a blob other than that of the election.
func (c *cloud) blob(w http.ResponseWriter, r *http.Request, name string) {
	text, has := c.blobs[name]
	switch {
	case r.URL.Query().Get("comp") == "list":
		c.list(w, r.URL.Query().Get("marker"))
	case r.Method == http.MethodDelete && !has:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(c.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && has && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusConflict)
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		c.blobs[name] = string(body)
		w.WriteHeader(http.StatusCreated)
	case !has:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = io.WriteString(w, text)
	}
}

// list serves the names of blobs below etcd/, two a page.
func (c *cloud) list(w io.Writer, marker string) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.blobs)) {
		if strings.HasPrefix(name, "etcd/") && name >= marker {
			names = append(names, name)
		}
	}
	next := ""
	if len(names) > 2 {
		names, next = names[:2], names[2]
	}
	_, _ = fmt.Fprintf(w, "<EnumerationResults><Blobs><Blob><Name>%s</Name></Blob></Blobs><NextMarker>%s</NextMarker></EnumerationResults>",
		strings.Join(names, "</Name></Blob><Blob><Name>"), next)
}

// host is a machine with programs that are replaced by ones that note their calls.
type host struct {
	t    *testing.T
	root string
	c    *cloud
	id   string
}

func newHost(t *testing.T, c *cloud, id, role string) *host {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the boot script")
	}
	for _, program := range []string{"bash", "curl", "awk", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the script needs %s", program)
		}
	}
	h := &host{t: t, root: t.TempDir(), c: c, id: id}
	write := h.write
	write("bin/hostname", "#!/bin/sh\necho Prod-CP-0\n", 0o755)
	for _, name := range []string{"blkid", "mkfs.ext4", "mountpoint", "mount", "swapoff", "modprobe", "sysctl", "apt-get", "systemctl",
		"containerd", "conntrack", "nft"} {
		write("bin/"+name, "#!/bin/sh\necho \""+name+" $*\" >> \"$KAZ_ROOT/calls\"\n", 0o755)
	}
	write("bin/python3", "#!/bin/sh\necho images such as Flatcar have no python3 >&2\nexit 1\n", 0o755)
	write("bin/kubelet", "#!/bin/sh\necho Kubernetes v1.36.3\n", 0o755)
	write("bin/kubectl", "#!/bin/sh\n[ \"$1\" = version ] && { echo Client Version: v1.36.3; exit; }\n"+
		"echo \"kubectl $*\" >> \"$KAZ_ROOT/calls\"\n", 0o755)
	write("bin/kubeadm", `#!/bin/sh
[ "$1" = version ] && { echo v1.36.3; exit; }
[ "$1" = upgrade ] && { echo "kubeadm $*" >> "$KAZ_ROOT/calls"; exit; }
echo "kubeadm $1 $4" >> "$KAZ_ROOT/calls"
[ -e "$KAZ_ROOT/broken" ] && { echo "the API server did not start" >&2; exit 1; }
cp "$3" "$KAZ_ROOT/used.yaml"
touch "$KAZ_ROOT/etc/kubernetes/kubelet.conf"
[ "$1" = join ] || touch "$KAZ_ROOT/etc/kubernetes/admin.conf"
`, 0o755)
	write("dev/disk/azure/scsi1/lun0", "", 0o600)
	write("etc/fstab", "", 0o600)
	write("etc/hosts", "127.0.0.1 localhost\n", 0o600)
	files, err := Build(example(t, "ha.yaml", "team-a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := files.Pools["general"]
	if role == "control-plane" {
		text = files.ControlPlane
	}
	h.bring(written(t, text))
	return h
}

// bring writes the files of a boot file. The machine reaches the test's cloud.
func (h *host) bring(files map[string]file) {
	h.t.Helper()
	for path, f := range files {
		content := f.Content
		if path == "/etc/kaz/node.env" {
			content += fmt.Sprintf("KAZ_VAULT_URL=%s\nKAZ_ELECTION_URL=%s/container\n", h.c.URL, h.c.URL)
		}
		h.write(path, content, 0o700)
	}
}

// write writes a file of the machine.
func (h *host) write(path, text string, mode os.FileMode) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
}

// boot runs the script, and returns the calls of programs and the report.
func (h *host) boot() (calls, report string, err error) {
	h.t.Helper()
	calls, _, err = h.run("")
	done, _ := os.ReadFile(filepath.Join(h.root, "run/kaz/bootstrap.json"))
	return calls, string(done), err
}

// run runs the script for a boot, or for a timer, and returns the calls of programs and the output.
func (h *host) run(timer string) (calls, output string, err error) {
	h.t.Helper()
	return h.script("usr/local/lib/kaz/bootstrap.sh", timer)
}

// script runs a script of the machine, and returns the calls of programs and the output.
func (h *host) script(args ...string) (calls, output string, err error) {
	h.t.Helper()
	h.c.machine = h.id
	command := exec.CommandContext(h.t.Context(), "sh", append([]string{"-c", `export PATH="$1/bin:$PATH" KAZ_ROOT="$1" KAZ_IMDS="$2"
		export KAZ_RETRY_DELAY=0 KAZ_TRIES=5 KAZ_ADDRESS=10.224.0.4
		exec bash "$1/$3" $4`, "sh", h.root, h.c.URL}, args...)...)
	out, err := command.CombinedOutput()
	h.t.Logf("%s", out)
	text, _ := os.ReadFile(filepath.Join(h.root, "calls"))
	_ = os.Remove(filepath.Join(h.root, "calls"))
	return string(text), string(out), err
}

func (h *host) touch(name string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, name), nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// TestElection checks that one member makes the cluster, and that all others join: scenario 14.
func TestElection(t *testing.T) {
	c := newCloud(t)
	c.refuse = 3 // scenario 20: a new role takes effect late
	first := newHost(t, c, "vm-a", "control-plane")
	calls, report, err := first.boot()
	if err != nil || !strings.Contains(calls, "kubeadm init --ignore-preflight-errors=none") || !strings.Contains(report, `"failed": false`) {
		t.Fatalf("%v\n%s\n%s", err, calls, report)
	}
	if !strings.Contains(calls, "apply --server-side --field-manager kaz -f "+first.root+"/etc/kaz/manifests/team-a-000.yaml") {
		t.Errorf("the manifests of extensions are not applied:\n%s", calls)
	}
	if last := strings.LastIndex(calls, "--field-manager kaz -f "); !strings.HasPrefix(calls[last:], "--field-manager kaz -f "+first.root+
		"/etc/kaz/applied.yaml") {
		t.Errorf("the inventory is not applied last:\n%s", calls)
	}
	used, err := os.ReadFile(filepath.Join(first.root, "used.yaml"))
	if err != nil || strings.Contains(string(used), "@") || !strings.Contains(string(used), "advertiseAddress: '10.224.0.4'") {
		t.Errorf("%v\n%s", err, used)
	}
	hosts, err := os.ReadFile(filepath.Join(first.root, "etc/hosts"))
	if err != nil || !strings.Contains(string(hosts), "127.0.0.1 api.prod.kaz.internal") {
		t.Errorf("the member does not reach its own API server: %v\n%s", err, hosts)
	}
	for _, name := range []string{"ca", "etcd/ca", "front-proxy-ca", "sa"} { // only root reads the keys of the cluster
		info, err := os.Stat(filepath.Join(first.root, "etc/kubernetes/pki", name+".key"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("key %s: %v %v", name, info, err)
		}
	}
	for file, want := range map[string]string{ // scenario 43: tokens of both keys are accepted, and the first key signs
		"sa.pub": "-----BEGIN PUBLIC KEY-----\np1\n-----END PUBLIC KEY-----\n-----BEGIN PUBLIC KEY-----\np2\n-----END PUBLIC KEY-----\n",
		"sa.key": "-----BEGIN PRIVATE KEY-----\nk1\n-----END PRIVATE KEY-----\n",
	} {
		if text, err := os.ReadFile(filepath.Join(first.root, "etc/kubernetes/pki", file)); err != nil || string(text) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", file, err, text, want)
		}
	}
	for _, secret := range []string{"join.json", "kubeadm.yaml", "bundle", "answer"} {
		if _, err := os.Stat(filepath.Join(first.root, "run/kaz", secret)); !os.IsNotExist(err) {
			t.Errorf("%s stays on the machine", secret)
		}
	}
	if calls, _, err := first.boot(); err != nil || calls != "" {
		t.Errorf("the second run did something: %v\n%s", err, calls)
	}
	// After a boot only the disk is mounted, the system set up, and the join token renewed.
	if err := os.RemoveAll(filepath.Join(first.root, "run")); err != nil {
		t.Fatal(err)
	}
	calls, report, err = first.boot()
	if err != nil || !strings.Contains(calls, "mountpoint") || strings.Contains(calls, "kubeadm") ||
		strings.Contains(calls, "manifests") || !strings.Contains(calls, "--field-manager kaz-join-token") ||
		!strings.Contains(report, `"phase": "complete"`) {
		t.Errorf("the member boots again: %v\n%s\n%s", err, calls, report)
	}
	for id, role := range map[string]string{"vm-b": "control-plane", "vm-a, made anew": "control-plane", "node": "node"} {
		calls, _, err := newHost(t, c, id, role).boot()
		if err != nil || !strings.Contains(calls, "kubeadm join") || strings.Contains(calls, "kubeadm init") {
			t.Errorf("%s: %v\n%s", id, err, calls)
		}
		// Its kubeadm may be newer than that with which the cluster was made.
		rights := strings.Contains(calls, "kubeadm upgrade apply phase bootstrap-token v1.36.3 --kubeconfig")
		if rights != (role == "control-plane") {
			t.Errorf("%s: access rules of the version %v\n%s", id, rights, calls)
		}
	}
}

// TestFailedInit checks that a member with a failed init names the cause, and goes on with the same init.
func TestFailedInit(t *testing.T) {
	h := newHost(t, newCloud(t), "vm-a", "control-plane")
	h.touch("broken")
	_, report, err := h.boot()
	if err == nil || !strings.Contains(report, `"failed": true, "phase": "join", "code": 60, "message": "the API server did not start"`) {
		t.Fatalf("%v %s", err, report)
	}
	if err := os.Remove(filepath.Join(h.root, "broken")); err != nil {
		t.Fatal(err)
	}
	calls, report, err := h.boot()
	if err != nil || !strings.Contains(calls, "kubeadm init --ignore-preflight-errors=all") || !strings.Contains(report, `"failed": false`) {
		t.Errorf("%v\n%s\n%s", err, calls, report)
	}
}

// TestNoSecrets checks that a machine without rights says so.
func TestNoSecrets(t *testing.T) {
	c := newCloud(t)
	c.refuse = 1000
	_, report, err := newHost(t, c, "n", "node").boot()
	want := `"phase": "keys", "code": 51, "message": "key vault answered 403 for the secret prod-bootstrap-token"`
	if err == nil || !strings.Contains(report, want) {
		t.Errorf("%v %s", err, report)
	}
}

// TestNodeReadsOneSecret checks that a node asks for the token alone.
func TestNodeReadsOneSecret(t *testing.T) {
	c := newCloud(t)
	if _, _, err := newHost(t, c, "n", "node").boot(); err != nil {
		t.Fatal(err)
	}
	for _, asked := range c.asked {
		if strings.Contains(asked, "/secrets/") && !strings.HasSuffix(asked, "/prod-bootstrap-token") {
			t.Errorf("a node asked for %s", asked)
		}
	}
}

// TestJoinToken checks scenario 41 on one machine: when a member boots, it makes the token of the key vault valid for 36
// hours. Each run of its timer does so again. No secret is an argument or stays on the machine. A node does not renew the
// token.
func TestJoinToken(t *testing.T) {
	h := newHost(t, newCloud(t), "vm-a", "control-plane")
	h.write("bin/kubectl", `#!/bin/sh
[ "$1" = version ] && { echo Client Version: v1.36.3; exit; }
echo "kubectl $*" >> "$KAZ_ROOT/calls"
case "$*" in *join-token.manifest) cp "$KAZ_ROOT/run/kaz/join-token.manifest" "$KAZ_ROOT/applied"; [ ! -e "$KAZ_ROOT/broken" ] ;; esac
`, 0o755)
	for _, run := range []string{"", "join-token"} {
		before := time.Now()
		calls, out, err := h.run(run)
		applied, read := os.ReadFile(filepath.Join(h.root, "applied"))
		var made struct {
			Type       string
			Metadata   struct{ Name, Namespace string }
			StringData map[string]string
		}
		if err != nil || read != nil || json.Unmarshal(applied, &made) != nil {
			t.Fatalf("run %q: %v %v\n%s", run, err, read, applied)
		}
		if made.Type != "bootstrap.kubernetes.io/token" || made.Metadata.Namespace != "kube-system" ||
			made.Metadata.Name != "bootstrap-token-abcdef" || made.StringData["token-secret"] != "0123456789abcdef" {
			t.Errorf("run %q made\n%s", run, applied)
		}
		end, err := time.Parse(time.RFC3339, made.StringData["expiration"])
		if left := end.Sub(before); err != nil || left < 36*time.Hour-time.Second || left > 37*time.Hour {
			t.Errorf("run %q: valid for %s, want 36 hours: %v", run, left, err)
		}
		if strings.Contains(calls+out, "0123456789abcdef") {
			t.Errorf("run %q shows the token", run)
		}
		if err := os.Remove(filepath.Join(h.root, "applied")); err != nil {
			t.Fatal(err)
		}
	}
	h.touch("broken")
	if _, _, err := h.run("join-token"); err == nil {
		t.Error("a token that is not applied is no failure")
	}
	for _, name := range []string{"join-token.json", "join-token.manifest"} {
		if _, err := os.Stat(filepath.Join(h.root, "run/kaz", name)); !os.IsNotExist(err) {
			t.Errorf("%s stays on the machine", name)
		}
	}
	if calls, _, err := newHost(t, h.c, "node", "node").boot(); err != nil || strings.Contains(calls, "join-token") {
		t.Errorf("a node: %v\n%s", err, calls)
	}
	files, err := Build(example(t, "ha.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	members := written(t, files.ControlPlane)
	if text := members["/etc/systemd/system/kaz-join-token.timer"].Content; !strings.Contains(text, "OnCalendar=*-*-* 00/12:00:00\n") {
		t.Errorf("the timer of members:\n%s", text)
	}
	if text := members["/etc/kaz/kubeadm-init.yaml"].Content; !strings.Contains(text, "ttl: 36h0m0s") {
		t.Errorf("the first token:\n%s", text)
	}
	if _, has := written(t, files.Pools["general"])["/etc/systemd/system/kaz-join-token.timer"]; has {
		t.Error("nodes have the timer")
	}
}

// saved is a backup as etcd writes it, with the hash at its end.
func saved() string {
	data := strings.Repeat("k", 1024)
	sum := sha256.Sum256([]byte(data))
	return data + string(sum[:])
}

// signing lets the etcd of a cloud's cluster have a certificate authority, and returns it.
func signing(t *testing.T, c *cloud) pki.Authority {
	t.Helper()
	s, err := pki.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.EtcdCA.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	c.authority = string(text)
	return s.EtcdCA
}

// signed is the blob with the signature of a backup.
func signed(t *testing.T, a pki.Authority, cluster, name, content string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	signature, err := a.Sign(dataplane.Statement(cluster, name, sum[:]))
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// TestPlantedBackup checks that the first member does not begin with a backup that somebody without the keys of etcd has written.
func TestPlantedBackup(t *testing.T) {
	c := newCloud(t)
	signing(t, c)
	c.blobs["restore"], c.blobs["etcd/1.db"] = "etcd/1.db", saved()
	h := newHost(t, c, "vm-a", "control-plane")
	h.write("bin/etcdutl", etcdUtility, 0o755)
	calls, report, err := h.boot()
	want := "nothing proves that this cluster made the backup etcd/1.db"
	if err == nil || !strings.Contains(report, want) || strings.Contains(calls, "etcdutl") {
		t.Errorf("%v %s\n%s", err, report, calls)
	}
}

// TestGenuine checks signatures of a backup as a machine does. An authority that is trusted beside the other one counts.
func TestGenuine(t *testing.T) {
	dir := t.TempDir()
	own, other := signing(t, newCloud(t)), signing(t, newCloud(t))
	both, err := own.Trust(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "pki/etcd"), 0o750); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("backup", saved())
	next, err := both.Issue()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		trusted   pki.Authority
		signature string
		want      bool
	}{
		"own":                {own, signed(t, own, "prod", "etcd/1.db", saved()), true},
		"of the former key":  {next, signed(t, own, "prod", "etcd/1.db", saved()), true},
		"of the next key":    {both, signed(t, next, "prod", "etcd/1.db", saved()), true},
		"no signature":       {own, "x", false},
		"empty":              {own, "", false},
		"of another key":     {own, signed(t, other, "prod", "etcd/1.db", saved()), false},
		"of another name":    {own, signed(t, own, "prod", "etcd/0.db", saved()), false},
		"of other content":   {own, signed(t, own, "prod", "etcd/1.db", "other"), false},
		"of another cluster": {own, signed(t, own, "test", "etcd/1.db", saved()), false},
	} {
		for _, awk := range awks(t) {
			write("pki/etcd/ca.crt", string(test.trusted.Trusted()))
			write("blob", test.signature)
			const command = "state=%[1]s kubernetes=%[1]s KAZ_CLUSTER=prod\ngenuine etcd/1.db %[1]s/backup && echo genuine"
			out, _ := call(t, awk, "", fmt.Sprintf(command, dir), "statement", "genuine")
			if got := out == "genuine\n"; got != test.want {
				t.Errorf("%s, %s: genuine is %v, want %v", name, awk, got, test.want)
			}
		}
	}
}

// etcdUtility notes its call and makes the directory of a member.
const etcdUtility = "#!/bin/sh\necho \"etcdutl $*\" >> \"$KAZ_ROOT/calls\"\nmkdir -p \"$5/member\"\n"

// TestRestore checks scenario 39: the machine that makes the cluster begins with the backup that is marked. A second run does not
// restore again, and a damaged backup stops the boot.
func TestRestore(t *testing.T) {
	c := newCloud(t)
	c.blobs["restore"], c.blobs["etcd/1.db"] = "etcd/1.db", saved()
	c.blobs["etcd/1.db.sig"] = signed(t, signing(t, c), "prod", "etcd/1.db", saved())
	h := newHost(t, c, "vm-a", "control-plane")
	h.write("bin/etcdutl", etcdUtility, 0o755)
	calls, report, err := h.boot()
	disk := h.root + "/var/lib/etcddisk/"
	want := "etcdutl snapshot restore " + disk + "restore.db --data-dir " + disk + "restored --name prod-cp-0 --bump-revision 1000000000 " +
		"--mark-compacted --initial-cluster prod-cp-0=https://10.224.0.4:2380 --initial-advertise-peer-urls https://10.224.0.4:2380\n"
	if err != nil || !strings.Contains(calls, want) || !strings.Contains(calls, "kubeadm init --ignore-preflight-errors=all") {
		t.Fatalf("%v %s\ngot %s\nwant %s", err, report, calls, want)
	}
	if _, err := os.Stat(disk + "etcd/member"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(h.root, "run/kaz/bootstrap-success")); err != nil {
		t.Fatal(err)
	}
	if calls, _, err := h.boot(); err != nil || strings.Contains(calls, "etcdutl") {
		t.Errorf("the second run: %v\n%s", err, calls)
	}
	other := newHost(t, c, "vm-b", "control-plane")
	other.write("bin/etcdutl", etcdUtility, 0o755)
	if calls, _, err := other.boot(); err != nil || strings.Contains(calls, "etcdutl") {
		t.Errorf("another member: %v\n%s", err, calls)
	}
	c = newCloud(t)
	c.blobs["restore"], c.blobs["etcd/1.db"] = "etcd/1.db", saved()+"x"
	damaged := newHost(t, c, "vm-a", "control-plane")
	damaged.write("bin/etcdutl", etcdUtility, 0o755)
	_, report, err = damaged.boot()
	if err == nil || !strings.Contains(report, `"phase": "restore", "code": 53, "message": "the backup etcd/1.db is damaged`) {
		t.Errorf("a damaged backup: %v %s", err, report)
	}
}

// TestRestoreWithImage checks a restore with the etcdutl of etcd's image, which is not pulled again if the machine has it among many others.
func TestRestoreWithImage(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/etcd:3.6.8-0": "ctr -n k8s.io run --rm --mount",
		"registry.k8s.io/etcd:3.6.9-0": "ctr -n k8s.io images pull registry.k8s.io/etcd:3.6.9-0\nctr -n k8s.io run --rm --mount",
	} {
		c := newCloud(t)
		c.blobs["restore"], c.blobs["etcd/1.db"] = "etcd/1.db", saved()
		c.blobs["etcd/1.db.sig"] = signed(t, signing(t, c), "prod", "etcd/1.db", saved())
		h := newHost(t, c, "vm-a", "control-plane")
		h.write("bin/kubeadm", `#!/bin/sh
case "$*" in
  version*) echo v1.36.3 ;;
  "config images list"*) echo `+image+` ;;
  init*) touch "$KAZ_ROOT/etc/kubernetes/kubelet.conf" "$KAZ_ROOT/etc/kubernetes/admin.conf" ;;
esac
`, 0o755)
		h.write("bin/ctr", `#!/bin/bash
[ "$4" = ls ] || { echo "ctr $*" >> "$KAZ_ROOT/calls"; mkdir -p "$KAZ_ROOT/var/lib/etcddisk/restored/member"; exit; }
trap '' PIPE
for ((i = 7; i < 5000; i++)); do
  name=registry.k8s.io/etcd:3.6.$((i + 1))-0
  [ "${6:-name==$name}" != "name==$name" ] || [ "$i" -eq 8 ] || echo "$name" || exit 1
done
`, 0o755)
		calls, report, err := h.boot()
		if err != nil || !strings.Contains(calls, "systemctl enable -q kubelet\n"+want) {
			t.Errorf("%s: %v %s\n%s", image, err, report, calls)
		}
	}
}

// TestBackup checks the hourly backup: the leader of etcd makes it, checks it, and names it as the newest one.
func TestBackup(t *testing.T) {
	c := newCloud(t)
	h := newHost(t, c, "vm-a", "control-plane")
	h.write("sent.db", saved(), 0o600)
	authority := signing(t, c)
	h.write("etc/kubernetes/pki/etcd/ca.key", c.authority, 0o600)
	kubectl := func(leader string) {
		h.write("bin/kubectl", `#!/bin/sh
case "$*" in
  *"endpoint status"*) echo '[{"Status":{"header":{"member_id":7,"revision":42},"leader":`+leader+`}}]' ;;
  *"snapshot save"*) mkdir -p "$KAZ_ROOT/var/lib/etcddisk/etcd" && cp "$KAZ_ROOT/sent.db" "$KAZ_ROOT/var/lib/etcddisk/etcd/kaz-backup.db" ;;
esac
`, 0o755)
	}
	kubectl("8")
	if _, out, err := h.run("backup"); err != nil || !strings.Contains(out, "another member leads etcd") || len(c.blobs) > 0 {
		t.Errorf("a member that does not lead: %v %s %v", err, out, c.blobs)
	}
	kubectl("7")
	_, out, err := h.run("backup")
	name := c.blobs["etcd/latest"]
	if err != nil || !strings.HasSuffix(name, "Z-42.db") || c.blobs[name] != saved() {
		t.Errorf("%v %s %q", err, out, name)
	}
	sum := sha256.Sum256([]byte(saved()))
	signature, err := base64.StdEncoding.DecodeString(c.blobs[name+".sig"])
	if err != nil || !authority.Signed(dataplane.Statement("prod", name, sum[:]), signature) {
		t.Errorf("the signature is %q: %v", c.blobs[name+".sig"], err)
	}
	h.write("sent.db", saved()+"x", 0o600)
	if _, out, err := h.run("backup"); err == nil || !strings.Contains(out, "the backup is damaged") || c.blobs["etcd/latest"] != name {
		t.Errorf("a damaged backup: %v %s", err, out)
	}
}

// TestPrune checks that the newest backups stay, and other blobs, and that nothing is deleted while a restore goes on.
func TestPrune(t *testing.T) {
	c := newCloud(t)
	h := newHost(t, c, "vm-a", "control-plane")
	prune := func(keep string) string {
		t.Helper()
		_, out, _ := h.run("prune " + keep)
		return out
	}
	fill := func() {
		clear(c.blobs)
		for _, name := range []string{"20260102T030405Z-5", "20260102T040405Z-100", "20260102T050405Z-20", "20260101T050405Z-900"} {
			c.blobs["etcd/"+name+".db"], c.blobs["etcd/"+name+".db.sig"] = "x", "s"
		}
		c.blobs["etcd/latest"], c.blobs["etcd/mine.db"] = "etcd/20260102T050405Z-20.db", "x"
	}
	fill()
	if out := prune("0"); out != "" || len(c.blobs) != 10 {
		t.Errorf("keep all: %s %v", out, c.blobs)
	}
	out := prune("2")
	want := []string{"etcd/20260102T040405Z-100.db", "etcd/20260102T040405Z-100.db.sig", "etcd/20260102T050405Z-20.db",
		"etcd/20260102T050405Z-20.db.sig", "etcd/latest", "etcd/mine.db"}
	if got := slices.Sorted(maps.Keys(c.blobs)); !slices.Equal(got, want) {
		t.Errorf("%s\n%v", out, got)
	}
	fill()
	c.blobs["restore"] = "etcd/20260102T030405Z-5.db"
	if out := prune("1"); !strings.Contains(out, "a restore has begun") || len(c.blobs) != 11 {
		t.Errorf("during a restore: %s %v", out, c.blobs)
	}
}

// TestDownloads checks scenario 46: a machine downloads the files of Extensions that are at a URL. A file with another
// checksum stops the boot, and is not written.
func TestDownloads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	t.Cleanup(server.Close)
	c := newCloud(t)
	for _, text := range []string{"/tool", "/another"} {
		h := newHost(t, c, "vm-a", "node")
		h.write("etc/kaz/downloads", fmt.Sprintf("%x 0750 %s/tool /opt/my tools/tool\n", sha256.Sum256([]byte(text)), server.URL), 0o600)
		_, report, err := h.boot()
		got, readErr := os.ReadFile(filepath.Join(h.root, "opt/my tools/tool"))
		if text == "/tool" {
			info, statErr := os.Stat(filepath.Join(h.root, "opt/my tools/tool"))
			if err != nil || readErr != nil || statErr != nil || string(got) != text || info.Mode() != 0o750 {
				t.Errorf("%v %v %v: %q\n%s", err, readErr, statErr, got, report)
			}
			continue
		}
		if want := `"phase": "downloads", "code": 31`; err == nil || readErr == nil || !strings.Contains(report, want) ||
			!strings.Contains(report, "another checksum than the Extension says") {
			t.Errorf("%v, got %s, want %s; the file has %q", err, report, want, got)
		}
	}
}

// TestUpgradeScript runs the script of a run command. The machine gets this boot script and the version, and kubeadm upgrades
// the control plane. The report says how the upgrade ended.
func TestUpgradeScript(t *testing.T) {
	h := newHost(t, newCloud(t), "vm-a", "control-plane")
	h.write("usr/local/lib/kaz/bootstrap.sh", "exit 1 # of an earlier kaz\n", 0o755)
	h.write("upgrade.sh", UpgradeScript(definition.Definition{}, "1.37.1"), 0o755)
	for _, program := range []string{"kubelet", "kubectl", "kubeadm"} {
		h.write("bin/"+program, fmt.Sprintf(`#!/bin/sh
case "$*" in
  *ersion*) echo Kubernetes v1.37.1 ;;
  "upgrade node"*) echo "%[1]s upgrade node" >> "$KAZ_ROOT/calls"; [ ! -e "$KAZ_ROOT/broken" ] || { echo "etcd does not start"; exit 1; } ;;
  *) echo "%[1]s $1 $2 $3 $4" >> "$KAZ_ROOT/calls" ;;
esac
`, program), 0o755)
	}
	// The machine booted from a mirror, and with known checksums.
	settings, err := os.ReadFile(filepath.Join(h.root, "etc/kaz/node.env"))
	if err != nil {
		t.Fatal(err)
	}
	h.write("etc/kaz/node.env", regexp.MustCompile(`(?m)^KAZ_OFFICIAL=.*\n`).ReplaceAllString(string(settings), ""), 0o600)
	// The binding with which any node's certificate is approved is looked for, and deleted.
	unbind := strings.Repeat("kubectl --kubeconfig "+h.root+"/etc/kubernetes/admin.conf --request-timeout 10s\n", 2)
	for _, test := range []struct {
		want  Report
		calls string
	}{
		{Report{Phase: "complete"}, "systemctl daemon-reload\nsystemctl enable -q kubelet\nkubeadm upgrade node\nsystemctl daemon-reload\n" +
			"systemctl restart kubelet\nkubeadm upgrade apply phase bootstrap-token\nkubeadm upgrade apply phase bootstrap-token\n" + unbind},
		{Report{Failed: true, Phase: "upgrade", Message: "etcd does not start"}, "systemctl daemon-reload\nsystemctl enable -q kubelet\n" +
			"kubeadm upgrade node\n"},
	} {
		calls, out, err := h.script("upgrade.sh")
		got, said := LastReport(out)
		if diff := cmp.Diff(test.want, got); !said || diff != "" || (err != nil) != test.want.Failed {
			t.Errorf("%v %s\n%s", err, diff, out)
		}
		if diff := cmp.Diff(test.calls, calls); diff != "" {
			t.Error(diff)
		}
		h.touch("broken")
	}
	env, err := os.ReadFile(filepath.Join(h.root, "etc/kaz/node.env"))
	if err != nil || !strings.Contains(string(env), "KAZ_VERSION=1.37.1\n") {
		t.Errorf("%v %s", err, env)
	}
	// No checksum of this version is known, so a mirror is not believed before the project has been asked.
	if strings.Count(string(env), "KAZ_OFFICIAL='https://dl.k8s.io'\n") != 1 {
		t.Errorf("the project's own checksums are not asked for: %s", env)
	}
	if _, said := LastReport("Enable succeeded: \n[stdout]\n\n[stderr]\n"); said {
		t.Error("a script that did not run has a report")
	}
}

// TestRenew checks scenario 43 on one machine: certificates that expire within 30 days are renewed, and the static pods restart.
func TestRenew(t *testing.T) {
	h := newHost(t, newCloud(t), "vm-a", "control-plane")
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		h.write("etc/kubernetes/manifests/"+name+".yaml", name, 0o600)
	}
	h.write("bin/pgrep", "#!/bin/sh\necho \"pgrep $*\" >> \"$KAZ_ROOT/calls\"\nexit 1\n", 0o755)
	h.write("bin/openssl", "#!/bin/sh\n[ ! -e \"$KAZ_ROOT/old\" ]\n", 0o755)
	h.write("bin/kubeadm", "#!/bin/sh\necho \"kubeadm $*\" >> \"$KAZ_ROOT/calls\"\n", 0o755)
	if calls, _, err := h.run("renew"); err != nil || calls != "" {
		t.Errorf("new certificates are renewed: %v %s", err, calls)
	}
	h.touch("old")
	calls, out, err := h.run("renew")
	if err != nil || !strings.HasPrefix(calls, "kubeadm certs renew all\npgrep -f ^etcd \npgrep -f ^kube-apiserver \n") {
		t.Errorf("%v %s\n%s", err, out, calls)
	}
	if text, err := os.ReadFile(filepath.Join(h.root, "etc/kubernetes/manifests/etcd.yaml")); err != nil || string(text) != "etcd" {
		t.Errorf("the manifest of etcd did not come back: %v %s", err, text)
	}
}

// TestBalancerOfServices checks that Services are at the load balancer in which nodes are from their creation, and that their rules
// give no outbound traffic.
func TestBalancerOfServices(t *testing.T) {
	for kind, want := range map[string]any{"LoadBalancer": "prod-out-lb", "NATGateway": nil, "None": nil} {
		var d definition.Definition
		d.Cluster.Metadata.Name, d.Cluster.Spec.Network.Outbound.Type = "prod", kind
		c := CloudConfig(d)
		if c["loadBalancerName"] != want || c["disableOutboundSNAT"] != true {
			t.Errorf("%s: the load balancer is %v, want %v, and disableOutboundSNAT %v", kind, c["loadBalancerName"], want, c["disableOutboundSNAT"])
		}
	}
}
