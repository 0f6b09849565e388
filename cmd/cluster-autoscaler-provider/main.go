// Command cluster-autoscaler-provider serves scale sets as the node groups of cluster-autoscaler. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/cluster-autoscaler-provider/app"
)

func main() { os.Exit(cli.Run(app.Command(os.LookupEnv))) }
