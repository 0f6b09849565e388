package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/cmd/internal/driver"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/component/release"
	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/cluster"
	"kaz/internal/csi/file/node"
	"kaz/internal/csi/mount"
	"kaz/internal/fileservice"
	"kaz/internal/plan/share"
)

// services returns the services of the mode.
func (o *options) services(ctx context.Context, p *driver.Process) (csi.Services, func(), error) {
	c := file.Config{
		Name: o.Driver, Version: release.Version(), DeleteSnapshots: o.deleteSnapshots, Files: fileservice.Options{}.Open,
		Ready: p.Ready.Check, Log: p.Log,
	}
	authority, err := o.open(ctx, p, &c)
	if err != nil {
		return csi.Services{}, nil, err
	}
	if p.Client != nil {
		kube := cluster.Cluster{Client: p.Client, Driver: o.Driver}
		c.Secrets, c.Volumes = kube, kube.Volumes
	}
	s := csi.Services{Identity: &file.Identity{Config: c}}
	if o.HasController() {
		s.Controller = file.NewController(c)
	}
	if o.HasNode() {
		if s.Node, err = o.node(p, c, authority); err != nil {
			return s, nil, err
		}
	}
	return s, func() {}, nil
}

// open opens Azure as the cloud configuration describes it, and returns the URL of Entra ID.
func (o *options) open(ctx context.Context, p *driver.Process, c *file.Config) (string, error) {
	cloud, err := p.OpenAzure(ctx)
	if errors.Is(err, fs.ErrNotExist) && o.emptyConfig {
		p.Log.Warn("no cloud configuration: volumes need their key in a Secret", "error", err)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c.Azure = cloud.Azure
	c.Cluster = clusterOf(cloud.Config, cloud.Environment)
	identity, err := access.Identity(cloud.Config, cloud.Environment, nil)
	if err != nil {
		return "", err
	}
	c.Files = fileservice.Options{Identity: identity.Compute}.Open
	return cloud.Environment.Authority, nil
}

func clusterOf(c cloudconfig.Config, e cloudconfig.Environment) share.Cluster {
	return share.Cluster{
		Subscription: c.SubscriptionID, ResourceGroup: c.ResourceGroup, Location: c.Location,
		NetworkSubscription: c.NetworkResourceSubscriptionID, VNetGroup: c.VnetResourceGroup, VNet: c.VnetName, Subnet: c.SubnetName,
		Suffix: e.StorageSuffix,
	}
}

// node returns the node service.
func (o *options) node(p *driver.Process, c file.Config, authority string) (csispec.NodeServer, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("the node service runs on linux only, not on %s: use --mode=controller", runtime.GOOS)
	}
	permissions, err := o.permissions()
	if err != nil {
		return nil, err
	}
	config := node.Config{
		Driver: o.Driver, Node: o.Node, Cluster: c.Cluster, Mounter: node.Kernel{}, Mounts: mount.New(1), Files: c.Files,
		Tickets:  node.Helper{Dir: "/var/lib/kubelet/plugins/" + o.Driver, Authority: authority},
		Defaults: o.defaults, Permissions: permissions, GroupChange: o.groupChange, InlineKeys: o.inlineKeys,
		MountGroup: o.mountGroup, Stats: o.stats, Log: p.Log,
	}
	if c.Azure != nil {
		keys := file.NewKeys(c.Azure)
		config.Key, config.Refused = keys.Of, keys.Refused
	}
	if p.Client != nil {
		kube := cluster.Cluster{Client: p.Client, Driver: o.Driver}
		config.Secret = kube.Secret
		if o.secretAuthz != authzOff {
			config.Authorize = kube.Authorize(o.secretAuthz == authzEnforce, p.Log)
		}
	}
	return node.New(config), nil
}
