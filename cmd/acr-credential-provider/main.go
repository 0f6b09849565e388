// Command acr-credential-provider gives a kubelet credentials for pulling images from
// Azure Container Registry. The kubelet starts it for each image that its
// configuration names. Layer L4.
package main

import (
	"os"

	"kaz/cmd/acr-credential-provider/app"
)

func main() {
	os.Exit(app.Main(os.Args[1:], app.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environment: os.LookupEnv}))
}
