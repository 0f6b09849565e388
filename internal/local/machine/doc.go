// Package machine runs virtual machines as namespaces of this machine: a network, mount, process, host name and
// cgroup space each, with containerd, kubelet, kube-proxy and cloud-node-manager in it. Layer L4.
//
// Two processes make a machine. [Run] is outside, as a hypervisor is, and owns the machine's cgroup. [Boot] is the first
// process inside: when it ends, the kernel ends everything else in the machine. Run dies with the program that started
// it and takes Boot along, so that a crash leaves no process behind. [Relay] and [Egress] are the two ways between the
// inside of machines and the API server, which is outside.
package machine
