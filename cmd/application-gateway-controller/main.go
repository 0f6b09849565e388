// Command application-gateway-controller serves Ingresses with an application gateway. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/application-gateway-controller/app"
)

func main() { os.Exit(cli.Run(app.Command(os.LookupEnv))) }
