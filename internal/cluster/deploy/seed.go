package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/cluster"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/units"
)

// seed has the secrets of a new cluster that a deployment writes. Secrets are made once: another certificate authority or key of
// service accounts locks every node and client out. So only the absence of a secret in the key vault lets kaz make it, and only before the
// cluster has machines.
type seed struct {
	// parameters are the parameters of the secrets that are absent.
	parameters []string
	// kept are the names of those that exist.
	kept []string
}

func (s seed) empty() bool { return len(s.parameters) == 0 }

// absentSecrets finds the secrets to make. unchanged says that the deployment does not touch the key vault.
func absentSecrets(ctx context.Context, st record.Store, p cluster.Plan, s record.State, unchanged bool) (seed, error) {
	machines := s.Machines(p.Names)
	if unchanged && len(machines) > 0 {
		return seed{}, nil
	}
	var found seed
	vault := p.Names.VaultID()
	there, err := st.Exists(ctx, vault)
	if err != nil {
		return found, err
	}
	secrets := units.SecretsOf(p.Definition)
	for _, parameter := range slices.Sorted(maps.Keys(secrets)) {
		name := p.Names.Secret(secrets[parameter])
		has := false
		if there {
			if has, err = st.Exists(ctx, vault.Child("secrets", name)); err != nil {
				return found, err
			}
		}
		if has {
			found.kept = append(found.kept, name)
		} else {
			found.parameters = append(found.parameters, parameter)
		}
	}
	if found.empty() {
		return found, nil
	}
	if len(machines) == 0 {
		if machines, err = findMachines(ctx, st, p, s); err != nil {
			return found, err
		}
	}
	if len(machines) > 0 {
		return found, lost(p, found, there, machines)
	}
	return found, nil
}

// lost is the error about secrets that a cluster with machines lacks.
func lost(p cluster.Plan, found seed, vault bool, machines []string) error {
	name := p.Names.Vault()
	running := fmt.Sprintf("cluster %s has machines (%s), and another authority or key would lock them out", p.Names.Cluster,
		strings.Join(machines, ", "))
	if !vault {
		return fmt.Errorf("key vault %s of the cluster's secrets does not exist, and %s: restore it: az keyvault recover --name %s", name,
			running, name)
	}
	var absent, remedy []string
	for _, parameter := range found.parameters {
		secret := p.Names.Secret(units.Secrets()[parameter])
		absent = append(absent, secret)
		remedy = append(remedy, fmt.Sprintf("az keyvault secret recover --vault-name %s --name %s", name, secret))
	}
	return fmt.Errorf("key vault %s lacks %s, and %s: restore it, from a copy or with:\n%s", name, strings.Join(absent, ", "), running,
		strings.Join(remedy, "\n"))
}

// findMachines finds machines of a cluster that the lists lack: by the list of Compute, and by a read of each planned one.
func findMachines(ctx context.Context, st record.Store, p cluster.Plan, s record.State) ([]string, error) {
	if s.Group == nil {
		return nil, nil
	}
	listed, err := st.Machines(ctx, p.Names)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, one := range listed {
		if strings.EqualFold(one.Tags[naming.ClusterTag], p.Names.Cluster) {
			all = append(all, one.ID.Name())
		}
	}
	for index := range p.Definition.Cluster.Spec.ControlPlane.Replicas {
		name := p.Names.Member(index, s.Generations()[index])
		there, err := st.Exists(ctx, p.Names.Group().Resource(record.MachineType, name))
		if err != nil {
			return nil, err
		}
		if there && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all, nil
}

// secrets makes the secrets that are absent. It returns a kubeconfig if the certificate authority is among them.
func (d Deployer) secrets(ctx context.Context, p cluster.Plan, absent seed) (parameters map[string]string, kubeconfig []byte, err error) {
	made, err := pki.New(d.Clock())
	if err != nil {
		return nil, nil, err
	}
	all := units.Secrets()
	isNew := func(secret string) bool {
		return slices.ContainsFunc(absent.parameters, func(parameter string) bool { return all[parameter] == secret })
	}
	if !isNew("pki-ca") && isNew("bootstrap-token") { // machines join with the token and the hash of the authority
		if made.CA, err = d.authority(ctx, p.Names); err != nil {
			return nil, nil, err
		}
	}
	if parameters, err = made.Parameters(); err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(parameters, func(name, _ string) bool { return !slices.Contains(absent.parameters, name) })
	if !isNew("pki-ca") {
		return parameters, nil, nil
	}
	kubeconfig, err = made.CA.Kubeconfig(p.Names.Cluster, Server(p), d.Clock())
	return parameters, kubeconfig, err
}

// authority reads the certificate authority of a cluster.
func (d Deployer) authority(ctx context.Context, n naming.Names) (pki.Authority, error) {
	if d.Planes.Token == nil {
		return pki.Authority{}, errors.New(
			"the join token needs the certificate authority that exists: want the right to read secrets of " +
				"the key vault")
	}
	text, err := d.Planes.Secret(ctx, n.VaultURL(), n.VaultAudience()+"/.default", n.Secret("pki-ca"))
	if err != nil {
		return pki.Authority{}, err
	}
	return pki.Parse([]byte(text))
}
