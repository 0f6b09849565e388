package controlplane

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"sync"

	"sigs.k8s.io/yaml"

	"kaz/internal/host/atomicfile"
)

//go:embed kwok.yaml
var stages []byte

// run is a control plane that starts.
type run struct {
	config Config
	dir    string
	pki    *pki
	ports  ports
	server string
	// etcdClient and serverClient read the health of etcd and of the servers of the cluster.
	etcdClient, serverClient *healthClient
	reporting                sync.Mutex // held during a call of Config.Started
}

// prepare writes the files that the programs read.
func prepare(c Config) (*run, error) {
	r := &run{config: c, dir: c.Processes.Dir()}
	var err error
	if r.pki, err = openPKI(filepath.Join(r.dir, "pki"), c.ServiceCIDRs[0], c.Inside.Addr()); err != nil {
		return nil, err
	}
	if r.ports, err = openPorts(filepath.Join(r.dir, "ports.json")); err != nil {
		return nil, err
	}
	r.server = secureURL(r.ports.APIServer)
	if err := r.writeKubeconfigs(); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(r.stagesFile(), stages, 0o600); err != nil {
		return nil, fmt.Errorf("write the stages of simulated nodes: %w", err)
	}
	if err := r.writeEgress(); err != nil {
		return nil, fmt.Errorf("write the API server's egress configuration: %w", err)
	}
	if r.etcdClient, err = newHealthClient(r.pki.etcd.file, r.pki.etcdClient, r.pki.etcdClientKey); err != nil {
		return nil, err
	}
	admin := filepath.Join(r.pki.dir, "clients", adminName)
	r.serverClient, err = newHealthClient(r.pki.cluster.file, admin+".crt", admin+".key")
	return r, err
}

// adminName names the administrator's certificate and kubeconfig user.
const adminName = "admin"

// masters is the group with all permissions.
const masters = "system:masters"

func (r *run) writeKubeconfigs() error {
	if err := r.pki.writeKubeconfig(r.adminKubeconfig(), adminName, r.server, adminName, []string{masters}); err != nil {
		return err
	}
	for _, c := range []struct {
		name, user string
		groups     []string
	}{
		{ControllerManager, "system:kube-controller-manager", nil},
		{Scheduler, "system:kube-scheduler", nil},
		{KWOK, "kaz:kwok", []string{masters}},
	} {
		if err := r.pki.writeKubeconfig(r.kubeconfigFile(c.name), c.name, r.server, c.user, c.groups); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) adminKubeconfig() string { return filepath.Join(r.dir, "kubeconfig") }

func (r *run) kubeconfigFile(name string) string { return filepath.Join(r.dir, "kubeconfigs", name) }

func (r *run) stagesFile() string { return filepath.Join(r.dir, "kwok", "stages.yaml") }

func (r *run) egressFile() string { return filepath.Join(r.dir, "egress.yaml") }

// writeEgress writes the egress configuration, by which the API server reaches nodes, pods and Services through a proxy.
func (r *run) writeEgress() error {
	if r.config.Egress == "" {
		return nil
	}
	type object = map[string]any
	text, err := yaml.Marshal(object{
		"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
		"egressSelections": []object{{"name": "cluster", "connection": object{
			"proxyProtocol": "HTTPConnect", "transport": object{"uds": object{"udsName": r.config.Egress}},
		}}},
	})
	if err != nil {
		return err
	}
	return atomicfile.Write(r.egressFile(), text, 0o600)
}
