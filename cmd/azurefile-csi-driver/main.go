// Command azurefile-csi-driver is the CSI driver of Azure Files. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/azurefile-csi-driver/app"
)

func main() {
	os.Exit(cli.Run(app.Command(os.LookupEnv)))
}
