// Package machine runs virtual machines as namespaces of this machine. Each has its own network, mounts, processes, host
// name and cgroup, with containerd, kubelet, kube-proxy and cloud-node-manager. Layer L4.
//
// Two processes make a machine. [Run] is outside, like a hypervisor, and owns the cgroup of the machine. [Boot] is the
// first process inside: when it ends, the kernel kills all other processes of the machine. Run ends with the program that
// started it, and Boot ends with Run, so that a crash leaves no process behind. [Relay] and [Egress] connect the inside
// of machines with the API server, which is outside.
package machine
