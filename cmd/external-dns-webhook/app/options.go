package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/kubeconfig"
	"kaz/internal/dns"
	"kaz/internal/plan/records"
)

// settings are the values of the flags.
type settings struct {
	cloudConfig, identity string

	zones, groups, subscriptions, names []string
	tags                                map[string]string
	kind                                string

	protect                    []string
	defaultTTL                 int64
	mostDeleted                int
	dryRun                     bool
	refresh, deadline          time.Duration
	parallel, mostWrites       int
	cluster                    string
	lease, unready             time.Duration
	traffic                    string
	kube                       kubeconfig.Options
	address, diagnosticAddress string
	logging                    *logsapi.LoggingConfiguration
}

const (
	longestDeadline = 14 * time.Second // ExternalDNS gives up after 15 s by default
	leastDeadline   = 4 * time.Second
	leastLease      = time.Minute
	longestTTL      = 2147483647
)

func newOptions() *settings {
	return &settings{
		cloudConfig: "/etc/kubernetes/azure.json", kind: "public", defaultTTL: dns.DefaultTTL, mostDeleted: dns.MostDeleted,
		lease: dns.Lease, unready: time.Minute,
		refresh: dns.Refresh, deadline: dns.Deadline, parallel: dns.Parallel, address: "127.0.0.1:8888", diagnosticAddress: "0.0.0.0:8080",
		logging: logsapi.NewLoggingConfiguration(),
	}
}

// flags returns the flags in the groups that help shows.
func (o *settings) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	o.addZones(sets.FlagSet("zones"))
	o.addWrites(sets.FlagSet("writes"))
	o.addShared(sets.FlagSet("shared names"))
	server := sets.FlagSet("server")
	server.StringVar(&o.address, "webhook-address", o.address,
		"IP:PORT that ExternalDNS calls. The protocol has no authentication, so the address must be a loopback address.")
	server.StringVar(&o.diagnosticAddress, "metrics-address", o.diagnosticAddress,
		"HOST:PORT for /metrics, /healthz and /readyz. Empty means none.")
	return sets
}

func (o *settings) addZones(flags *pflag.FlagSet) {
	flags.StringVar(&o.cloudConfig, "cloud-config", o.cloudConfig, "Path of the azure.json, as --azure-config-file of ExternalDNS.")
	flags.StringVar(&o.identity, "user-assigned-identity-client-id", "",
		"Client id of a managed identity, in place of userAssignedIdentityID of azure.json.")
	flags.StringSliceVar(&o.zones, "zone", nil, "Ids of zones. Without one and without groups, the resource group of azure.json is taken.")
	flags.StringSliceVar(&o.groups, "zone-resource-group", nil,
		"Resource groups with zones: names in the subscription of azure.json, or /subscriptions/ID/resourceGroups/NAME.")
	flags.StringSliceVar(&o.subscriptions, "zone-subscription", nil, "Ids of subscriptions. The zones of all their groups are taken.")
	flags.StringToStringVar(&o.tags, "zone-tag", nil,
		"Tags that zones of groups and subscriptions must have: NAME=VALUE; NAME= is any value.")
	flags.StringSliceVar(&o.names, "zone-name", nil,
		"Take only the zones of groups and subscriptions with these names, and those below them.")
	flags.StringVar(&o.kind, "zone-type", o.kind, "Zones of groups and subscriptions that are taken: public, private or all.")
	flags.DurationVar(&o.refresh, "refresh-interval", o.refresh,
		"Time after which zones and record sets are read again. Own writes are known at once, and what others change meanwhile is "+
			"never overwritten.")
}

func (o *settings) addWrites(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.protect, "protect", nil, "Regular expressions of names that are never changed, such as ^_acme-challenge\\.")
	flags.Int64Var(&o.defaultTTL, "default-ttl", o.defaultTTL, "TTL in seconds of records without one.")
	flags.IntVar(&o.mostDeleted, "max-delete-percent", o.mostDeleted,
		"Hold back the deletions in a zone if they are more than this part of the record sets of ExternalDNS, and more than ten. 0 holds "+
			"back none.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Log what would be written, and write nothing.")
	flags.IntVar(&o.parallel, "parallel", o.parallel, "Writes at the same time in a zone.")
	flags.IntVar(&o.mostWrites, "max-writes-per-minute", 0,
		fmt.Sprintf("Writes in a minute in a zone. 0 means %d in public and %d in private zones; Azure takes 200 and 60 of all clients "+
			"together.", dns.PublicWrites, dns.PrivateWrites))
	flags.DurationVar(&o.deadline, "deadline", o.deadline,
		"Longest time of an answer. It must be less than the two timeouts of ExternalDNS for webhooks together. "+
			"What is not written by then is left for the next request.")
}

