package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"sigs.k8s.io/yaml"

	"kaz/internal/cluster/addon"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localcluster/boot"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/image"
)

// mirrorAddress is the address of this machine as machines of a local Azure see it.
const mirrorAddress = "198.18.0.2"

// TestBootedClosed carries a bundle into a network namespace without a way out, and makes a cluster there. Its machines boot from Debian
// alone: their packages, programs and images come from a web server and a registry with an authority of its own.
func TestBootedClosed(t *testing.T) {
	needsImage(t)
	p := newParcel(t)
	p.pack()
	namespace := fmt.Sprintf("closed-%d", os.Getpid())
	closedNamespace(t, namespace)
	b := &booting{t: t, machines: newDir(t), dir: p.dir, version: p.version, kubectl: p.programs["kubectl"], inside: namespace}
	b.start("--bare")
	m := serveMirror(t, namespace, filepath.Join(p.dir, "www"))
	p.unpack(b, m)
	m.forget()

	began := time.Now()
	b.must(b.kaz("deploy", "base.yaml", "mirror.yaml", "trust.yaml"))
	c := &bootedCluster{booting: b, name: "dev", address: new(string), sum: new(string)}
	c.whole(2, c.version)
	t.Logf("two nodes of the mirror take pods after %s", short(time.Since(began)))
	c.must(c.run(mirroredPods(m.name), "apply", "-f", "-"))
	c.must(c.run("", "rollout", "status", "deployment/web", "--timeout=3m"))
	c.must(c.run("", "rollout", "status", "statefulset/keeper", "--timeout=3m"))
	c.must(c.run("", "exec", "keeper-0", "--", "/box", "fill", "/data/file", "1"))
	c.answersInside("web")
	c.monitored(m.name, 2)
	c.allFrom(m)
	c.change("backup", c.name)
	c.wellAfter("the installation")
}

// parcel is what a bundle is made of, on a machine with the internet.
type parcel struct {
	t            *testing.T
	dir, version string
	programs     controlplane.Binaries
}

func newParcel(t *testing.T) *parcel {
	t.Helper()
	releases, err := controlplane.Releases()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := controlplane.Build(t.Context(), controlplane.BuildOptions{Without: []string{controlplane.KWOK}})
	if err != nil {
		t.Fatal(err)
	}
	return &parcel{t, t.TempDir(), releases[0], programs}
}

// write writes a file of the parcel.
func (p *parcel) write(name string, text []byte) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// do runs a command in the parcel's folder and returns its standard output.
func (p *parcel) do(cmd *exec.Cmd) []byte {
	p.t.Helper()
	var problems strings.Builder
	cmd.Dir, cmd.Stderr = p.dir, &problems
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s%s", cmd, err, out, problems.String())
	}
	p.t.Logf("%.100s in %s", strings.Join(cmd.Args, " "), short(time.Since(began)))
	return out
}

// pack makes the bundle: the programs and images of a release, the add-ons, kaz's own images, and the packages of Debian that a bare
// machine does not have.
func (p *parcel) pack() {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("bundle.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	p.write("bundle.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	args := []string{"bundle", "create", "kaz.bundle", "--key", "bundle.key", "--platform", "linux/" + runtime.GOARCH,
		"--kubernetes", p.version, "--programs", "programs", "--checksums", "sums.txt"}
	var sums strings.Builder
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		text := readFile(p.t, p.programs[name])
		path := fmt.Sprintf("v%s/bin/linux/%s/%s", p.version, runtime.GOARCH, name)
		p.write("programs/"+path, text)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), path)
	}
	p.write("sums.txt", []byte(sums.String()))
	catalogue, tree := p.trees()
	archives := p.images(tree)
	for _, archive := range archives {
		args = append(args, "--image", archive)
	}
	for _, file := range p.packages(catalogue, tree) {
		args = append(args, "--package", file)
	}
	p.do(exec.CommandContext(p.t.Context(), kaz(), args...))
	p.remove(archives...)
}

// remove removes files that are no longer needed: each has the whole cluster in it.
func (p *parcel) remove(files ...string) {
	p.t.Helper()
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			p.t.Fatal(err)
		}
	}
}

