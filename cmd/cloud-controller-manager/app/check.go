package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/check"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/imds"
	plan "kaz/internal/plan/check"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/rights"
)

// Check reads a cluster and its Azure, and judges both. before is the occasion that selects what is checked, "" for all. Mistakes in
// azure.json and an Azure that cannot be reached are findings, not errors.
func Check(ctx context.Context, cluster Cluster, before string, lookup func(string) (string, bool), options access.ClientOptions,
) (plan.Report, error) {
	if err := cluster.Validate(); err != nil {
		return plan.Report{}, err
	}
	client, err := kubernetes.NewForConfig(readOnly(cluster.Kubernetes))
	if err != nil {
		return plan.Report{}, fmt.Errorf("kubeconfig: %w", err)
	}
	return checkWith(ctx, client, cluster, before, lookup, options), nil
}

func checkWith(ctx context.Context, client kubernetes.Interface, cluster Cluster, before string, lookup func(string) (string, bool),
	options access.ClientOptions,
) plan.Report {
	c, found := checkedConfig(ctx, client, cluster, lookup)
	config := check.Config{
		Now: time.Now(), Kubernetes: client, JSON: found, ClusterName: cluster.Name, Balancers: balancerNames(c, cluster.Name),
		Group: azure.GroupID(c.SubscriptionID, c.ResourceGroup), LoadBalancers: placesOf(c)[rights.LoadBalancers].Group,
		PublicIPs: placesOf(c)[rights.PublicIPs].Group,
		Location:  strings.ToLower(strings.ReplaceAll(c.Location, " ", "")),
		Reach:     func(ctx context.Context, url string) error { return reach(ctx, options.Transport, url) },
	}
	if cluster.Kubernetes != nil {
		config.APIServer = cluster.Kubernetes.Host
	}
	if len(found.Problems) > 0 {
		config.Fault = errors.New("azure.json has mistakes: see there")
		return check.Run(ctx, config, before)
	}
	environment, err := access.DescribeCloud(ctx, options.Transport, c)
	config.Endpoints = endpointsOf(c, environment, lookup)
	watch := &azureClock{}
	options.Observe = watch.observe
	var clients *access.Clients
	if err == nil {
		clients, err = access.OpenClient(c, environment, options)
	}
	if err != nil {
		config.Fault = err
		return check.Run(ctx, config, before)
	}
	config.Azure, config.SignIn, config.Skew = clients.Fresh(), clients.SignIn, watch.skew
	config.Rights = func(ctx context.Context, more []check.Use) plan.Granted { return compareRights(ctx, clients, c, more) }
	config.Health = func(ctx context.Context, gateway azure.ID) (azure.Document, error) {
		return azure.Do(ctx, clients, azure.Request{Verb: azure.Post, ID: gateway, Action: health.Action})
	}
	return check.Run(ctx, config, before)
}

// endpointsOf returns the endpoints that a program with the configuration asks. Those of a cloud that cannot be described are not known,
// but for that of its API.
func endpointsOf(c cloudconfig.Config, e cloudconfig.Environment, lookup func(string) (string, bool)) []check.Endpoint {
	all := []check.Endpoint{{Name: "API of Azure", URL: or(e.ResourceManager, c.ResourceManagerEndpoint)}}
	token := e.Authority
	switch c.Credential() {
	case cloudconfig.ManagedIdentity, cloudconfig.ManagedIdentityFile:
		token, _ = lookup("IDENTITY_ENDPOINT")
		token = or(token, imds.DefaultEndpoint)
	default:
		if token != "" {
			token = strings.TrimSuffix(token, "/") + "/" + c.TenantID + "/v2.0/.well-known/openid-configuration"
		}
	}
	if token != "" {
		all = append(all, check.Endpoint{Name: "token endpoint", URL: token})
	}
	return all
}

