// Package testkit has what tests of several packages share. It has a local Azure in the test's process with a cluster's
// infrastructure, and the scenarios for every way to run kaz. For tests only. Layer L4.
package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kaz/internal/arm/cache"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// Names of the cluster's infrastructure.
const (
	Subscription  = core.DefaultSubscription
	ResourceGroup = "rg"
	Location      = "westeurope"
	ClusterName   = "kubernetes"
	ScaleSet      = "nodes0"
)

// Group is the resource group of the cluster.
const Group = azure.ID("/subscriptions/" + Subscription + "/resourceGroups/" + ResourceGroup)

// Ids of the cluster's infrastructure and of resources that kaz creates.
const (
	SecurityGroup = Group + "/providers/" + network.SecurityGroups + "/nsg"
	VNet          = Group + "/providers/Microsoft.Network/virtualNetworks/vnet"
	Nodes         = Group + "/providers/" + compute.ScaleSets + "/" + ScaleSet
	LoadBalancer  = Group + "/providers/" + network.LoadBalancers + "/" + ClusterName
)

// Azure is a local Azure in the test's process with an ARM client.
type Azure struct {
	*core.Emulator
	// Client is the ARM client of a component, with a cache and a budget.
	Client *cache.Cache
	log    *requests
	t      testing.TB
}

// NewAzure starts a local Azure with the infrastructure of an empty cluster and the given number of
// nodes.
func NewAzure(t testing.TB, o core.Options, nodes int) *Azure {
	t.Helper()
	log := &requests{}
	o.Providers, o.RequestLog = providers.All(), log
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	a := &Azure{Emulator: e, Client: openClient(t, transport{e.Transport()}), log: log, t: t}
	a.layCluster(nodes)
	log.reset()
	return a
}

// Restarted returns a local Azure with the state of this one, and with other options. What takes long with the latency of
// Azure can be made without it before.
func (a *Azure) Restarted(o core.Options) *Azure {
	a.t.Helper()
	log := &requests{}
	o.Providers, o.RequestLog = providers.All(), log
	e, err := core.New(o)
	if err != nil {
		a.t.Fatal(err)
	}
	var state bytes.Buffer
	if err := errors.Join(a.Save(&state), e.Load(&state)); err != nil {
		a.t.Fatal(err)
	}
	return &Azure{Emulator: e, Client: openClient(a.t, transport{e.Transport()}), log: log, t: a.t}
}

// transport adapts a RoundTripper to azcore.
type transport struct{ http.RoundTripper }

