package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/cmd/kaz/cli"
	"kaz/internal/azure"
	"kaz/internal/dns"
	"kaz/internal/plan/records"
)

func dnsCommand() *cobra.Command {
	return cli.Group("dns", "Work on names that clusters share", withdrawCommand())
}

// withdrawOptions are the flags of kaz dns withdraw.
type withdrawOptions struct {
	cluster          clusterFlags
	groups           []string
	traffic, output  string
	last, live, test bool
	timeout          time.Duration
}

func withdrawCommand() *cobra.Command {
	var o withdrawOptions
	command := &cobra.Command{
		Use:   "withdraw CLUSTER",
		Short: "Take a cluster that is gone out of the names that it shares with others",
		Long: `Removes what a cluster contributes to shared names of Azure DNS: its targets, its endpoints in
Traffic Manager, its TXT records and its leases. CLUSTER is the --cluster-id of its
external-dns-webhook. Other clusters stay as they are. Names that no other cluster has stay,
unless --last is given.

A cluster that renewed its lease lately is refused, because it would add its names again.`,
		Example: `  kaz dns withdraw west --zone-resource-group dns --dry-run
  kaz dns withdraw west --zone-resource-group dns --cloud-config azure.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d clusters are given: want one, such as west", len(args))
			}
			if err := records.CheckIdentifier(args[0]); err != nil {
				return fmt.Errorf("cluster %w", err)
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), o.timeout)
			defer cancel()
			return o.run(ctx, args[0], command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	f := command.Flags()
	f.StringVar(&o.cluster.cloudConfig, "cloud-config", "", "path of azure.json (default that of the cluster in --dir)")
	f.StringSliceVar(&o.groups, "zone-resource-group", nil,
		"resource groups with zones: names in the subscription of azure.json, or /subscriptions/ID/resourceGroups/NAME (default that of "+
			"azure.json)")
	f.StringVar(&o.traffic, "traffic-manager-resource-group", "", "as of the external-dns-webhook (default that of each zone)")
	f.BoolVar(&o.last, "last", false, "remove names that no other cluster has, too")
	f.BoolVar(&o.live, "live", false, "go on although the cluster renewed its lease lately")
	f.BoolVar(&o.test, "dry-run", false, "show what would be removed, and write nothing")
	f.DurationVar(&o.timeout, "timeout", 30*time.Minute, "time limit of the command; a zone takes some 200 writes in a minute")
	f.StringVarP(&o.output, "output", "o", "text", "text, json or yaml")
	cli.DirFlag(command, &o.cluster.dir)
	return command
}

// zonesOf returns the zones of resource groups that are given as names or ids, or of the one of an azure.json.
func zonesOf(subscription, group string, groups []string) dns.Zones {
	zones := dns.Zones{Public: true, Private: true}
	for _, g := range groups {
		zones.Groups = append(zones.Groups, groupID(subscription, g))
	}
	if len(zones.Groups) == 0 {
		zones.Groups = []azure.ID{azure.GroupID(subscription, group)}
	}
	return zones
}

func groupID(subscription, group string) azure.ID {
	if strings.Contains(group, "/") {
		return azure.ID(group)
	}
	return azure.GroupID(subscription, group)
}

func (o *withdrawOptions) run(ctx context.Context, cluster string, out, errs io.Writer) error {
	path, _, err := o.cluster.findAzure(ctx, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	client, config, err := openAzure(ctx, path)
	if err != nil {
		return err
	}
	c := dns.Config{
		Azure: client, Zones: zonesOf(config.SubscriptionID, config.ResourceGroup, o.groups),
		Options: records.Options{DefaultTTL: dns.DefaultTTL, Cluster: cluster},
		Lease:   dns.Lease, Refresh: dns.Refresh, Deadline: time.Minute,
		Parallel: dns.Parallel, PublicWrites: dns.PublicWrites, PrivateWrites: dns.PrivateWrites, DryRun: o.test,
		Log: slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if o.traffic != "" {
		c.Traffic = groupID(config.SubscriptionID, o.traffic)
	}
	left, err := dns.New(c).Withdraw(ctx, o.last, o.live)
	if err != nil {
		return err
	}
	return cli.PrintAs(out, o.output, left, func(w io.Writer) error { return o.print(w, cluster, left) })
}

// print prints what became of the contributions.
func (o *withdrawOptions) print(w io.Writer, cluster string, left dns.Withdrawal) error {
	verb := "left"
	if o.test {
		verb = "would leave"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s %s %d names\n", cluster, verb, len(left.Names))
	for _, name := range left.Names {
		fmt.Fprintf(&b, "  %s\n", name)
	}
	if len(left.Kept) > 0 {
		fmt.Fprintf(&b, "no other cluster has these names, so they stay; --last removes them:\n")
	}
	for _, name := range left.Kept {
		fmt.Fprintf(&b, "  %s\n", name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
