// Package boot boots virtual machines from images. A machine has its own root file system, with systemd as the first
// process. As on Azure, cloud-init or Ignition reads the custom data. Layer L4.
//
// Two processes make a machine, as in package machine. [Run] is outside, like a hypervisor: it owns the control group and
// the console. [Enter] is the first process inside: it mounts the root file system and becomes systemd.
//
// An image has layers, each made once: a Debian tree, and a tree with the programs of a Kubernetes release. See
// [Catalogue].
package boot
