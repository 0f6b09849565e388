package controlplane

import (
	"context"
	"fmt"
)

// ControlPlane is a running cluster. Its processes end with the group that runs them.
type ControlPlane struct {
	// Server is the URL of the API server.
	Server string
	// Kubeconfig is the administrator's kubeconfig: the file kubeconfig in the directory.
	Kubeconfig string
	// CAFile is the certificate of the cluster's authority.
	CAFile string
	// ServiceAccountKeyFile is the public key that verifies service account tokens.
	ServiceAccountKeyFile string

	run *run
}

// Start runs the control plane in the directory of the group and returns when it is ready. A used directory keeps its
// state, its keys, and those addresses that have free ports. After a failure the started programs run until the group
// closes.
func Start(ctx context.Context, c Config) (*ControlPlane, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	r, err := prepare(c)
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	if err := r.start(ctx); err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	return &ControlPlane{
		Server:                r.server,
		Kubeconfig:            r.adminKubeconfig(),
		CAFile:                r.pki.cluster.file,
		ServiceAccountKeyFile: r.pki.accountPublic,
		run:                   r,
	}, nil
}

// IssueInsideKubeconfig is [ControlPlane.IssueKubeconfig] for a client inside a node, which reaches the API server at
// [Config.Inside].
func (c *ControlPlane) IssueInsideKubeconfig(name, user string, groups ...string) (string, error) {
	file := c.run.kubeconfigFile(name)
	return file, c.run.pki.writeKubeconfig(file, name, "https://"+c.run.config.Inside.String(), user, groups)
}

// IssueKubeconfig returns the file of a kubeconfig with a client certificate that names a user and groups. A later start of the
// cluster returns the same identity.
func (c *ControlPlane) IssueKubeconfig(name, user string, groups ...string) (string, error) {
	file := c.run.kubeconfigFile(name)
	if err := c.run.pki.writeKubeconfig(file, name, c.Server, user, groups); err != nil {
		return "", err
	}
	return file, nil
}
