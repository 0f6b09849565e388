package cluster_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/testkit"
)

// reloading changes the configuration in a Secret while the program runs. An error is reported as an
// event and changes nothing; a valid configuration applies in the same process.
func reloading(c *cluster) {
	const secret, within = "azure-cloud-provider", 2 * time.Minute
	store := func(file string) {
		c.t.Helper()
		object := c.must("", "-n", "kube-system", "create", "secret", "generic", secret, "--from-file=cloud-config="+file,
			"--dry-run=client", "-o", "yaml")
		c.must(object, "apply", "-f", "-")
	}
	store(c.status.CloudConfig)
	script := `. "$1" && exec "$2" --enable-dynamic-reloading --kubeconfig "$KUBECONFIG" --cluster-name kaz` +
		` --leader-elect=false --configure-cloud-routes=false --allocate-node-cidrs=false --secure-port=0`
	manager := start(c.t, exec.CommandContext(c.t.Context(), "/bin/bash", "-c", script, "bash",
		c.status.Environment, filepath.Join(programs, "cloud-controller-manager")))
	manager.says("controller started", within)
	serve := func(name string) {
		c.t.Helper()
		if _, err := c.apply(testkit.NewService(name,
			corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})); err != nil {
			c.t.Fatal(err)
		}
	}
	serve("before")

	store(c.changed(map[string]any{"vmType": "mainframe"}))
	manager.says("cloud configuration rejected; keeping the previous one", within)
	wait(c.t, within, "the event", func() string {
		events := get[corev1.EventList](c, "-n", "kube-system", "events", "--field-selector",
			"involvedObject.name=cloud-controller-manager,reason=CloudConfigRejected").Items
		if len(events) > 0 && strings.Contains(events[0].Message, "vmType") {
			return ""
		}
		return fmt.Sprintf("there is none of vmType among %d", len(events))
	})

	store(c.changed(map[string]any{"tags": "team=blue"}))
	manager.says("all controllers restart with it", within)
	serve("after")
	lb := read[network.LoadBalancer](c, c.group().Resource(network.LoadBalancers, "kaz"))
	if team, _ := lb.Tags.Get("team"); team != "blue" {
		c.t.Errorf("the load balancer's tags are %v", lb.Tags)
	}
	c.removeAll("before", "after")
	stopped(c.t, manager, syscall.SIGTERM)
}
