// Package explain explains what is answered for a name, and why: the record sets of each zone, what clusters contribute, their leases, and
// what name servers say. It reads, and writes nothing.
//
// Layer L3.
package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/plan/records"
)

// ErrNoZone says that no zone contains a name.
var ErrNoZone = errors.New("no zone contains the name")

// Facts are what was read about a name.
type Facts struct {
	Name  string
	Now   time.Time
	Zones []ZoneFacts
}

// ZoneFacts are what one zone has about a name.
type ZoneFacts struct {
	Zone    records.Zone
	Sets    []records.Set            // of the name
	Claims  []records.Set            // TXT record sets of ExternalDNS's registry about it, with their usual names
	Leases  map[string]records.Lease // of the clusters that contribute; those without one are absent
	Answers []Answer                 // of a name server; none if none can be asked
	// Monitors are what Traffic Manager says of endpoints, such as Online, by the ids of profiles and the names of endpoints.
	Monitors map[string]map[string]string
}

// Answer is what a name server answers for a type.
type Answer struct {
	Server  string   `json:"server"`
	Type    string   `json:"type"`
	Code    string   `json:"code"`  // such as NOERROR or NXDOMAIN
	Error   string   `json:"error"` // why there is no answer
	TTL     uint32   `json:"ttl"`   // seconds
	Targets []string `json:"targets"`
}

// recordTypes are the types that are looked at.
var recordTypes = []string{"A", "AAAA", "CNAME", "TXT"}

// Ask asks a name server for the records of a name. server is HOST:PORT.
type Ask func(ctx context.Context, server, name, recordType string) Answer

// Gather reads what is known of a name. zones are those of Azure that are searched. server is the name server that is asked, HOST:PORT; if
// it is empty, the first one of each public zone is.
func Gather(ctx context.Context, from azure.Reader, zones dns.Zones, name, server string, ask Ask) (Facts, error) {
	f := Facts{Name: strings.ToLower(strings.TrimSuffix(name, ".")), Now: time.Now()}
	found, err := dns.Find(ctx, from, zones, f.Name)
	if err != nil {
		return f, err
	}
	if len(found) == 0 {
		return f, fmt.Errorf("%s: %w", f.Name, ErrNoZone)
	}
	for _, z := range found {
		one, err := gatherZone(ctx, from, z, f.Name)
		if err != nil {
			return f, fmt.Errorf("zone %s: %w", z.ID, err)
		}
		if one.Answers, err = answers(ctx, from, one, f.Name, server, ask); err != nil {
			return f, fmt.Errorf("zone %s: %w", z.ID, err)
		}
		f.Zones = append(f.Zones, one)
	}
	return f, nil
}

// gatherZone reads the record sets of a name in a zone.
func gatherZone(ctx context.Context, from azure.Reader, z records.Zone, name string) (ZoneFacts, error) {
	f := ZoneFacts{Zone: z, Leases: map[string]records.Lease{}}
	for _, t := range recordTypes {
		for _, read := range []struct {
			name, recordType string
			into             *[]records.Set
		}{{name, t, &f.Sets}, {strings.ToLower(t) + "-" + name, "TXT", &f.Claims}} {
			set, err := readSet(ctx, from, z, read.name, read.recordType)
			if err != nil {
				return f, err
			}
			if set != nil {
				*read.into = append(*read.into, *set)
			}
		}
	}
	for _, s := range f.Sets {
		if err := f.monitor(ctx, from, s); err != nil {
			return f, err
		}
	}
	for _, cluster := range f.clusters() {
		set, err := readID(ctx, from, z, records.LeaseID(z, cluster))
		if err != nil {
			return f, err
		}
		if set == nil {
			continue
		}
		if l, ok := records.ReadLease(*set); ok {
			f.Leases[cluster] = l
		}
	}
	return f, nil
}

