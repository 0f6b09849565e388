// Command azuredisk-csi-driver is the CSI driver of Azure managed disks. Layer L4.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"kaz/cmd/azuredisk-csi-driver/app"
)

func main() {
	os.Exit(cli.Run(app.Command(os.LookupEnv)))
}
