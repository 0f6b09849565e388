package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"

	"kaz/internal/host/atomicfile"
)

// clusterName is the name of the cluster in kubeconfigs.
const clusterName = "kaz"

var fileName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// kubeconfig is a kubeconfig with the fields that a client certificate needs.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Certificate []byte `json:"client-certificate-data"`
		Key         []byte `json:"client-key-data"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// writeKubeconfig issues a client certificate and writes a kubeconfig with it.
func (p *pki) writeKubeconfig(file, name, server, user string, groups []string) error {
	if !fileName.MatchString(name) {
		return fmt.Errorf("kubeconfig name %q: want lower-case letters, digits, dots and dashes", name)
	}
	if user == "" {
		return fmt.Errorf("kubeconfig %s: no user given", name)
	}
	certFile, keyFile, err := p.cluster.issue(filepath.Join("clients", name), request{user: user, groups: groups})
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", name, err)
	}
	var cluster namedCluster
	var client namedUser
	var use namedContext
	cluster.Name, client.Name, use.Name = clusterName, name, name+"@"+clusterName
	cluster.Cluster.Server, use.Context.Cluster, use.Context.User = server, clusterName, name
	for _, part := range []struct {
		file string
		into *[]byte
	}{{p.cluster.file, &cluster.Cluster.CA}, {certFile, &client.User.Certificate}, {keyFile, &client.User.Key}} {
		if *part.into, err = os.ReadFile(part.file); err != nil {
			return fmt.Errorf("kubeconfig %s: %w", name, err)
		}
	}
	data, err := yaml.Marshal(kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: use.Name,
		Clusters: []namedCluster{cluster}, Users: []namedUser{client}, Contexts: []namedContext{use},
	})
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", name, err)
	}
	if err := atomicfile.Write(file, data, 0o600); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", name, err)
	}
	return nil
}
