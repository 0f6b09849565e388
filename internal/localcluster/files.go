package localcluster

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/host/atomicfile"
	"kaz/internal/localazure/client"
	"kaz/internal/localcluster/controlplane"
)

// Files for clients in a cluster's directory.
const (
	cloudConfigFile = "azure.json"
	definitionFile  = "definition.yaml" // of a cluster of the cluster engine that was made without one
	environmentFile = "env.sh"
	kubeconfigFile  = "kubeconfig"
)

// writeClientFiles writes the configuration of clients of the cluster's Azure. cloudConfig is the content of azure.json.
func (c *cluster) writeClientFiles(cloudConfig map[string]any) error {
	if err := atomicfile.WriteJSON(c.path(cloudConfigFile), cloudConfig); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# The environment of clients of this cluster and its Azure: . " + environmentFile + "\n")
	env := clientEnvironment(c.azure.Info(), c.group.Dir())
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, quote(env[name]))
	}
	b.WriteString("# the cluster and the Azure of kaz commands without --dir\n")
	fmt.Fprintf(&b, "export %s=%s\n", client.DirVariable, quote(c.group.Dir()))
	b.WriteString("# kubectl and kaz\n")
	path := filepath.Dir(c.binaries[controlplane.Kubectl]) + ":" + filepath.Dir(c.Program)
	fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", quote(path))
	return atomicfile.Write(c.path(environmentFile), []byte(b.String()), 0o600)
}

// quote returns a text as one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// clientEnvironment returns the environment variables by which clients log in to the local Azure and to the cluster.
func clientEnvironment(info client.Info, dir string) map[string]string {
	return map[string]string{
		"IDENTITY_ENDPOINT": info.IdentityEndpoint,
		"IDENTITY_HEADER":   info.IdentityHeader,
		"SSL_CERT_FILE":     info.CAFile,
		"KUBECONFIG":        filepath.Join(dir, kubeconfigFile),
	}
}
