package localcluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"kaz/internal/host/freeport"
	"kaz/internal/localcluster/realnodes"
	"kaz/internal/localcluster/site"
)

// recordFile is the file of a [startRecord].
const recordFile = "cluster.json"

// startRecord is what the next start of a cluster needs to know.
type startRecord struct {
	Site site.Site `json:"site,omitzero"`
	// ARM, HTTP and Proxy are the addresses (host:port) of the local Azure.
	ARM   string `json:"arm"`
	HTTP  string `json:"http"`
	Proxy string `json:"proxy"`
	// NodesKind is the kind of the cluster's nodes.
	NodesKind string `json:"nodesKind"`
	// Release is the release of Kubernetes if it was chosen, and the nodes are not [NodesBooted].
	Release string `json:"release,omitempty"`
	// Cluster is the cluster if its nodes are [NodesBooted]. It has no site.
	Cluster clusterRecord `json:"cluster,omitzero"`
	// Instance is part of the names of the namespaces and cgroups of real nodes.
	Instance string `json:"instance"`
	// Health is the address of the cloud-controller-manager's health and metrics.
	Health string `json:"health"`
}

// newInstance returns a random name that tells this cluster from the others on this machine.
func newInstance() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// readRecord reads the record in a directory, a zero record for a new cluster.
func readRecord(dir string) (startRecord, error) {
	var r startRecord
	path := filepath.Join(dir, recordFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s cannot be read (%w); remove the directory to start a new cluster", path, err)
	}
	return r, nil
}

// isNew reports whether the cluster has no resources yet.
func (r startRecord) isNew() bool { return len(r.Site.ScaleSets) == 0 }

// nodesKind returns the kind of the existing nodes, "" for a new cluster. Clusters from before the choice are hollow.
func (r startRecord) nodesKind() string {
	if r.NodesKind == "" && !r.isNew() {
		return NodesHollow
	}
	return r.NodesKind
}

func (r startRecord) healthPort() string {
	_, port, _ := net.SplitHostPort(r.Health)
	return port
}

// chooseAddresses replaces each address that is missing or taken by a free one.
func (r *startRecord) chooseAddresses() error {
	all := []*string{&r.ARM, &r.HTTP, &r.Proxy, &r.Health}
	wanted := make([]string, len(all))
	for i, address := range all {
		wanted[i] = cmp.Or(*address, "127.0.0.1:0")
	}
	chosen, err := freeport.Choose(wanted...)
	if err != nil {
		return err
	}
	for i, address := range chosen {
		*all[i] = address
	}
	return nil
}

// sweep removes what a killed Up left of real nodes. The processes have ended with it.
func (r startRecord) sweep(ctx context.Context) error {
	if r.NodesKind == NodesHollow || r.NodesKind == "" || r.Instance == "" {
		return nil
	}
	return realnodes.Sweep(ctx, r.Instance)
}