func (t transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

type object = map[string]any

func (a *Azure) layCluster(nodes int) {
	a.t.Helper()
	a.Put(Group, object{"location": Location})
	a.Put(SecurityGroup, object{"location": Location})
	a.layNetwork([]string{"10.240.0.0/16"})
	a.AddScaleSet(ScaleSet, Uniform, nodes, "1", "2", "3")
}

func (a *Azure) layNetwork(prefixes []string) {
	a.t.Helper()
	a.Put(VNet, object{"location": Location, "properties": object{
		"addressSpace": object{"addressPrefixes": prefixes},
		"subnets": []object{{"name": nodesSubnet.Name(), "properties": object{
			"addressPrefixes": prefixes, "networkSecurityGroup": object{"id": SecurityGroup},
		}}},
	}})
}

// DualStack adds IPv6 addresses to the cluster's network.
func (a *Azure) DualStack() {
	a.t.Helper()
	a.layNetwork([]string{"10.240.0.0/16", "fd00:240::/64"})
}

// Put writes a document and waits for the operation.
func (a *Azure) Put(id azure.ID, body any) {
	a.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.Client.Put(context.WithoutCancel(a.t.Context()), azure.Write{ID: id, Body: text}); err != nil {
		a.t.Fatal(err)
	}
}

// Read returns the typed view of a resource, and false if it does not exist.
func Read[P any](a *Azure, id azure.ID) (azure.Resource[P], bool) {
	a.t.Helper()
	doc, err := a.Client.Fresh().Get(context.WithoutCancel(a.t.Context()), id)
	if azure.IsNotFound(err) {
		return azure.Resource[P]{}, false
	}
	if err != nil {
		a.t.Fatal(err)
	}
	r, err := azure.Decode[P](doc)
	if err != nil {
		a.t.Fatal(err)
	}
	return r, true
}

// Must is like Read for a resource that must exist.
func Must[P any](a *Azure, id azure.ID) azure.Resource[P] {
	a.t.Helper()
	r, ok := Read[P](a, id)
	if !ok {
		a.t.Fatalf("%s is not there", id)
	}
	return r
}

// List returns the typed views of a list.
func List[P any](a *Azure, scope azure.ID, fullType string) []azure.Resource[P] {
	a.t.Helper()
	docs, err := a.Client.Fresh().List(context.WithoutCancel(a.t.Context()), azure.Query{Scope: scope, Type: fullType})
	if err != nil {
		a.t.Fatal(err)
	}
	var all []azure.Resource[P]
	for _, d := range docs {
		r, err := azure.Decode[P](d)
		if err != nil {
			a.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// Writes returns the writes since the start or the last [Azure.Forget], as "PUT .../kubernetes",
// without polls.
func (a *Azure) Writes() []string { return a.log.writes() }

// WritesBy returns how many of the writes have a method.
func (a *Azure) WritesBy(method string) (n int) {
	for _, line := range a.Writes() {
		if strings.HasPrefix(line, method+" ") {
			n++
		}
	}
	return n
}

// Forget clears the request log.
func (a *Azure) Forget() { a.log.reset() }

// Snapshot returns the whole resource group without the fields that change with every write, for
// comparisons.
func (a *Azure) Snapshot() map[string]string {
	a.t.Helper()
	return Snapshot(a.t, a.Client.Fresh(), Group, Nodes)
}

// UnderWay reports whether an operation on the cluster's resources is in progress. It sends no
// request.
func (a *Azure) UnderWay() (some bool) {
	look := func(doc object) {
		properties, _ := doc["properties"].(object)
		some = some || !slices.Contains([]any{nil, "Succeeded", "Failed", "Canceled"}, properties["provisioningState"])
	}
	a.Look(func(w behaviour.World) {
		for id, doc := range w.In(Group) {
			look(doc)
			for _, part := range w.In(id) {
				look(part)
			}
		}
	})
	return some
}

// Snapshot returns the resource group of a cluster on any local Azure, without the fields that change
// with every write.
func Snapshot(t testing.TB, from azure.Reader, group azure.ID, scaleSets ...azure.ID) map[string]string {
	t.Helper()
	var queries []azure.Query
	for _, fullType := range []string{
		network.LoadBalancers, network.PublicIPAddresses, network.SecurityGroups,
		compute.ScaleSets, "Microsoft.Network/virtualNetworks", network.PrivateLinkServices,
	} {
		queries = append(queries, azure.Query{Scope: group, Type: fullType})
	}
	for _, set := range scaleSets {
		queries = append(queries, azure.Query{Scope: set, Type: compute.ScaleSetInstances})
	}
	all := map[string]string{}
	for _, q := range queries {
		docs, err := from.List(context.WithoutCancel(t.Context()), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			all[string(d.ID())] = withoutEtags(t, d)
		}
	}
	return all
}

func withoutEtags(t testing.TB, d azure.Document) string {
	var tree any
	if err := json.Unmarshal(d, &tree); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(x any) {
		switch x := x.(type) {
		case map[string]any:
			delete(x, "etag")
			delete(x, "latestModelApplied")     // of a machine that did not get its model's last change
			delete(x, "modelDefinitionApplied") // set by any write of the machine
			for k, v := range x {
				strip(v)
				if list, ok := v.([]any); ok && len(list) == 0 {
					delete(x, k) // Azure returns some lists as empty after a write
				}
				if tags, ok := v.(map[string]any); ok && len(tags) == 0 && k == "tags" {
					delete(x, k)
				}
			}
		case []any:
			for _, v := range x {
				strip(v)
			}
		}
	}
	strip(tree)
	text, err := json.MarshalIndent(tree, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// requests is a request log.
type requests struct {
	mu    sync.Mutex
	lines []string
	rest  []byte
}

func (r *requests) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, p...)
	for {
		line, rest, ok := bytes.Cut(r.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		r.lines, r.rest = append(r.lines, string(line)), rest
	}
}

var _ io.Writer = (*requests)(nil)

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = nil
}

func (r *requests) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, line := range r.lines {
		var req struct{ Method, Path string }
		if err := json.Unmarshal([]byte(line), &req); err != nil {
			all = append(all, "unreadable: "+line)
			continue
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			all = append(all, fmt.Sprintf("%s %s", req.Method, req.Path[strings.LastIndexByte(req.Path, '/')+1:]))
		}
	}
	slices.Sort(all)
	return all
}
