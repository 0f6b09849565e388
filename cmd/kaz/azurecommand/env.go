package azurecommand

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"software.sslmate.com/src/go-pkcs12"

	"kaz/cmd/kaz/cli"
	"kaz/internal/host/atomicfile"
	"kaz/internal/localazure/client"
)

func envCommand() *cobra.Command {
	var selected selection
	var output string
	allowed := strings.Join(append(client.Dialects(), "json"), ", ")
	command := &cobra.Command{
		Use:   "env",
		Short: "Print the environment variables by which clients reach a running local Azure, with their secrets",
		Long: `Prints lines for a shell by which clients of the running local Azure find and trust it, and
log in: endpoint, proxy, certificate authority, tenant, subscription, client id and secret.

The output has secrets, which give all rights in this Azure.

The kinds of clients differ in their variables:

  shell      the Azure SDKs in general, and the managed identity
  az         the Azure CLI; its lines also log in, in a directory of their own, so that
             your login to the real Azure stays
  terraform  the provider azurerm
  python     the Azure SDK for Python
  dotnet     the Azure SDK for .NET
  java       the Azure SDK for Java; a trust store is written beside the certificate authority
  json       no lines for a shell, but all that is known as one JSON object`,
		Example: `  eval "$(kaz local azure env)"
  eval "$(kaz local azure env -o az)"; az group list
  eval "$(kaz local azure env -o terraform)"; terraform plan
  kaz local azure env -o json | jq -r .armHTTP
  kaz local azure env --endpoint https://127.0.0.1:8443    # if several run`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			info, err := selected.find(command)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return cli.PrintAs(command.OutOrStdout(), output, info, nil)
			case "java":
				if err := writeTrustStore(info); err != nil {
					return err
				}
			}
			if err := info.WriteEnvironment(command.OutOrStdout(), output); err != nil {
				return fmt.Errorf("--output %s: %w", output, err)
			}
			return nil
		},
	}
	selected.defineOwn(command)
	command.Flags().StringVarP(&output, "output", "o", "shell", "kind of the client, or json: "+allowed)
	return command
}

// writeTrustStore writes the certificate authority in the form that Java reads.
func writeTrustStore(info client.Info) error {
	text, err := os.ReadFile(info.CAFile)
	if err != nil {
		return fmt.Errorf("certificate authority of the local Azure: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("certificate authority of the local Azure: no certificate in %s", info.CAFile)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("certificate authority of the local Azure: %s: %w", info.CAFile, err)
	}
	store, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{certificate}, client.TrustStorePassword)
	if err != nil {
		return fmt.Errorf("trust store of %s: %w", info.CAFile, err)
	}
	if err := atomicfile.Write(info.TrustStore(), store, 0o644); err != nil {
		return fmt.Errorf("trust store of the local Azure: %w", err)
	}
	return nil
}
