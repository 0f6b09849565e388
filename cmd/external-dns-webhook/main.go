// Command external-dns-webhook serves ExternalDNS with zones of Azure DNS. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/external-dns-webhook/app"
)

func main() { os.Exit(cli.Run(app.Command(os.LookupEnv))) }
