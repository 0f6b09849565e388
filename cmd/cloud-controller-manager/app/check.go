package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"kaz/internal/azure"
	"kaz/internal/check"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	plan "kaz/internal/plan/check"
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
	c, found := checkedConfig(cluster, lookup)
	config := check.Config{
		Now: time.Now(), Kubernetes: client, JSON: found, ClusterName: cluster.Name, Balancers: balancerNames(c, cluster.Name),
		Group: azure.GroupID(c.SubscriptionID, c.ResourceGroup), LoadBalancers: placesOf(c)[rights.LoadBalancers].Group,
		PublicIPs: placesOf(c)[rights.PublicIPs].Group,
		Location:  strings.ToLower(strings.ReplaceAll(c.Location, " ", "")),
	}
	if len(found.Problems) > 0 {
		config.Fault = errors.New("azure.json has mistakes: see there")
		return check.Run(ctx, config, before)
	}
	watch := &azureClock{}
	options.Observe = watch.observe
	clients, _, err := access.Open(ctx, c, options)
	if err != nil {
		config.Fault = err
		return check.Run(ctx, config, before)
	}
	config.Azure, config.SignIn, config.Skew = clients.Fresh(), clients.SignIn, watch.skew
	config.Rights = func(ctx context.Context, more []rights.Feature) plan.Granted {
		return compareRights(ctx, clients, c, more)
	}
	return check.Run(ctx, config, before)
}

// checkedConfig reads azure.json with the rules of the cloud-controller-manager.
func checkedConfig(cluster Cluster, lookup func(string) (string, bool)) (cloudconfig.Config, plan.Config) {
	found := plan.Config{Path: cluster.CloudConfig}
	c, warnings, err := cloudconfig.Read(cloudconfig.Sources{Path: cluster.CloudConfig, Environment: lookup})
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
func compareRights(ctx context.Context, clients *access.Clients, c cloudconfig.Config, more []rights.Feature) plan.Granted {
	places := placesOf(c)
	places[rights.Disks], places[rights.StorageAccounts] = places[rights.Machines], places[rights.Machines]
	found := clients.Rights(ctx, rights.Needed(append(featuresOf(c), more...)...), places)
	var all plan.Granted
	for _, l := range found.Missing {
		all.Missing = append(all.Missing, plan.Lack{Action: l.Action, At: l.At, Why: l.Why, Degrades: l.Degrades})
	}
	for _, u := range found.Unknown {
		all.Unread = append(all.Unread, plan.UnreadScope{At: u.At, Fault: u.Err.Error()})
	}
	return all
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
