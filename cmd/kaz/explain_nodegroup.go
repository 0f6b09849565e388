package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/internal/autoscale"
	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// nodeGroupOptions are the flags of kaz explain nodegroup.
type nodeGroupOptions struct {
	explanation
	provider         string
	named, discovery []string
}

func explainNodeGroupCommand() *cobra.Command {
	var o nodeGroupOptions
	command := o.define(&cobra.Command{
		Use:   "nodegroup SCALESET",
		Short: "Show what cluster-autoscaler sees of a scale set, and what it waits for",
		Long: `Asks the cluster-autoscaler-provider that runs in the cluster what it knows of a scale set:
whether it is a node group and why not, its sizes, its instances, the machines that Azure
refused, and what the next loop of cluster-autoscaler sees. It writes nothing.

The provider is a pod with the label app=cluster-autoscaler-provider, which is asked through
the Kubernetes API, or the one at --provider. Without either, --nodes or
--node-group-auto-discovery have the command read Azure as a provider that just started.

Exit status 0: nothing is pending. 2: something must happen, which is shown. 1: there is a
problem, which is shown, the scale set is no node group, or the command failed.

The cluster and its azure.json are selected as by kaz explain service.`,
		Example: `  kaz explain nodegroup pool
  kaz explain nodegroup pool --provider http://127.0.0.1:8087
  kaz explain nodegroup pool --nodes 1:10:pool -o json`,
	}, o.checkArguments, o.run)
	f := command.Flags()
	f.StringVar(&o.provider, "provider", "", "address of the provider's metrics, http://HOST:PORT, to ask it directly")
	f.StringArrayVar(&o.named, "nodes", nil, "read Azure with a node group MIN:MAX:SCALESET, as of the provider; may be repeated")
	f.StringArrayVar(&o.discovery, "node-group-auto-discovery", nil,
		"read Azure with a selector label:KEY=VALUE,..., as of the provider; may be repeated")
	return command
}

func (o *nodeGroupOptions) checkArguments(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d scale sets are given: want one, such as pool", len(args))
	}
	if o.provider != "" {
		u, err := url.Parse(o.provider)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("--provider %s: want http://HOST:PORT", o.provider)
		}
		if o.reads() {
			return errors.New("--provider, and --nodes or --node-group-auto-discovery: want one of them")
		}
	}
	_, err := nodegroup.ParseSelection(o.named, o.discovery)
	return err
}

// reads reports whether Azure is to be read, not a provider to be asked.
func (o *nodeGroupOptions) reads() bool { return len(o.named)+len(o.discovery) > 0 }

// run explains a scale set.
func (o *nodeGroupOptions) run(ctx context.Context, args []string, out, _ io.Writer) error {
	v, err := o.view(ctx, args[0])
	if err != nil {
		return err
	}
	return o.print(out, v, v.Ignored != "" || len(v.Problems) > 0, len(v.Waits) > 0)
}

func (o *nodeGroupOptions) view(ctx context.Context, name string) (v autoscale.View, err error) {
	if o.provider != "" {
		v, err = askAt(ctx, o.provider, name)
		v.Source = "the provider at " + o.provider
		return v, err
	}
	cluster, err := o.find(ctx)
	if err != nil {
		return v, err
	}
	client, err := kubernetes.NewForConfig(cluster.Kubernetes)
	if err != nil {
		return v, fmt.Errorf("kubeconfig: %w", err)
	}
	if o.reads() {
		v, err = o.look(ctx, cluster, client, name)
	} else {
		v, err = askInCluster(ctx, client, name)
	}
	return v, explainError(err, cluster.Kubernetes.Host)
}

// look reads Azure as a provider that just started.
func (o *nodeGroupOptions) look(ctx context.Context, cluster ccm.Cluster, client kubernetes.Interface, name string) (
	autoscale.View, error,
) {
	selection, err := nodegroup.ParseSelection(o.named, o.discovery)
	if err != nil {
		return autoscale.View{}, err
	}
	from, config, err := openAzure(ctx, cluster.CloudConfig)
	if err != nil {
		return autoscale.View{}, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return autoscale.View{}, fmt.Errorf("list nodes: %w", err)
	}
	return autoscale.Look(ctx, autoscale.Config{
		Azure: struct {
			azure.Reader
			azure.Writer
		}{from.Fresh(), from},
		ResourceGroup: azure.GroupID(config.SubscriptionID, config.ResourceGroup),
		Location:      strings.ToLower(strings.ReplaceAll(config.Location, " ", "")), Selection: selection,
		Log: slog.New(slog.DiscardHandler),
	}, nodes.Items, name)
}

// askAt asks the provider at an address.
func askAt(ctx context.Context, address, name string) (v autoscale.View, err error) {
	at := strings.TrimSuffix(address, "/") + autoscale.ViewPath + url.PathEscape(name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return v, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return v, fmt.Errorf("ask the provider: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return v, fmt.Errorf("ask the provider: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return v, fmt.Errorf("the provider at %s answers %s: %s", address, answer.Status, strings.TrimSpace(string(text)))
	}
	return v, json.Unmarshal(text, &v)
}

// askInCluster asks the providers in a cluster. Of several it returns the answer of the one that cluster-autoscaler asked
// last.
func askInCluster(ctx context.Context, client kubernetes.Interface, name string) (best autoscale.View, err error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app=cluster-autoscaler-provider"})
	if err != nil {
		return best, fmt.Errorf("list pods: %w", err)
	}
	found := false
	var failures []error
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		v, err := askPod(ctx, client, pod, name)
		if err != nil {
			failures = append(failures, fmt.Errorf("the provider in pod %s/%s: %w", pod.Namespace, pod.Name, err))
			continue
		}
		v.Source = "the provider in pod " + pod.Namespace + "/" + pod.Name
		if !found || best.LoopAge == nil || v.LoopAge != nil && *v.LoopAge < *best.LoopAge {
			best, found = v, true
		}
	}
	switch {
	case found:
		return best, nil
	case len(failures) > 0:
		return best, errors.Join(failures...)
	}
	return best, errors.New("no provider runs in the cluster: want --provider, or its flags --nodes or --node-group-auto-discovery, " +
		"to read Azure without it")
}

// askPod asks the provider in a pod through the Kubernetes API.
func askPod(ctx context.Context, client kubernetes.Interface, pod corev1.Pod, name string) (v autoscale.View, err error) {
	const metrics = 8087
	port := metrics
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "metrics" {
				port = int(p.ContainerPort)
			}
		}
	}
	text, err := client.CoreV1().Pods(pod.Namespace).
		ProxyGet("http", pod.Name, strconv.Itoa(port), autoscale.ViewPath+name, nil).DoRaw(ctx)
	if err != nil && len(text) > 0 {
		return v, fmt.Errorf("it answers: %s", strings.TrimSpace(string(text)))
	}
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(text, &v)
}
