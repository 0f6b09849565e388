package localcluster

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/image"
	"kaz/internal/localcluster/site"
)

// Components of kaz itself. [UpOptions.Without] leaves them out, so that another program can run in their place.
const (
	CloudControllerManager = "cloud-controller-manager"
	CloudNodeManager       = "cloud-node-manager"
	GatewayController      = "application-gateway-controller"
)

// Components returns the components that [UpOptions.Without] can leave out.
func Components() []string {
	return append(ownComponents(), controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK)
}

// ownComponents returns the components of kaz itself.
func ownComponents() []string {
	return []string{CloudControllerManager, CloudNodeManager, DiskDriver, FileDriver, GatewayController}
}

// Kinds of nodes.
const (
	NodesReal   = "real"
	NodesHollow = "hollow"
	// NodesBooted are the nodes of a cluster with [UpOptions.Engine].
	NodesBooted = "booted"
)

// UpOptions describe the cluster to start. Dir and Program are required.
type UpOptions struct {
	// Dir holds everything of the cluster: state, keys, logs, files for clients.
	Dir string
	// Nodes is the number of nodes; 0 keeps the number of an existing cluster, and is 3 for a new one.
	Nodes int
	// ScaleSets is the number of scale sets; 0 keeps the number of an existing cluster, and is 1 for a new one.
	ScaleSets int
	// NodesKind is [NodesReal], [NodesHollow], or empty for real nodes if this machine can run them.
	NodesKind string
	// Engine makes the cluster with the cluster engine: its machines boot from an image, also those of the control plane.
	Engine bool
	// Definitions are the files of such a cluster's definition, the base first. Without them a new cluster has one member of the
	// control plane and one pool with Nodes nodes.
	Definitions []string
	// Releases are the releases of Kubernetes in the image of its machines, without Engine one release. Empty keeps those of an existing
	// cluster. For a new one it is that of the definition, else the default.
	Releases []string
	// IPFamilies are [site.IPv4], or [site.IPv4] and [site.IPv6]. Empty keeps the families of an existing cluster, and is IPv4 for
	// a new one.
	IPFamilies []string
	// Without names [Components] to leave out.
	Without []string
	// Images are archives with images that real nodes import at boot.
	Images []string
	// Gateway gives the cluster an application gateway, and its controller. A cluster that has one keeps it.
	Gateway bool
	// Gateways is the number of application gateways, each with a public address of its own. 0 keeps the number of an existing
	// cluster, and is 1 for a new one with Gateway.
	Gateways int
	// Example runs an example on real nodes and waits until it answers.
	Example bool
	// Azure is the behaviour of the local Azure. Up sets its files and addresses.
	Azure server.Options
	// Program is the kaz executable, which runs kaz's own components.
	Program string
	// Out receives the progress.
	Out io.Writer
}

// check validates the options and reports all problems at once.
func (o *UpOptions) check() error {
	var problems []error
	if o.Nodes < 0 || o.Nodes > 1000 {
		problems = append(problems, fmt.Errorf("--nodes %d: want 1 to 1000", o.Nodes))
	}
	if o.ScaleSets < 0 || o.ScaleSets > 20 {
		problems = append(problems, fmt.Errorf("--scale-sets %d: want 1 to 20", o.ScaleSets))
	}
	if o.Gateways < 0 || o.Gateways > site.MaxGateways {
		problems = append(problems, fmt.Errorf("--gateways %d: want 1 to %d", o.Gateways, site.MaxGateways))
	}
	if !slices.Contains([]string{"", NodesReal, NodesHollow}, o.NodesKind) {
		problems = append(problems, fmt.Errorf("--nodes-kind %s: want %s or %s", o.NodesKind, NodesReal, NodesHollow))
	}
	_, err := site.ReadFamilies(o.IPFamilies)
	problems = append(problems, err)
	for _, name := range o.Without {
		if !slices.Contains(Components(), name) {
			problems = append(problems, fmt.Errorf("--without %s: want one of %s", name, strings.Join(Components(), ", ")))
		}
	}
	problems = append(problems, o.checkImages(), o.Azure.Check(), o.checkKind())
	return errors.Join(problems...)
}

// checkImages validates the archives and makes their paths absolute, because machines have other working directories.
func (o *UpOptions) checkImages() error {
	var problems []error
	for i, file := range o.Images {
		if err := image.CheckArchive(file); err != nil {
			problems = append(problems, fmt.Errorf("--image %s: %w", file, err))
		}
		if path, err := filepath.Abs(file); err == nil {
			o.Images[i] = path
		}
	}
	if len(o.Images) > 0 && o.NodesKind == NodesHollow {
		problems = append(problems, errors.New("--image: simulated nodes run no images; use --nodes-kind real"))
	}
	return errors.Join(problems...)
}
