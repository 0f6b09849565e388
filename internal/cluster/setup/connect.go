package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"

	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/etcd"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/workload"
	"kaz/internal/component/kubeconfig"
)

const (
	// dialTimeout bounds one attempt to connect to an API server. A load balancer needs some ten seconds to find out that a member is dead.
	dialTimeout = 3 * time.Second
	dialAll     = 20 * time.Second
	keepAlive   = 10 * time.Second
)

// Connect connects an engine with a cluster: its API server, its backups and lock, and etcd. It returns how the API server is reached.
func Connect(e *engine.Engine, c definition.Cluster, kubeconfigFile, kubeContext string) (*rest.Config, error) {
	n := naming.Of(c)
	config, connections, err := restConfig(n, kubeconfigFile, kubeContext)
	if err != nil {
		return nil, err
	}
	client, err := connectWorkload(e, config, connections)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of cluster %s: %w", n.Cluster, err)
	}
	container := dataplane.Container{Client: e.Planes, URL: n.ContainerURL(), Cluster: n.Cluster,
		Seal: func(ctx context.Context) (dataplane.Seal, error) {
			return SecretAuthority(ctx, e.Planes, n, "pki-etcd-ca")
		}}
	e.Backups = container
	e.Lock, e.Holder = &dataplane.Lock{Container: container}, holder()
	connectEtcd(e, c, container, etcd.Pods{Client: client, Config: config})
	return config, nil
}

// restConfig reads the kubeconfig of a cluster. The connections of its clients can be closed together.
func restConfig(n naming.Names, file, kubeContext string) (*rest.Config, *connrotation.Dialer, error) {
	if file == "" {
		file = n.Cluster + ".kubeconfig"
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file},
		&clientcmd.ConfigOverrides{CurrentContext: kubeContext}).ClientConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("kubeconfig of cluster %s: %s does not exist; want --kubeconfig, or make one with "+
			"kaz cluster kubeconfig %s", n.Cluster, file, n.Cluster)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig of cluster %s: %s: %w", n.Cluster, file, kubeconfig.Explain(err))
	}
	dialer := workload.Dialer{Once: (&net.Dialer{KeepAlive: keepAlive}).DialContext, Try: dialTimeout, All: dialAll,
		Between: 500 * time.Millisecond}
	connections := connrotation.NewDialer(dialer.DialContext)
	config.Dial = connections.DialContext
	config.QPS, config.Burst = 50, 100
	return config, connections, nil
}

// connectWorkload connects an engine with the API server of a cluster.
func connectWorkload(e *engine.Engine, config *rest.Config, connections *connrotation.Dialer) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	e.Workload = &workload.Cluster{Client: client, Objects: objects, Kinds: kinds, Close: connections.CloseAll, Say: e.Sayf,
		Metrics: func(ctx context.Context) ([]byte, error) {
			return client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		}}
	// Libraries log what they return as errors, too, and the end of each connection.
	klog.SetLogger(logr.Discard())
	return client, nil
}

// connectEtcd connects an engine with etcd, through the pods of its members. Backups go to the container.
func connectEtcd(e *engine.Engine, c definition.Cluster, container dataplane.Container, pods etcd.Pods) {
	e.Etcd = &etcd.Client{Names: pods.Names, Dial: pods.Dial,
		TLS: func(ctx context.Context) (*tls.Config, error) {
			authority, err := SecretAuthority(ctx, e.Planes, naming.Of(c), "pki-etcd-ca")
			if err != nil {
				return nil, err
			}
			return authority.TLS("kaz", time.Now())
		},
		Put: func(ctx context.Context, name string, backup *os.File) (string, error) {
			at, err := container.Save(ctx, name, backup)
			if err == nil {
				prune(ctx, e, container, c.Spec.ControlPlane.EtcdBackups)
			}
			return at, err
		},
	}
}

// holder is how other processes see this one.
func holder() string {
	name := "a user without a name"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return fmt.Sprintf("%s at %s (process %d, since %s)", name, host, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
}

// prune deletes old backups. The new one counts although that fails.
func prune(ctx context.Context, e *engine.Engine, c dataplane.Container, keep int) {
	deleted, err := c.Prune(ctx, keep)
	if len(deleted) > 0 {
		e.Sayf("%d old backups are deleted: %d are kept", len(deleted), keep)
	}
	if err != nil {
		e.Sayf("old backups stay: %v", err)
	}
}

// SecretAuthority reads a certificate authority from the key vault of a cluster.
func SecretAuthority(ctx context.Context, planes dataplane.Client, n naming.Names, what string) (pki.Authority, error) {
	text, err := planes.Secret(ctx, n.VaultURL(), n.VaultAudience()+"/.default", n.Secret(what))
	if err != nil {
		return pki.Authority{}, err
	}
	return pki.Parse([]byte(text))
}
