package local

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/local/controlplane"
)

// Files in a cluster's directory.
const (
	cloudConfigFile = "azure.json"
	environmentFile = "env.sh"
	kubeconfigFile  = "kubeconfig"
	memoryFile      = "cluster.json"
	statusFile      = "status.json"
)

// memory is what the next start of a cluster has to know of this one.
type memory struct {
	Site Site `json:"site"`
	// ARM, HTTP and Proxy are the addresses (host:port) of the local Azure.
	ARM   string `json:"arm"`
	HTTP  string `json:"http"`
	Proxy string `json:"proxy"`
	// NodesKind is what nodes the cluster has.
	NodesKind string `json:"nodesKind"`
	// Instance is in the names of the namespaces and cgroups of real nodes.
	Instance string `json:"instance"`
	// Health is the address of the cloud-controller-manager's health and metrics.
	Health string `json:"health"`
}

// newInstance tells this cluster's things from those of others on this machine.
func newInstance() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func (m memory) healthPort() string {
	_, port, _ := net.SplitHostPort(m.Health)
	return port
}

// recall reads a cluster's memory; a new cluster has none.
func recall(path string) (memory, error) {
	var m memory
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s cannot be read (%w); remove the directory to start a new cluster", path, err)
	}
	return m, nil
}

func (m *memory) remember(info AzureInfo) {
	m.ARM, m.HTTP, m.Proxy = hostOf(info.ARM), hostOf(info.ARMHTTP), hostOf(info.Proxy)
}

func hostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// freeAddresses are the remembered addresses as far as they are free, and any free
// port otherwise.
func (m memory) freeAddresses() (arm, http, proxy string, err error) {
	var errs [3]error
	arm, errs[0] = freeAddress(m.ARM)
	http, errs[1] = freeAddress(m.HTTP)
	proxy, errs[2] = freeAddress(m.Proxy)
	return arm, http, proxy, errors.Join(errs[:]...)
}

// freeAddress is the remembered address if it is free, or one on this machine that
// is. Whoever serves it opens it again at once.
func freeAddress(remembered string) (string, error) {
	for _, address := range []string{remembered, "127.0.0.1:0"} {
		if address == "" {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no free port on 127.0.0.1")
}

// writeClientFiles writes what clients of the cluster's Azure are configured with.
func (c *cluster) writeClientFiles(binaries controlplane.Binaries) error {
	if err := writeJSON(c.path(cloudConfigFile), c.memory.Site.cloudConfig(c.azure.Info().ARM)); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# What a client of this cluster and its Azure needs in its environment: . " + environmentFile + "\n")
	env := c.environment()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, quoted(env[name]))
	}
	b.WriteString("# kubectl and kaz\n")
	fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", quoted(filepath.Dir(binaries[controlplane.Kubectl])+":"+filepath.Dir(c.Program)))
	return writeFile(c.path(environmentFile), []byte(b.String()))
}

// quoted is a word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (c *cluster) environment() map[string]string {
	info := c.azure.Info()
	return map[string]string{
		"IDENTITY_ENDPOINT": info.IdentityEndpoint,
		"IDENTITY_HEADER":   info.IdentityHeader,
		"SSL_CERT_FILE":     info.CAFile,
		"KUBECONFIG":        c.path(kubeconfigFile),
	}
}

// clientEnvironment is the whole environment of a component.
func (c *cluster) clientEnvironment() []string {
	var env []string
	for name, value := range c.environment() {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return append(env, "HOME="+c.group.Dir(), "PATH=/usr/local/bin:/usr/bin:/bin")
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}

// replaceFile writes a file that others watch, if it has another content.
func replaceFile(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	return writeFile(path, data)
}

// writeFile replaces a file at once: a reader, or the next start after a crash,
// sees the old content or the new. What is in the directory is its owner's alone.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
