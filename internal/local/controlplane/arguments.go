package controlplane

import (
	"fmt"
	"path/filepath"
	"strconv"
)

const (
	// SimulatedLabel is the label, with the value "true", of the nodes that KWOK keeps alive. A node that loses it is
	// given up: its lease runs out and kube-controller-manager marks it NotReady.
	SimulatedLabel = "kaz.dev/simulated"
	// leaseSeconds is the life of a simulated node's lease. KWOK renews a lease after a quarter of its life.
	leaseSeconds = 20
	// monitorGrace is how long kube-controller-manager lets a node be silent before it is NotReady.
	monitorGrace = "20s"
	// monitorPeriod is how often it looks.
	monitorPeriod = "1s"
)

// etcdArguments leave fsync out: what etcd has written survives the end of any process, and only a crash of the whole
// machine can lose the last moments of a local cluster. In exchange a busy disk does not hold it up. The election of
// the only member is made as short as etcd allows.
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

// apiServerArguments publish no endpoint for the kubernetes Service: the server listens on loopback, which a Service
// cannot point to.
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
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + joined(r.config.ServiceCIDRs),
		"--service-account-issuer=" + r.config.ServiceAccountIssuer,
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
			"--cluster-cidr="+joined(r.config.PodCIDRs),
			"--service-cluster-ip-range="+joined(r.config.ServiceCIDRs))
	}
	return args
}

func (r *run) schedulerArguments() []string { return r.loopbackServer(Scheduler, r.ports.Scheduler) }

// loopbackServer is what the controller manager and the scheduler have in common.
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

// kwokArguments give pods addresses from the cluster's IPv4 range, unless their node has ranges of its own.
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
