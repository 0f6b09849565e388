// Package boot boots virtual machines from images: a root file system of its own with systemd as the first process, and
// cloud-init or Ignition, which read custom data as on Azure. Layer L4.
//
// Two processes make a machine, as in package machine. [Run] is outside, like a hypervisor: it owns the control group and
// the console. [Enter] is the first process inside: it mounts the root file system and becomes systemd.
//
// An image has layers, each made once: a Debian tree, and one with the programs of a Kubernetes release. See [Catalogue].
package boot
