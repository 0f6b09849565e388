package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/cmd/internal/access"
	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/csi/explain"
)

// volumeOptions are the flags of kaz explain volume.
type volumeOptions struct {
	cluster clusterFlags
	output  string
	timeout time.Duration
}

func explainVolumeCommand() *cobra.Command {
	var o volumeOptions
	command := &cobra.Command{
		Use:   "volume NAMESPACE/CLAIM",
		Short: "Show where the disk of a PersistentVolumeClaim is, and what it waits for",
		Long: `Reads the claim, its volume, attachments, pods and nodes from Kubernetes, and the disk and
the machines that have it from Azure. Shows where the disk is, what must happen next, what
does not happen by itself, and the last messages of Azure and Kubernetes. It writes nothing.

Exit status 0: nothing is pending. 2: something must happen, which is shown. 1: there is a
problem, which is shown, or the command failed.

The cluster and its azure.json are selected as by kaz explain service.`,
		Example: `  kaz explain volume default/data-db-0
  kaz explain volume default/data-db-0 -o json
  kaz explain volume default/data-db-0 --kubeconfig admin.conf --cloud-config azure.json`,
		Args: func(command *cobra.Command, args []string) error {
			return errors.Join(o.checkArguments(args), o.cluster.check(command.Flags()))
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), o.timeout)
			defer cancel()
			err := o.run(ctx, args[0], command.OutOrStdout())
			if _, printed := errors.AsType[exitCode](err); err != nil && !printed && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("not finished within --timeout %v: %w", o.timeout, err)
			}
			return err
		},
	}
	o.cluster.define(command)
	command.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "time limit of the command")
	outputFlag(command, &o.output)
	return command
}

// checkArguments validates the arguments and the flags.
func (o volumeOptions) checkArguments(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d claims are given: want one, NAMESPACE/NAME, such as default/data", len(args))
	}
	namespace, name, ok := strings.Cut(args[0], "/")
	switch {
	case !ok || namespace == "" || name == "" || strings.Contains(name, "/"):
		return fmt.Errorf("%q: want NAMESPACE/NAME, such as default/data", args[0])
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than 0", o.timeout)
	case !slices.Contains([]string{"text", "json", "yaml"}, o.output):
		return fmt.Errorf("--output %s: want text, json or yaml", o.output)
	}
	return nil
}

// run explains a claim.
func (o volumeOptions) run(ctx context.Context, key string, out io.Writer) error {
	cluster, err := o.cluster.find(ctx, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	from, err := openAzure(ctx, cluster.CloudConfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster.Kubernetes)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, name, _ := strings.Cut(key, "/")
	facts, err := explain.Gather(ctx, client, from, namespace, name)
	if err != nil {
		return explainError(err, cluster.Kubernetes.Host)
	}
	v, err := facts.Explain()
	if err != nil {
		return err
	}
	text := func(w io.Writer) error {
		_, err := io.WriteString(w, v.String())
		return err
	}
	if err := printAs(out, o.output, v, text); err != nil {
		return err
	}
	switch {
	case len(v.Problems) > 0:
		return failed
	case len(v.Waits) > 0:
		return pending
	}
	return nil
}

// openAzure opens the Azure of a cloud configuration, to read it.
func openAzure(ctx context.Context, path string) (azure.Reader, error) {
	config, _, err := cloudconfig.Read(cloudconfig.Sources{Path: path, Environment: os.LookupEnv})
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("cloud configuration %s: %w", path, err)
	}
	environment, err := access.DescribeCloud(ctx, nil, config)
	if err != nil {
		return nil, err
	}
	client, err := access.OpenClient(config, environment, access.ClientOptions{})
	if err != nil {
		return nil, err
	}
	return client.Fresh(), nil
}
