// Package why explains objects of a local cluster for the web page of its Azure. Layer L4.
package why

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"

	"kaz/internal/azure"
	"kaz/internal/localazure/web"
	"kaz/internal/picture"
)

// Explainer explains objects of a cluster for the web page of its local Azure. It runs kaz explain, which takes identities and
// certificates of a local Azure from the environment of its process.
type Explainer struct{ running atomic.Pointer[explained] }

// explained is a cluster that runs.
type explained struct {
	program, dir string
	environment  []string
	gateway      []string // flags of the controller of application gateways, none without it
	kube         kubernetes.Interface
	api          gatewayclient.Interface
}

var errNotUp = errors.New("the cluster is still starting; try again when kaz local up has printed that it is up")

// mostPicture and mostListed are limits of what is read of kaz explain, in bytes, and of the API server, in objects of a kind.
const (
	mostPicture = 16 << 20
	mostListed  = 1000
)

// Cluster is a cluster that runs.
type Cluster struct {
	Program     string // the file of kaz
	Dir         string
	Environment []string // the whole one, of clients of the cluster and its Azure
	Kubeconfig  string
	Gateways    []azure.ID // its application gateways
	Answers     string     // the Service NAMESPACE/NAME of the answers of application gateways, "" for none
}

// Begin lets the web page explain objects of a cluster from now on.
func (x *Explainer) Begin(c Cluster) error {
	e := &explained{program: c.Program, dir: c.Dir, environment: c.Environment, gateway: gatewayFlags(c)}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	if e.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if e.api, err = gatewayclient.NewForConfig(config); err != nil {
		return err
	}
	x.running.Store(e)
	return nil
}

// gatewayFlags returns the flags of the controller of application gateways, none without it.
func gatewayFlags(c Cluster) (flags []string) {
	if len(c.Gateways) == 0 {
		return nil
	}
	flags = append(flags, "--gateway-id="+string(c.Gateways[0]))
	var further []string
	for _, id := range c.Gateways[1:] {
		further = append(further, string(id))
	}
	if len(further) > 0 {
		flags = append(flags, "--further-gateway-ids="+strings.Join(further, ","))
	}
	if c.Answers != "" {
		flags = append(flags, "--answers-service="+c.Answers)
	}
	return flags
}

// Explain implements [web.Explainer].
func (x *Explainer) Explain(ctx context.Context, of web.Subject) (picture.Picture, error) {
	e := x.running.Load()
	if e == nil {
		return picture.Picture{}, errNotUp
	}
	return e.run(ctx, e.arguments(of))
}

// arguments are those of kaz that explain a subject.
func (e *explained) arguments(of web.Subject) []string {
	args := []string{"explain", of.Kind, "--dir=" + e.dir, "--output=picture"}
	switch of.Kind {
	case "ingress", "gateway", "httproute":
		args = append(args, e.gateway...)
	case "nodegroup":
		if of.Limits != "" {
			args = append(args, "--nodes="+of.Limits+":"+of.Name)
		}
	case "name":
		for _, group := range of.Groups {
			args = append(args, "--zone-resource-group="+group)
		}
	}
	return append(args, "--", of.Name)
}

// run runs kaz explain. Its exit status says whether something is pending, which the picture says, too.
func (e *explained) run(ctx context.Context, args []string) (p picture.Picture, err error) {
	var out, errs capped
	command := exec.CommandContext(ctx, e.program, args...)
	command.Env, command.Dir, command.Stdout, command.Stderr = e.environment, e.dir, &out, &errs
	err = command.Run()
	if out.Len() == 0 && err != nil {
		if said := strings.TrimSpace(errs.String()); said != "" {
			return p, errors.New(strings.TrimPrefix(said, "kaz: "))
		}
		return p, fmt.Errorf("kaz explain: %w", err)
	}
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		return p, fmt.Errorf("kaz explain: %w", err)
	}
	return p, nil
}

// capped is a buffer that refuses what is beyond its limit.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > mostPicture {
		return 0, fmt.Errorf("more than %d bytes", mostPicture)
	}
	return c.Buffer.Write(p)
}

// Objects implements [web.Explainer].
func (x *Explainer) Objects(ctx context.Context) (all []web.Subject, err error) {
	e := x.running.Load()
	if e == nil {
		return nil, errNotUp
	}
	add := func(kind string, o metav1.Object) {
		all = append(all, web.Subject{Kind: kind, Name: o.GetNamespace() + "/" + o.GetName()})
	}
	limit := metav1.ListOptions{Limit: mostListed}
	services, err := e.kube.CoreV1().Services("").List(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	for i, s := range services.Items {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			add("service", &services.Items[i])
		}
	}
	claims, err := e.kube.CoreV1().PersistentVolumeClaims("").List(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range claims.Items {
		add("volume", &claims.Items[i])
	}
	if len(e.gateway) == 0 {
		return all, nil
	}
	return all, e.gatewayObjects(ctx, limit, add)
}

// gatewayObjects lists what application gateways serve.
func (e *explained) gatewayObjects(ctx context.Context, limit metav1.ListOptions, add func(kind string, o metav1.Object)) error {
	ingresses, err := e.kube.NetworkingV1().Ingresses("").List(ctx, limit)
	if err != nil {
		return fmt.Errorf("list Ingresses: %w", err)
	}
	for i := range ingresses.Items {
		add("ingress", &ingresses.Items[i])
	}
	gateways, err := e.api.GatewayV1().Gateways("").List(ctx, limit)
	if err != nil {
		return fmt.Errorf("list Gateways: %w", err)
	}
	for i := range gateways.Items {
		add("gateway", &gateways.Items[i])
	}
	routes, err := e.api.GatewayV1().HTTPRoutes("").List(ctx, limit)
	if err != nil {
		return fmt.Errorf("list HTTPRoutes: %w", err)
	}
	for i := range routes.Items {
		add("httproute", &routes.Items[i])
	}
	return nil
}