// monitor reads what Traffic Manager says of the endpoints of a shared record set.
func (f *ZoneFacts) monitor(ctx context.Context, from azure.Reader, s records.Set) error {
	if s.Alias == "" || len(s.Shares) == 0 {
		return nil
	}
	doc, err := from.Get(ctx, azure.ID(s.Alias))
	if azure.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	profile, err := azure.Decode[struct {
		Endpoints []struct {
			Name       string `json:"name"`
			Properties struct {
				Status string `json:"endpointMonitorStatus"`
			} `json:"properties"`
		} `json:"endpoints"`
	}](doc)
	all := map[string]string{}
	for _, e := range profile.Properties.Endpoints {
		all[strings.ToLower(e.Name)] = e.Properties.Status
	}
	if f.Monitors == nil {
		f.Monitors = map[string]map[string]string{}
	}
	f.Monitors[s.Alias] = all
	return err
}

// clusters returns the clusters that contribute to the record sets, in order.
func (f ZoneFacts) clusters() (all []string) {
	for _, s := range f.Sets {
		for _, c := range s.Shares {
			if !slices.Contains(all, c.Cluster) {
				all = append(all, c.Cluster)
			}
		}
	}
	slices.Sort(all)
	return all
}

func readSet(ctx context.Context, from azure.Reader, z records.Zone, name, recordType string) (*records.Set, error) {
	id, ok := z.SetID(name, recordType)
	if !ok {
		return nil, nil
	}
	return readID(ctx, from, z, id)
}

func readID(ctx context.Context, from azure.Reader, z records.Zone, id azure.ID) (*records.Set, error) {
	doc, err := from.Get(ctx, id)
	if azure.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := records.Read(z, doc)
	return &s, err
}

// answers asks the name server of a zone for the types that it has. A private zone has none that can be asked from here.
func answers(ctx context.Context, from azure.Reader, f ZoneFacts, name, server string, ask Ask) (all []Answer, err error) {
	if server == "" && f.Zone.Private {
		return nil, nil
	}
	if server == "" {
		doc, err := from.Get(ctx, f.Zone.ID)
		if err != nil {
			return nil, err
		}
		zone, err := azure.Decode[network.DNSZone](doc)
		if err != nil || len(zone.Properties.NameServers) == 0 {
			return nil, err
		}
		server = strings.TrimSuffix(zone.Properties.NameServers[0], ".") + ":53"
	}
	for _, t := range f.asked() {
		all = append(all, ask(ctx, server, name, t))
	}
	return all, nil
}

// asked returns the types that name servers are asked for: those of the record sets, and A if there is none.
func (f ZoneFacts) asked() (all []string) {
	for _, s := range f.Sets {
		all = append(all, s.Type)
	}
	if len(all) == 0 {
		return []string{"A"}
	}
	return all
}

// askTimeout is the time for one question.
const askTimeout = 5 * time.Second

// AskServer asks a name server by UDP, and by TCP if the answer does not fit.
func AskServer(ctx context.Context, server, name, recordType string) Answer {
	a := Answer{Server: server, Type: recordType}
	question := new(mdns.Msg).SetQuestion(mdns.Fqdn(name), mdns.StringToType[recordType])
	for _, network := range []string{"udp", "tcp"} {
		client := mdns.Client{Net: network, Timeout: askTimeout}
		reply, _, err := client.ExchangeContext(ctx, question, server)
		if err != nil {
			a.Error = err.Error()
			return a
		}
		if reply.Truncated && network == "udp" {
			continue
		}
		a.Code = mdns.RcodeToString[reply.Rcode]
		for _, r := range reply.Answer {
			if h := r.Header(); h.Rrtype == mdns.StringToType[recordType] {
				a.TTL = h.Ttl
				a.Targets = append(a.Targets, strings.TrimSuffix(strings.TrimPrefix(r.String(), h.String()), "."))
			}
		}
		break
	}
	slices.Sort(a.Targets)
	return a
}
