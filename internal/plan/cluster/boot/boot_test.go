package boot

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"kaz/internal/plan/cluster/definition"
)

func example(t *testing.T, names ...string) definition.Definition {
	t.Helper()
	var layers []definition.Layer
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("../../../../docs/example-manifests/cluster", name))
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
	for _, want := range []string{"name: cloud-provider", "value: kaz/pool=batch,team=a", "effect: NoSchedule", "key: team"} {
		if !strings.Contains(batch["/etc/kaz/kubeadm-join.yaml"].Content, want) {
			t.Errorf("the configuration of the nodes has no %s:\n%s", want, batch["/etc/kaz/kubeadm-join.yaml"].Content)
		}
	}
	for _, want := range []string{"controlPlaneEndpoint: api.prod.kaz.internal:6443", "- 10.224.0.100", "kubernetesVersion: v1.36.3", "- 10.0.0.10"} {
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

// cloud is what a machine reaches while it boots: instance metadata, the key vault and the storage account.
type cloud struct {
	*httptest.Server
	mu      sync.Mutex
	machine string // the unique id of the machine
	refuse  int    // how often the vault refuses, as it does while a role is new
	winner  string // content of the blob
	asked   []string
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{}
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
		if strings.HasSuffix(r.URL.Path, "bootstrap-token") {
			value = `{"token":"abcdef.0123456789abcdef","caCertHash":"sha256:00"}`
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"value": value})
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
	for _, program := range []string{"bash", "curl", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the script needs %s", program)
		}
	}
	h := &host{t: t, root: t.TempDir(), c: c, id: id}
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(h.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"blkid", "mkfs.ext4", "mountpoint", "mount", "swapoff", "modprobe", "sysctl", "apt-get", "systemctl",
		"containerd", "conntrack"} {
		write("bin/"+name, "#!/bin/sh\necho \""+name+" $*\" >> \"$KAZ_ROOT/calls\"\n", 0o755)
	}
	write("bin/dpkg", "#!/bin/sh\necho amd64\n", 0o755)
	write("bin/kubelet", "#!/bin/sh\necho Kubernetes v1.36.3\n", 0o755)
	write("bin/kubectl", "#!/bin/sh\n[ \"$1\" = version ] && { echo Client Version: v1.36.3; exit; }\n"+
		"echo \"kubectl $*\" >> \"$KAZ_ROOT/calls\"\n", 0o755)
	write("bin/kubeadm", `#!/bin/sh
[ "$1" = version ] && { echo v1.36.3; exit; }
echo "kubeadm $1 $4" >> "$KAZ_ROOT/calls"
[ -e "$KAZ_ROOT/broken" ] && { echo "the API server did not start" >&2; exit 1; }
cp "$3" "$KAZ_ROOT/used.yaml"
touch "$KAZ_ROOT/etc/kubernetes/kubelet.conf"
[ "$1" = join ] || touch "$KAZ_ROOT/etc/kubernetes/admin.conf"
`, 0o755)
	// A wrapper that chooses among versions of Python would take most of the time.
	python, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(strings.TrimSpace(string(python)), filepath.Join(h.root, "bin", "python3")); err != nil {
		t.Fatal(err)
	}
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
	for path, f := range written(t, text) {
		content := f.Content
		if path == "/etc/kaz/node.env" {
			content += fmt.Sprintf("KAZ_VAULT_URL=%s\nKAZ_ELECTION_URL=%s/container\n", c.URL, c.URL)
		}
		write(path, content, 0o700)
	}
	return h
}

// boot runs the script, and returns the calls of programs and the report.
func (h *host) boot() (calls, report string, err error) {
	h.t.Helper()
	h.c.machine = h.id
	command := exec.CommandContext(h.t.Context(), "sh", "-c", `export PATH="$1/bin:$PATH" KAZ_ROOT="$1" KAZ_IMDS="$2"
		export KAZ_RETRY_DELAY=0 KAZ_TRIES=5 KAZ_ADDRESS=10.224.0.4
		exec bash "$1/usr/local/lib/kaz/bootstrap.sh"`, "sh", h.root, h.c.URL)
	out, err := command.CombinedOutput()
	h.t.Logf("%s", out)
	text, _ := os.ReadFile(filepath.Join(h.root, "calls"))
	done, _ := os.ReadFile(filepath.Join(h.root, "run/kaz/bootstrap.json"))
	_ = os.Remove(filepath.Join(h.root, "calls"))
	return string(text), string(done), err
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
	used, err := os.ReadFile(filepath.Join(first.root, "used.yaml"))
	if err != nil || strings.Contains(string(used), "@") || !strings.Contains(string(used), "advertiseAddress: '10.224.0.4'") {
		t.Errorf("%v\n%s", err, used)
	}
	if hosts, err := os.ReadFile(filepath.Join(first.root, "etc/hosts")); err != nil || !strings.Contains(string(hosts), "127.0.0.1 api.prod.kaz.internal") {
		t.Errorf("the member does not reach its own API server: %v\n%s", err, hosts)
	}
	for _, secret := range []string{"join.json", "kubeadm.yaml", "bundle", "answer"} {
		if _, err := os.Stat(filepath.Join(first.root, "run/kaz", secret)); !os.IsNotExist(err) {
			t.Errorf("%s stays on the machine", secret)
		}
	}
	if calls, _, err := first.boot(); err != nil || calls != "" {
		t.Errorf("the second run did something: %v\n%s", err, calls)
	}
	for id, role := range map[string]string{"vm-b": "control-plane", "vm-a, made anew": "control-plane", "node": "node"} {
		calls, _, err := newHost(t, c, id, role).boot()
		if err != nil || !strings.Contains(calls, "kubeadm join") || strings.Contains(calls, "kubeadm init") {
			t.Errorf("%s: %v\n%s", id, err, calls)
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
	if err == nil || !strings.Contains(report, `"phase": "keys", "code": 51, "message": "key vault answered 403 for the secret prod-bootstrap-token"`) {
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
