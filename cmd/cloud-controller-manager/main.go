// Command cloud-controller-manager connects a Kubernetes cluster to Azure: it
// knows the nodes' machines and gives Services their load balancers. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/cloud-controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.Command(os.LookupEnv)))
}