// trees returns the trees of Debian without and with what a node of Kubernetes needs.
func (p *parcel) trees() (bare, whole string) {
	p.t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		p.t.Fatal(err)
	}
	images := boot.Catalogue{Dir: filepath.Join(cache, "kaz", "images"), Say: func(line string) { p.t.Log(line) }}
	var all []string
	for _, make := range []func() (boot.Image, error){
		func() (boot.Image, error) { return images.Bare(p.t.Context()) },
		func() (boot.Image, error) { return images.Debian(p.t.Context()) },
	} {
		made, err := make()
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, made.Layers[len(made.Layers)-1])
	}
	return all[0], all[1]
}

// images returns archives with the images of a cluster and of workloads.
func (p *parcel) images(tree string) []string {
	p.t.Helper()
	box, err := image.Box(p.t.Context(), image.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	programs := map[string]string(maps.Clone(p.programs))
	programs["pause"] = box
	content := boot.Content{Kaz: kaz(), Addons: addon.Images("localhost/kaz", "devel"), Programs: map[string]string{},
		Releases: []boot.Release{{Programs: programs}}}
	for _, name := range controlplane.StoragePrograms() {
		content.Programs[name] = p.programs[name]
	}
	all, own, err := content.Images(p.t.Context(), tree)
	if err != nil {
		p.t.Fatal(err)
	}
	examples, err := image.Make(p.t.Context(), image.Options{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	archives := []string{examples, prometheusArchive(p.t)}
	for i, program := range append(all, own) {
		file := filepath.Join(p.dir, fmt.Sprintf("image-%d.tar", i))
		if err := program.Write(file); err != nil {
			p.t.Fatal(err)
		}
		archives = append(archives, file)
	}
	return archives
}

// packages downloads the packages that a tree has and another one has not.
func (p *parcel) packages(bare, whole string) []string {
	p.t.Helper()
	installed := func(tree string) []string {
		out := p.do(exec.CommandContext(p.t.Context(), "dpkg-query", "--admindir", filepath.Join(tree, "var/lib/dpkg"), "--show",
			"--showformat", "${Package}\n"))
		return strings.Fields(string(out))
	}
	has := installed(bare)
	absent := slices.DeleteFunc(installed(whole), func(name string) bool { return slices.Contains(has, name) })
	p.do(exec.CommandContext(p.t.Context(), "apt-get", append([]string{"-o", "APT::Sandbox::User=root", "download"}, absent...)...))
	files, err := filepath.Glob(filepath.Join(p.dir, "*.deb"))
	if err != nil || len(files) != len(absent) {
		p.t.Fatalf("%d files of the packages %v: %v", len(files), absent, err)
	}
	return files
}

// unpack verifies the bundle in the namespace, loads it, and writes the definition of a cluster that takes all from the mirror.
func (p *parcel) unpack(b *booting, m *mirror) {
	p.t.Helper()
	p.write("corp.pem", m.authority)
	p.do(b.program(kaz(), "bundle", "verify", "kaz.bundle", "--key", "bundle.pub"))
	p.do(b.program(kaz(), "bundle", "load", "kaz.bundle", "--key", "bundle.pub", "--registry", m.name, "--ca-file", "corp.pem"))
	p.do(b.program(kaz(), "bundle", "load", "kaz.bundle", "--key", "bundle.pub", "--dir", "www"))
	layer := p.do(b.program(kaz(), "bundle", "layer", "kaz.bundle", "--key", "bundle.pub", "--cluster", "dev", "--registry", m.name,
		"--files", "https://"+m.host))
	trust, err := yaml.Marshal(map[string]any{"apiVersion": "cluster.kaz/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": "dev"},
		"spec": map[string]any{"machines": map[string]any{"certificateAuthorities": string(m.authority)}}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.remove(filepath.Join(p.dir, "kaz.bundle"))
	definition := regexp.MustCompile(`(?m)^  addons: .*$`).ReplaceAllString(example(p.t, "dev.yaml"), "")
	p.write("base.yaml", []byte(definition))
	p.write("mirror.yaml", layer)
	p.write("trust.yaml", trust)
}

// closedNamespace makes a network namespace with a loopback interface alone, for the time of the test.
func closedNamespace(t *testing.T, name string) {
	t.Helper()
	if err := netns.Create(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Remove(name); err != nil {
			t.Error(err)
		}
	})
	if out, err := exec.CommandContext(t.Context(), "ip", "-netns", name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("loopback: %v: %s", err, out)
	}
	routes, err := exec.CommandContext(t.Context(), "ip", "-netns", name, "route").CombinedOutput()
	if err != nil || len(routes) > 0 {
		t.Fatalf("ways out of the namespace: %v\n%s", err, routes)
	}
}

// mirror is a registry and a web server in a namespace, with a certificate of an authority of their own.
type mirror struct {
	// host is the address, and name that of the registry with a path.
	host, name string
	authority  []byte
	lock       sync.Mutex
	asked      map[string]bool // paths of manifests, of which machines ask for those by a tag before they pull
}

// serveMirror serves an empty registry, and the files of a folder.
func serveMirror(t *testing.T, namespace, dir string) *mirror {
	t.Helper()
	m := &mirror{asked: map[string]bool{}}
	certificate := m.issue(t)
	var listener net.Listener
	if err := netns.Do(namespace, func() (err error) {
		listener, err = tls.Listen("tcp", ":0", &tls.Config{Certificates: []tls.Certificate{certificate}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	m.host = net.JoinHostPort(mirrorAddress, port)
	m.name = m.host + "/kaz"
	images, files := registry.New(registry.Logger(log.New(io.Discard, "", 0))), http.FileServer(http.Dir(dir))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v2/") {
			files.ServeHTTP(w, r)
			return
		}
		if strings.Contains(r.URL.Path, "/manifests/") {
			m.lock.Lock()
			m.asked[r.URL.Path] = true
			m.lock.Unlock()
		}
		images.ServeHTTP(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return m
}

// forget forgets what was asked before the machines boot.
func (m *mirror) forget() {
	m.lock.Lock()
	defer m.lock.Unlock()
	clear(m.asked)
}

// issue makes an authority, and a certificate for the mirror.
func (m *mirror) issue(t *testing.T) tls.Certificate {
	t.Helper()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "corp"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "mirror"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(mirrorAddress)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	keys := [2]*ecdsa.PrivateKey{}
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &keys[0].PublicKey, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.CreateCertificate(rand.Reader, leaf, authority, &keys[1].PublicKey, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	m.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	return tls.Certificate{Certificate: [][]byte{own}, PrivateKey: keys[1]}
}

// mirroredPods are the pods of other tests, with images of a registry.
func mirroredPods(registry string) string {
	return strings.NewReplacer("kaz.local/", registry+"/", "imagePullPolicy: Never", "imagePullPolicy: Always").Replace(bootedPods)
}

// answersInside waits until a Service answers in the namespace of the local Azure.
func (c *bootedCluster) answersInside(service string) {
	c.t.Helper()
	wait(c.t, 3*time.Minute, "an answer of the Service", func() string {
		address, err := c.run("", "get", "service", service, "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
		if err != nil || address == "" {
			return "no address " + address
		}
		out, err := c.program("curl", "-sS", "--max-time", "2", "http://"+address+"/").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "pod web-") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// allFrom checks that each container runs an image of the mirror, and that a machine asked for each of these there.
func (c *bootedCluster) allFrom(m *mirror) {
	c.t.Helper()
	var pods struct {
		Items []struct {
			Spec struct{ InitContainers, Containers []struct{ Image string } }
		}
	}
	if err := json.Unmarshal([]byte(c.must(c.run("", "get", "pods", "-A", "-o", "json"))), &pods); err != nil {
		c.t.Fatal(err)
	}
	used := map[string]bool{}
	for _, pod := range pods.Items {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			used[container.Image] = true
		}
	}
	const most = 10
	if len(used) < most {
		c.t.Errorf("the cluster runs %d images, want at least %d", len(used), most)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	for image := range used {
		path, here := strings.CutPrefix(image, m.host+"/")
		repository, tag, _ := strings.Cut(path, ":")
		if !here || !m.asked["/v2/"+repository+"/manifests/"+tag] {
			c.t.Errorf("a container runs %s: want an image that a machine has from %s", image, m.host)
		}
	}
	c.t.Logf("%d images, all of %s", len(used), m.host)
}
