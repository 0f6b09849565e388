package controlplane

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"kaz/internal/localcluster/cidr"
)

const (
	// SimulatedLabel is the label, with the value "true", of nodes that KWOK simulates. Without it the lease of the node
	// expires and kube-controller-manager marks the node NotReady.
	SimulatedLabel = "kaz.dev/simulated"
	// leaseSeconds is the duration of a simulated node's lease. KWOK renews a lease after a quarter of it.
	leaseSeconds = 20
	// monitorGrace is the time without a lease renewal after which kube-controller-manager marks a node NotReady.
	monitorGrace = "20s"
	// monitorPeriod is the interval at which kube-controller-manager checks leases.
	monitorPeriod = "1s"
)

// etcdArguments returns the arguments of etcd. They disable fsync, so that a busy disk does not delay the cluster: only a
// crash of the whole machine loses the last writes. The election of the single member is as short as etcd allows.
func (r *run) etcdArguments() []string {
	client, peer := secureURL(r.ports.Etcd), secureURL(r.ports.EtcdPeer)
	return []string{
		"--name=kaz",
		"--data-dir=" + filepath.Join(r.dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=kaz=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + r.pki.etcd.file,
		"--cert-file=" + r.pki.etcdServing,
		"--key-file=" + r.pki.etcdKey,
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + r.pki.etcd.file,
		"--peer-cert-file=" + r.pki.etcdServing,
		"--peer-key-file=" + r.pki.etcdKey,
		"--unsafe-no-fsync=true",
		"--heartbeat-interval=10",
		"--election-timeout=100",
	}
}

// apiServerArguments returns the arguments of the API server. It publishes no endpoint of the kubernetes Service: it
// listens on loopback, which a Service cannot have as an endpoint. It calls webhooks and aggregated API servers by the
// addresses of their pods, because ClusterIPs exist only on nodes.
func (r *run) apiServerArguments() []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(r.ports.APIServer),
		"--tls-cert-file=" + r.pki.serving,
		"--tls-private-key-file=" + r.pki.servingKey,
		"--client-ca-file=" + r.pki.cluster.file,
		"--etcd-servers=" + secureURL(r.ports.Etcd),
		"--etcd-cafile=" + r.pki.etcd.file,
		"--etcd-certfile=" + r.pki.etcdClient,
		"--etcd-keyfile=" + r.pki.etcdClientKey,
		"--requestheader-client-ca-file=" + r.pki.front.file,
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + r.pki.proxy,
		"--proxy-client-key-file=" + r.pki.proxyKey,
		"--enable-aggregator-routing=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + cidr.Join(r.config.ServiceCIDRs),
		"--service-account-issuer=" + r.config.ServiceAccountIssuer,
		// The default is the address on loopback. The name in the issuer reaches the API server in pods.
		"--service-account-jwks-uri=" + strings.TrimSuffix(r.config.ServiceAccountIssuer, "/") + "/openid/v1/jwks",
		"--service-account-key-file=" + r.pki.accountPublic,
		"--service-account-signing-key-file=" + r.pki.accountKey,
		"--kubelet-client-certificate=" + r.pki.kubeletClient,
		"--kubelet-client-key=" + r.pki.kubeletClientKey,
		"--kubelet-preferred-address-types=InternalIP",
		"--profiling=false",
	}
	if r.config.Egress != "" {
		args = append(args, "--egress-selector-config-file="+r.egressFile())
	}
	return args
}

func (r *run) controllerManagerArguments() []string {
	args := append(r.loopbackServer(ControllerManager, r.ports.ControllerManager),
		"--cloud-provider=external",
		"--node-monitor-grace-period="+monitorGrace,
		"--node-monitor-period="+monitorPeriod,
		"--allocate-node-cidrs="+strconv.FormatBool(r.config.AllocateNodeCIDRs),
		"--configure-cloud-routes=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+r.pki.accountKey,
		"--root-ca-file="+r.pki.cluster.file,
		"--cluster-signing-cert-file="+r.pki.cluster.file,
		"--cluster-signing-key-file="+filepath.Join(r.pki.dir, "ca.key"),
	)
	if r.config.AllocateNodeCIDRs {
		args = append(args,
			"--cluster-cidr="+cidr.Join(r.config.PodCIDRs),
			"--service-cluster-ip-range="+cidr.Join(r.config.ServiceCIDRs))
	}
	return args
}

func (r *run) schedulerArguments() []string { return r.loopbackServer(Scheduler, r.ports.Scheduler) }

// loopbackServer returns the arguments that the controller manager and the scheduler share.
func (r *run) loopbackServer(name string, port int) []string {
	own := r.kubeconfigFile(name)
	return []string{
		"--kubeconfig=" + own,
		"--authentication-kubeconfig=" + own,
		"--authorization-kubeconfig=" + own,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + r.pki.serving,
		"--tls-private-key-file=" + r.pki.servingKey,
		"--leader-elect=false",
		"--profiling=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

// kwokArguments returns the arguments of KWOK. Pods on nodes without a pod range get addresses of the cluster's IPv4 range.
func (r *run) kwokArguments() []string {
	return []string{
		"--kubeconfig=" + r.kubeconfigFile(KWOK),
		"--config=" + r.stagesFile(),
		"--manage-all-nodes=false",
		fmt.Sprintf("--manage-nodes-with-label-selector=%s=true", SimulatedLabel),
		"--node-lease-duration-seconds=" + strconv.Itoa(leaseSeconds),
		"--cidr=" + r.config.PodCIDRs[0].String(),
		"--server-address=" + loopbackAddress(r.ports.KWOK),
	}
}
