// Package machine runs virtual machines as namespaces of this machine: a network, mount, process, host name and
// cgroup space each, with containerd, kubelet, kube-proxy and cloud-node-manager in it. Layer L4.
//
// Two processes make a machine. [Run] is outside, as a hypervisor is: it owns the machine's cgroup and answers, at
// addresses that exist inside the machine only, for the API server and for the instance metadata service. [Boot] is
// the first process inside: when it ends, the kernel ends everything else in the machine. Run dies with the program
// that started it and takes Boot along, so that a crash leaves no process behind.
package machine
