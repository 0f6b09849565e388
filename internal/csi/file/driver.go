package file

import (
	"context"
	"log/slog"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"kaz/internal/azure"
	"kaz/internal/plan/share"
)

// DefaultName is the name of the driver in persistent volumes and storage classes.
const DefaultName = "file.csi.azure.com"

// Azure is what the driver needs of Azure. Get reads the resource itself, not a cached one.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Secrets are Kubernetes Secrets.
type Secrets interface {
	// Check returns an error if the Secret exists and Put cannot write the credentials to it.
	Check(ctx context.Context, namespace, name, account string) error
	// Put creates a Secret with credentials, or changes those of a Secret. A Secret with the key of another account stays.
	Put(ctx context.Context, namespace, name string, c Credentials) error
}

// Claimed is a persistent volume of the driver.
type Claimed = share.Claimed

// Volumes lists the persistent volumes of the driver.
type Volumes func(ctx context.Context) ([]Claimed, error)

// Config is the configuration of a controller.
type Config struct {
	Name, Version string
	Cluster       share.Cluster
	// Azure is nil without a cloud configuration: then only volumes with their key in a Secret are served.
	Azure Azure
	// Secrets and Volumes are nil without a cluster.
	Secrets Secrets
	Volumes Volumes
	// Files opens the file service of an account.
	Files Files
	// DeleteSnapshots deletes the snapshots of a volume with the volume. Otherwise a volume with snapshots is not deleted.
	DeleteSnapshots bool
	// Ready returns why the driver cannot serve yet. It may be nil.
	Ready func(context.Context) error
	Log   *slog.Logger // nil is slog.Default
}

// Identity is the identity service of the driver.
type Identity struct {
	csispec.UnimplementedIdentityServer
	Config Config
}

var _ csispec.IdentityServer = (*Identity)(nil)

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
	return &csispec.GetPluginCapabilitiesResponse{Capabilities: []*csispec.PluginCapability{
		{Type: &csispec.PluginCapability_Service_{Service: &csispec.PluginCapability_Service{
			Type: csispec.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csispec.PluginCapability_VolumeExpansion_{VolumeExpansion: &csispec.PluginCapability_VolumeExpansion{
			Type: csispec.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}
