package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/local/process"
)

// nodeListFile names the nodes and the metadata services of their machines.
const nodeListFile = "nodes.list"

// controllers are those that the cloud-controller-manager runs: where the
// cloud-node-manager initializes the nodes, it does not.
func (c *cluster) controllers() string {
	if c.without(CloudNodeManager) {
		return "*"
	}
	return "*,-cloud-node"
}

// startCloudNodeManager runs one for all nodes, each looked after with its own
// machine's metadata service.
func (c *cluster) startCloudNodeManager(ctx context.Context) error {
	if c.without(CloudNodeManager) {
		c.progress.say("left out; nodes and their metadata services are in %s", c.path(nodeListFile))
		return nil
	}
	// The list is there before its reader; it is kept in step with the machines.
	machines, err := c.azure.machines(ctx)
	if err == nil {
		err = c.writeNodeList(machines)
	}
	if err != nil {
		return err
	}
	kubeconfig, err := c.plane.IssueKubeconfig(CloudNodeManager, "system:cloud-node-manager", "system:masters")
	if err != nil {
		return err
	}
	_, err = c.group.Start(process.Spec{
		Name: CloudNodeManager, Path: c.Program,
		Args: []string{
			CloudNodeManager, "--node-list=" + c.path(nodeListFile), "--kubeconfig=" + kubeconfig,
			"--kube-api-qps=200", "--kube-api-burst=400",
		},
		Env: c.clientEnvironment(),
	})
	return err
}

// writeNodeList tells the cloud-node-manager which nodes there are. A machine that
// does not run answers no question about itself.
func (c *cluster) writeNodeList(machines []machine) error {
	var lines []string
	for _, m := range machines {
		if m.Running {
			lines = append(lines, fmt.Sprintf("%s %s/vm%s\n", m.Name, c.azure.Info().ARMHTTP, m.ID))
		}
	}
	slices.Sort(lines)
	return replaceFile(c.path(nodeListFile), []byte("# NODE METADATA-SERVICE\n"+strings.Join(lines, "")))
}