// reach returns why nothing answers at a URL. It sends no token.
func reach(ctx context.Context, transport policy.Transporter, url string) error {
	if transport == nil {
		client := arm.NewTransport()
		defer client.CloseIdleConnections()
		transport = client
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := transport.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// checkedConfig reads azure.json, the Secret, or both, with the rules of the cloud-controller-manager.
func checkedConfig(ctx context.Context, client kubernetes.Interface, cluster Cluster, lookup func(string) (string, bool)) (
	cloudconfig.Config, plan.Config,
) {
	from := cluster.source(lookup)
	found := plan.Config{Path: from.String()}
	secret, err := from.readUsed(ctx, client)
	if err != nil {
		found.Problems = []plan.Mistake{{Key: "Secret", Message: err.Error()}}
		return cloudconfig.Config{}, found
	}
	c, warnings, err := cloudconfig.Read(cloudconfig.Sources{Path: cluster.CloudConfig, Secret: secret, Environment: lookup})
	for _, w := range warnings {
		found.Warnings = append(found.Warnings, plan.Mistake{Key: w.Key, Message: w.Message})
	}
	if err == nil {
		c, err = withoutBasic(c)
	}
	if err == nil {
		err = errors.Join(c.ValidateFor(cluster.Name), checkSelectors(c), unserved(c))
	}
	if problems, ok := errors.AsType[cloudconfig.Problems](err); ok {
		for _, p := range problems {
			found.Problems = append(found.Problems, plan.Mistake{Key: p.Key, Message: strings.TrimSpace(p.Value + " " + p.Message)})
		}
	} else if err != nil {
		found.Problems = append(found.Problems, plan.Mistake{Message: err.Error()})
	}
	return c, found
}

// balancerNames returns the names of the cluster's load balancers, without the suffix of internal ones.
func balancerNames(c cloudconfig.Config, clusterName string) []string {
	names := []string{or(c.LoadBalancerName, clusterName)}
	for _, b := range severalBalancers(c) {
		names = append(names, b.Name)
	}
	return names
}

// compareRights compares the rights of the identity with those that the cloud-controller-manager and further features need. Disks and
// shares are in the resource group of the machines unless a StorageClass says otherwise.
func compareRights(ctx context.Context, clients *access.Clients, c cloudconfig.Config, more []check.Use) plan.Granted {
	places := placesOf(c)
	places[rights.Disks], places[rights.StorageAccounts] = places[rights.Machines], places[rights.Machines]
	features := featuresOf(c)
	for _, u := range more {
		if u.Scope == "" {
			features = append(features, u.Features...)
		}
	}
	all := granted{seen: map[string]bool{}}
	all.add(clients.Rights(ctx, rights.Needed(features...), places))
	for _, u := range more {
		if u.Scope == "" || len(u.Features) == 0 {
			continue
		}
		at := maps.Clone(places)
		at[u.Scope] = access.Place{Group: u.At, Resource: u.Resource}
		all.add(clients.Rights(ctx, rights.Needed(u.Features...), at))
	}
	return all.Granted
}

// granted collects findings about rights, each once.
type granted struct {
	plan.Granted
	seen map[string]bool
}

func (g *granted) add(found access.Findings) {
	once := func(key string) bool {
		known := g.seen[key]
		g.seen[key] = true
		return !known
	}
	for _, l := range found.Missing {
		if once(l.Action + " " + l.At.Key()) {
			g.Missing = append(g.Missing, plan.Lack{Action: l.Action, At: l.At, Why: l.Why, Degrades: l.Degrades})
		}
	}
	for _, u := range found.Unknown {
		if once(u.At.Key()) {
			g.Unread = append(g.Unread, plan.UnreadScope{At: u.At, Fault: u.Err.Error()})
		}
	}
}

// azureClock compares the clock of this machine with the header Date of Azure's answers.
type azureClock struct {
	mu    sync.Mutex
	known bool
	ahead time.Duration
}

func (c *azureClock) observe(answer *http.Response) {
	at, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.ahead = true, time.Since(at)
}

func (c *azureClock) skew() (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0, errors.New("no answer of Azure had the time")
	}
	return c.ahead, nil
}
