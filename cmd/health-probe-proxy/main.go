// Command health-probe-proxy runs on each node and answers the health probes of load
// balancers that speak the PROXY protocol. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/health-probe-proxy/app"
)

func main() {
	os.Exit(cli.Run(app.Command()))
}
