package disk

import (
	"context"
	"log/slog"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"kaz/internal/azure"
	"kaz/internal/plan/disk"
)

// DefaultName is the name of the driver in persistent volumes and storage classes.
const DefaultName = "disk.csi.azure.com"

// Azure is what the driver needs of Azure. Get reads the resource itself, not a cached one.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Nodes finds the machines of nodes.
type Nodes interface {
	// Machine returns the id of a node's machine. The error of an unknown node is of the kind NotFound.
	Machine(ctx context.Context, node string) (azure.ID, error)
	// Node returns the name of a machine's node, "" if it is not known.
	Node(ctx context.Context, machine azure.ID) string
}

// Config is the configuration of a driver.
type Config struct {
	Name, Version string
	Cluster       disk.Cluster
	Azure         Azure
	Nodes         Nodes
	// Uses tells which disks Kubernetes wants where. Without it no disk is taken from another machine.
	Uses Uses
	// Limit returns the number of data disks that a machine of a size can have, 0 if that is not known.
	Limit func(ctx context.Context, size string) int
	// OnlineResize lets attached disks grow. ListVolumes offers lists of volumes and snapshots.
	OnlineResize, ListVolumes bool
	// ConvertCaching attaches volumes of the in-tree driver with a read-only cache if they ask for a cache for reads and
	// writes.
	ConvertCaching bool
	// Batches is told how long each change of a batch of attachments and detachments has waited. It may be nil.
	Batches func(waits []time.Duration)
	// Ready returns why the driver cannot serve yet. It may be nil.
	Ready func(context.Context) error
	Log   *slog.Logger
}

// Identity is the identity service of the driver.
type Identity struct {
	csispec.UnimplementedIdentityServer
	Config Config
}

// GetPluginInfo returns the name and version of the driver.
func (i *Identity) GetPluginInfo(context.Context, *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	return &csispec.GetPluginInfoResponse{Name: i.Config.Name, VendorVersion: i.Config.Version}, nil
}

// Probe reports whether the driver is ready. While it is not, sidecars wait, and livenessprobe fails.
func (i *Identity) Probe(ctx context.Context, _ *csispec.ProbeRequest) (*csispec.ProbeResponse, error) {
	if i.Config.Ready != nil {
		if err := i.Config.Ready(ctx); err != nil {
			i.Config.Log.WarnContext(ctx, "the driver is not ready", "error", err)
			return &csispec.ProbeResponse{Ready: wrapperspb.Bool(false)}, nil
		}
	}
	return &csispec.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// GetPluginCapabilities returns the capabilities of the whole driver.
func (i *Identity) GetPluginCapabilities(context.Context, *csispec.GetPluginCapabilitiesRequest) (
	*csispec.GetPluginCapabilitiesResponse, error,
) {
	var all []*csispec.PluginCapability
	for _, kind := range []csispec.PluginCapability_Service_Type{
		csispec.PluginCapability_Service_CONTROLLER_SERVICE, csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	} {
		all = append(all, &csispec.PluginCapability{Type: &csispec.PluginCapability_Service_{
			Service: &csispec.PluginCapability_Service{Type: kind},
		}})
	}
	expansions := []csispec.PluginCapability_VolumeExpansion_Type{csispec.PluginCapability_VolumeExpansion_OFFLINE}
	if i.Config.OnlineResize {
		expansions = append(expansions, csispec.PluginCapability_VolumeExpansion_ONLINE)
	}
	for _, kind := range expansions {
		all = append(all, &csispec.PluginCapability{Type: &csispec.PluginCapability_VolumeExpansion_{
			VolumeExpansion: &csispec.PluginCapability_VolumeExpansion{Type: kind},
		}})
	}
	return &csispec.GetPluginCapabilitiesResponse{Capabilities: all}, nil
}

// zoneKey returns the topology key of the driver's volumes and nodes.
func zoneKey(driver string) string { return "topology." + driver + "/zone" }

const (
	wellKnownZone = "topology.kubernetes.io/zone"
	lunKey        = "LUN" // in the publish context
)

var _ csispec.IdentityServer = (*Identity)(nil)

// diskID returns the id of a volume's disk. A volume id is the id of a disk in Azure.
func diskID(volume, fullType string) (azure.ID, bool) {
	id, err := azure.ParseID(volume)
	return id, err == nil && id.Is(fullType)
}
