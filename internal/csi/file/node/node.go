package node

import (
	"context"
	"log/slog"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/singleflight"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/csi/mount"
	"kaz/internal/plan/share"
)

// Mounter mounts shares. Credentials are empty if the mount needs none.
type Mounter interface {
	Mount(ctx context.Context, m share.Mount, target string, c file.Credentials) error
}

// Config is the configuration of the node service.
type Config struct {
	Driver  string // name of the driver
	Node    string // name of the node
	Cluster share.Cluster
	Mounter Mounter
	Mounts  *mount.Mounts
	// Options returns the type and the options of the file system at a path. It is [mount.Options] if it is nil.
	Options func(path string) (fsType string, options []string, err error)
	// Key reads the key of an account from Azure. It is nil without a cloud configuration.
	Key func(ctx context.Context, account azure.ID, newest bool) (secret.Text, error)
	// Refused is told a key of Key that the file server refuses. After it, Key reads the keys of the account again. It may be nil.
	Refused func(account azure.ID, key secret.Text)
	// Secret reads the values of a Secret. It is nil without a cluster.
	Secret func(ctx context.Context, namespace, name string) (map[string]string, error)
	// Files opens the file service of an account, for folders that have to be created.
	Files file.Files
	// Tickets gets what the kernel needs to mount with an identity.
	Tickets Tickets
	// Authorize returns an error unless a service account may read a Secret. It is nil if that is not checked.
	Authorize func(ctx context.Context, namespace, account, secret string) error
	Defaults  share.Defaults
	// Permissions is the mode of the root of NFS volumes that name none, 0 for what the server has.
	Permissions uint32
	// GroupChange is the policy of volumes that name none.
	GroupChange string
	// InlineKeys lets inline volumes get the key of their account from Azure with the node's identity.
	InlineKeys bool
	// MountGroup and Stats offer file system groups and statistics.
	MountGroup, Stats bool
	Log               *slog.Logger // nil is slog.Default
}

// Node is the node service.
type Node struct {
	csispec.UnimplementedNodeServer
	config Config
	locks  csi.Locks
	usage  singleflight.Group // statistics by path
}

var _ csispec.NodeServer = (*Node)(nil)

// New returns the node service of a driver.
func New(c Config) *Node {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Options == nil {
		c.Options = mount.Options
	}
	return &Node{config: c}
}

// NodeGetCapabilities returns what the node service can do.
func (n *Node) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	kinds := []csispec.NodeServiceCapability_RPC_Type{
		csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if n.config.MountGroup {
		kinds = append(kinds, csispec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	}
	if n.config.Stats {
		kinds = append(kinds, csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS)
	}
	answer := &csispec.NodeGetCapabilitiesResponse{}
	for _, kind := range kinds {
		answer.Capabilities = append(answer.Capabilities, &csispec.NodeServiceCapability{Type: &csispec.NodeServiceCapability_Rpc{
			Rpc: &csispec.NodeServiceCapability_RPC{Type: kind},
		}})
	}
	return answer, nil
}

// NodeGetInfo returns the name of the node. Shares can be mounted anywhere.
func (n *Node) NodeGetInfo(context.Context, *csispec.NodeGetInfoRequest) (*csispec.NodeGetInfoResponse, error) {
	return &csispec.NodeGetInfoResponse{NodeId: n.config.Node}, nil
}

// volume is a volume that is to be mounted.
type volume struct {
	id         string
	parameters share.Parameters
	account    azure.ID
	name       string // of the share
	options    []string
	group      string // file system group
	readOnly   bool
	secrets    map[string]string
	token      secret.Text // of the pod's service account
	azureKey   bool        // the key was read from Azure
}

// mountAtMost bounds a mount.
const mountAtMost = 90 * time.Second
