package localcluster

import (
	"context"
	_ "embed" // the classes of application gateways
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/host/atomicfile"
	"kaz/internal/host/process"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localcluster/cidr"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/prebuilt"
)

// components starts kaz's own components, with the files that another project's component would use.
type components struct{ *cluster }

func (c *cluster) components() components { return components{c} }

// nodeListFile lists the nodes and the metadata services of their machines.
const nodeListFile = "nodes.list"

func (c components) startCloudControllerManager(ctx context.Context) error {
	if c.without(CloudControllerManager) {
		c.progress.say("left out; its kubeconfig is %s", c.controlPlane.Kubeconfig)
		return nil
	}
	kubeconfig, err := c.controlPlane.IssueKubeconfig(CloudControllerManager, "system:cloud-controller-manager", "system:masters")
	if err != nil {
		return err
	}
	pods, err := c.podNetwork(ctx)
	if err != nil {
		return err
	}
	_, err = c.group.Start(process.Spec{
		Name: CloudControllerManager, Path: c.Program,
		Args: append([]string{
			CloudControllerManager,
			"--cloud-config=" + c.path(cloudConfigFile),
			"--kubeconfig=" + kubeconfig,
			"--cluster-name=" + c.record.Site.ClusterName,
			"--controllers=" + c.controllers(),
			"--leader-elect=false",
			"--route-reconciliation-period=1s", // pods of a new node wait for its route
			"--bind-address=127.0.0.1", "--secure-port=" + c.record.healthPort(),
			"--authentication-skip-lookup=true",
			"--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
		}, pods...),
		Env: c.environment(),
	})
	return err
}

// controllers returns the controllers of the cloud-controller-manager. Its node controller initializes the nodes only
// without a cloud-node-manager.
func (c components) controllers() string {
	if c.without(CloudNodeManager) {
		return "*"
	}
	return "*,-cloud-node"
}

// maxRoutes is the limit of routes in a route table of Azure, of both families together.
const maxRoutes = 400

// podNetwork returns the flags by which the cloud-controller-manager gives each node a pod range and a route per family.
// A cluster with too many nodes for one route table gets no routes, as on Azure.
func (c components) podNetwork(ctx context.Context) ([]string, error) {
	machines, err := c.machines(ctx)
	if err != nil {
		return nil, err
	}
	site := c.record.Site
	needed := len(machines) * len(site.PodRanges())
	routes := needed <= maxRoutes
	if !routes {
		c.progress.say("no routes to pods: %d nodes need %d, and a route table of Azure holds %d", len(machines), needed, maxRoutes)
	}
	return []string{
		"--allocate-node-cidrs=true", "--cluster-cidr=" + cidr.Join(site.PodRanges()),
		"--service-cluster-ip-range=" + cidr.Join(site.ServiceRanges()),
		fmt.Sprintf("--configure-cloud-routes=%t", routes),
	}, nil
}

// startCloudNodeManager starts one cloud-node-manager for all hollow nodes.
func (c components) startCloudNodeManager(ctx context.Context) error {
	if c.without(CloudNodeManager) {
		c.progress.say("left out; nodes and their metadata services are in %s", c.path(nodeListFile))
		return nil
	}
	// The file must exist before the program starts. The registrar of nodes updates it.
	machines, err := c.machines(ctx)
	if err == nil {
		err = c.writeNodeList(machines)
	}
	if err != nil {
		return err
	}
	kubeconfig, err := c.controlPlane.IssueKubeconfig(CloudNodeManager, "system:cloud-node-manager", "system:masters")
	if err != nil {
		return err
	}
	_, err = c.group.Start(process.Spec{
		Name: CloudNodeManager, Path: c.Program,
		Args: []string{
			CloudNodeManager, "--node-list=" + c.path(nodeListFile), "--kubeconfig=" + kubeconfig,
			"--kube-api-qps=200", "--kube-api-burst=400",
		},
		Env: c.environment(),
	})
	return err
}

//go:embed gateway.yaml
var gatewayClasses []byte

// startGatewayController starts the controller of the application gateways.
func (c components) startGatewayController(ctx context.Context) error {
	if err := c.applyGatewayAPI(ctx); err != nil {
		return err
	}
	if c.without(GatewayController) {
		c.progress.say("left out; its kubeconfig is %s", c.controlPlane.Kubeconfig)
		return nil
	}
	kubeconfig, err := c.controlPlane.IssueKubeconfig(GatewayController, "kaz:"+GatewayController, "system:masters")
	if err != nil {
		return err
	}
	answers, err := c.answersFlags(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, id := range c.record.Site.GatewayIDs() {
		ids = append(ids, string(id))
	}
	_, err = c.group.Start(process.Spec{
		Name: GatewayController, Path: c.Program,
		Args: append([]string{
			GatewayController, "--cloud-config=" + c.path(cloudConfigFile), "--kubeconfig=" + kubeconfig,
			"--gateway-id=" + ids[0], "--leader-elect=false", "--metrics-address=",
			"--kube-api-qps=200", "--kube-api-burst=400",
		}, answers...),
		Env: append(c.environment(), gatewayIDsVariable+"="+strings.Join(ids, ",")),
	})
	return err
}

// gatewayIDsVariable names all application gateways for the controller, separated by commas.
const gatewayIDsVariable = "APPGW_RESOURCE_IDS"

// applyGatewayAPI creates the definitions of Gateway API, and the classes that the application gateways serve.
func (c components) applyGatewayAPI(ctx context.Context) error {
	definitions, err := controlplane.GatewayCRDs(ctx, controlplane.BuildOptions{Prebuilt: prebuilt.Beside(c.Program)})
	if err != nil {
		return err
	}
	if err := c.apply(ctx, definitions); err != nil {
		return err
	}
	if err := c.kubectl(ctx, definitions, "wait", "--for=condition=Established", "--timeout=1m", "-f", "-"); err != nil {
		return err
	}
	return c.apply(ctx, gatewayClasses)
}

// writeNodeList writes the list of running machines for the cloud-node-manager. A stopped machine has no metadata service.
func (c components) writeNodeList(machines []inventory.Machine) error {
	var lines []string
	for _, m := range machines {
		if m.Running {
			lines = append(lines, fmt.Sprintf("%s %s/vm%s\n", m.Name, c.azure.Info().ARMHTTP, m.ID))
		}
	}
	slices.Sort(lines)
	return atomicfile.WriteChanged(c.path(nodeListFile), []byte("# NODE METADATA-SERVICE\n"+strings.Join(lines, "")), 0o600)
}

// environment returns the whole environment of a component.
func (c components) environment() []string {
	var env []string
	client := clientEnvironment(c.azure.Info(), c.group.Dir())
	for _, name := range slices.Sorted(maps.Keys(client)) {
		env = append(env, name+"="+client[name])
	}
	return append(env, "HOME="+c.group.Dir(), "PATH=/usr/local/bin:/usr/bin:/bin")
}
