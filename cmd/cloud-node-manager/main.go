// Command cloud-node-manager runs on each node and tells Kubernetes of the machine
// under it: provider id, labels, addresses. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/cloud-node-manager/app"
)

func main() {
	os.Exit(cli.Run(app.Command(os.LookupEnv)))
}