func (o *settings) addShared(flags *pflag.FlagSet) {
	flags.StringVar(&o.cluster, "cluster-id", "",
		"Name of this cluster among those that share names by set identifiers. Each cluster needs another one, and must keep it. Empty "+
			"means that names are not shared.")
	flags.DurationVar(&o.lease, "lease", o.lease,
		"How long this cluster is answered for shared names after its last sign of life, at least. It is out of DNS after two leases.")
	flags.DurationVar(&o.unready, "unready-after", o.unready,
		"A Service that has no ready endpoint for this time leaves the names that it shares, and is back when it had one for half of the "+
			"time. 0 means never; else the program watches EndpointSlices.")
	flags.StringVar(&o.traffic, "traffic-manager-resource-group", "",
		"Resource group of Traffic Manager profiles: a name in the subscription of azure.json, or /subscriptions/ID/resourceGroups/NAME. "+
			"It must be the same for all clusters. Empty means that of each zone.")
	o.kube.AddFlags(flags)
}

// validate returns all problems at once.
func (o *settings) validate() error {
	problems := o.checkZones()
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, p := range o.protect {
		if _, err := regexp.Compile(p); err != nil {
			note("--protect %q: must be a regular expression: %w", p, err)
		}
	}
	host, _, err := net.SplitHostPort(o.address)
	if ip, wrong := netip.ParseAddr(host); err != nil || wrong != nil || !ip.IsLoopback() {
		note("--webhook-address %q: must be IP:PORT with a loopback address such as 127.0.0.1:8888", o.address)
	}
	return errors.Join(append(problems, o.checkNumbers()...)...)
}

func (o *settings) checkZones() (problems []error) {
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, z := range o.zones {
		if id, err := azure.ParseID(z); err != nil || !id.Is(network.DNSZones) && !id.Is(network.PrivateDNSZones) {
			note("--zone %q: must be /subscriptions/.../providers/%s/NAME or .../%s/NAME", z, network.DNSZones, network.PrivateDNSZones)
		}
	}
	for _, g := range o.groups {
		if err := checkGroup(g); err != nil {
			note("--zone-resource-group %w", err)
		}
	}
	if err := checkGroup(o.traffic); err != nil {
		note("--traffic-manager-resource-group %w", err)
	}
	for _, s := range o.subscriptions {
		if s == "" || strings.Contains(s, "/") {
			note("--zone-subscription %q: must be the id of a subscription, without slashes", s)
		}
	}
	if o.kind != "public" && o.kind != "private" && o.kind != "all" {
		note("--zone-type %q: must be public, private or all", o.kind)
	}
	return problems
}

// checkGroup returns why a text is neither the name nor the id of a resource group.
func checkGroup(text string) error {
	id, err := azure.ParseID(text)
	if strings.Contains(text, "/") && (err != nil || id.Group() == "" || !id.Equal(azure.GroupID(id.Subscription(), id.Group()))) {
		return fmt.Errorf("%q: must be a name or /subscriptions/ID/resourceGroups/NAME", text)
	}
	return nil
}

func (o *settings) checkNumbers() (problems []error) {
	for _, n := range []struct {
		flag             string
		got, least, most int64
	}{
		{"default-ttl", o.defaultTTL, 1, longestTTL}, {"max-delete-percent", int64(o.mostDeleted), 0, 100},
		{"parallel", int64(o.parallel), 1, 64}, {"max-writes-per-minute", int64(o.mostWrites), 0, 200},
	} {
		if n.got < n.least || n.got > n.most {
			problems = append(problems, fmt.Errorf("--%s %d: must be from %d to %d", n.flag, n.got, n.least, n.most))
		}
	}
	if o.deadline < leastDeadline || o.deadline > longestDeadline {
		problems = append(problems, fmt.Errorf("--deadline %v: must be from %v to %v", o.deadline, leastDeadline, longestDeadline))
	}
	if o.cluster != "" {
		if err := records.CheckIdentifier(o.cluster); err != nil {
			problems = append(problems, fmt.Errorf("--cluster-id %w", err))
		}
	}
	if o.lease < leastLease {
		problems = append(problems, fmt.Errorf("--lease %v: must be at least %v", o.lease, leastLease))
	}
	if o.unready < 0 {
		problems = append(problems, fmt.Errorf("--unready-after %v: must not be negative", o.unready))
	}
	if o.refresh <= 0 {
		problems = append(problems, fmt.Errorf("--refresh-interval %v: must be more than 0", o.refresh))
	}
	return problems
}

// groupOf returns the id of a resource group that is given as its name or id.
func groupOf(c cloudconfig.Config, group string) azure.ID {
	if strings.Contains(group, "/") {
		return azure.ID(group)
	}
	return azure.GroupID(c.SubscriptionID, group)
}

// find returns which zones are served.
func (o *settings) find(c cloudconfig.Config) dns.Zones {
	z := dns.Zones{Tags: o.tags, Public: o.kind != "private", Private: o.kind != "public"}
	for _, id := range o.zones {
		z.IDs = append(z.IDs, azure.ID(id))
	}
	for _, name := range o.names {
		z.Names = append(z.Names, strings.ToLower(strings.Trim(name, ".")))
	}
	for _, g := range o.groups {
		z.Groups = append(z.Groups, groupOf(c, g))
	}
	for _, s := range o.subscriptions {
		z.Groups = append(z.Groups, azure.SubscriptionID(s))
	}
	if len(z.IDs)+len(z.Groups) == 0 {
		z.Groups = []azure.ID{azure.GroupID(c.SubscriptionID, c.ResourceGroup)}
	}
	return z
}
