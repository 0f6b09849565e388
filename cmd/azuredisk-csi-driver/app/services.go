package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/cmd/internal/driver"
	"kaz/internal/azure"
	"kaz/internal/component/release"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/csi/disk/node"
	"kaz/internal/csi/disk/node/windows"
	"kaz/internal/csi/hooks"
	"kaz/internal/csi/mount"
	"kaz/internal/imds"
	plandisk "kaz/internal/plan/disk"
)

// services returns the services of the mode, and what ends them. A node without a cloud configuration has no controller.
func (o *options) services(ctx context.Context, p *driver.Process) (csi.Services, func(), error) {
	c := disk.Config{
		Name: o.Driver, Version: release.Version(), OnlineResize: o.onlineResize, ConvertCaching: o.convertCaching,
		ListVolumes: o.listVolumes, Log: p.Log,
		Limit: func(context.Context, string) int { return 0 }, Ready: p.Ready.Check, Batches: p.Metrics.Batch,
	}
	s := csi.Services{Identity: &disk.Identity{Config: c}}
	sizes, err := o.open(ctx, p, &c)
	if err != nil && (o.Mode == driver.ModeController || o.Node == "") {
		return s, nil, err
	}
	if err != nil {
		p.Log.Warn("no controller, and no limit of disks by the size of the machine", "error", err)
	}
	if o.HasNode() {
		if s.Node, err = o.node(p, sizes); err != nil {
			return s, nil, err
		}
	}
	if !o.HasController() || c.Azure == nil {
		return s, func() {}, nil
	}
	controller := disk.NewController(c)
	s.Controller = controller
	return s, controller.Close, nil
}

// open opens Azure as the cloud configuration describes it, and returns what knows the sizes of machines.
func (o *options) open(ctx context.Context, p *driver.Process, c *disk.Config) (*disk.Sizes, error) {
	cloud, err := p.OpenAzure(ctx)
	if err != nil {
		return nil, err
	}
	config := cloud.Config
	c.Azure = cloud.Azure
	c.Cluster = plandisk.Cluster{
		Subscription: config.SubscriptionID, ResourceGroup: config.ResourceGroup, Location: config.Location,
	}
	if config.EdgeZone() {
		c.Cluster.ExtendedLocation = &azure.ExtendedLocation{Name: config.ExtendedLocationName, Type: config.ExtendedLocationType}
	}
	sizes := disk.NewSizes(cloud.Client.Fresh(), config.SubscriptionID, config.Location, p.Log)
	c.Limit = sizes.DataDisks
	if !o.HasController() {
		return sizes, nil // only the controller looks for machines
	}
	if p.Client == nil {
		p.Log.Warn("no Kubernetes API: nodes are virtual machines of the resource group with the names of the nodes")
		c.Nodes = disk.NamedMachines{Group: azure.GroupID(config.SubscriptionID, config.ResourceGroup), Azure: c.Azure}
		return sizes, nil
	}
	uses, err := disk.NewAttachments(ctx, p.Client, o.Driver)
	if err != nil {
		return nil, err
	}
	p.Ready.Add("VolumeAttachments", uses.Synced)
	nodes, err := disk.NewKubernetesNodes(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	p.Ready.Add("Node objects", nodes.Synced)
	c.Uses, c.Nodes = uses, nodes
	return sizes, nil
}

// node returns the node service. Without sizes the limits of the machine are not known.
func (o *options) node(p *driver.Process, sizes *disk.Sizes) (csispec.NodeServer, error) {
	system, err := o.system()
	if err != nil {
		return nil, err
	}
	metadata, err := imds.New(imds.Config{UserAgent: o.Driver + "/" + release.Version()})
	if err != nil {
		return nil, err
	}
	limits := func(context.Context, string) (disks int, speed plandisk.Speed) { return 0, speed }
	if sizes != nil {
		limits = sizes.Limits
	}
	machine := node.Machine{
		Metadata: metadata.Instance, Limits: limits, Zone: o.supportZone, AttachLimit: o.attachLimit, Reserved: o.reserved, Log: p.Log,
	}
	config := node.Config{
		Driver: o.Driver, Node: o.Node, System: system, Place: machine.Place, Log: p.Log,
	}
	if o.checkIdentity {
		config.Attached = machine.Attached
	}
	if o.tune && runtime.GOOS == linux {
		config.Speed = machine.Speed
	}
	if p.Client != nil && o.removeTaint {
		taint := &hooks.Taint{
			Client: p.Client, Driver: o.Driver, Node: o.Node, Once: !o.keepRemoving, Log: p.Log,
			Delay: time.Duration(o.taintDelay) * time.Second,
		}
		p.Beside(taint.Run)
	}
	return node.New(config), nil
}

const linux = "linux" // runtime.GOOS

// system returns what the node service needs from the operating system.
func (o *options) system() (node.System, error) {
	switch runtime.GOOS {
	case linux:
		return node.Linux{Mounts: mount.New(o.maxFormat)}, nil
	case "windows":
		return windows.Open()
	}
	return nil, fmt.Errorf("the node service runs on linux and windows, not on %s: use --mode=controller", runtime.GOOS)
}

// awaitDetachment waits until a drained node has no volumes.
func (o *options) awaitDetachment(ctx context.Context, p *driver.Process) error {
	node := o.Node
	if named, ok := p.Lookup("KUBE_NODE_NAME"); ok && node == "" {
		node = named
	}
	switch {
	case node == "":
		return errors.New("--pre-stop-hook: --nodeid and $KUBE_NODE_NAME are missing: want the name of the node")
	case p.Client == nil:
		return errors.New("--pre-stop-hook: needs the Kubernetes API: --kubeconfig is missing, and this is no pod")
	}
	return (&hooks.Stop{Client: p.Client, Driver: o.Driver, Node: node, Log: p.Log}).Wait(ctx)
}
