package health

import (
	"fmt"
	"strings"
)

// EtcdDisk is where the disk of etcd is mounted on a member.
const EtcdDisk = "/var/lib/etcddisk"

// Disk is a file system of a machine.
type Disk struct {
	// Path is where it is mounted.
	Path string `json:"path"`
	// Size and Free are bytes, both 0 if nothing is mounted there.
	Size int64 `json:"size"`
	Free int64 `json:"free"`
}

const mebi = 1 << 20

// Room is what is free of a disk, for people.
func (d Disk) Room() string { return fmt.Sprintf("%d MiB of %d MiB free", d.Free/mebi, d.Size/mebi) }

// below reports whether less than a share is free.
func (d Disk) below(percent int64) bool { return d.Free*100 < d.Size*percent }

const (
	// nearlyFull and noRoom are the free shares of etcd's disk, in percent, below which it counts as nearly full and as full.
	nearlyFull = 15
	noRoom     = 2
	// evicting is the free share of the operating system's disk below which the kubelet evicts pods.
	evicting = 10
)

// disks checks the disks of a member.
func (c *checker) disks(m Member) {
	if m.DiskFault != "" {
		c.found.Warn("disk", "check the right Microsoft.Compute/virtualMachines/runCommand/action, or run df on the machine",
			"the disks of member %s cannot be read: %s", m.Name, m.DiskFault)
	}
	for _, d := range m.Disks {
		switch {
		case d.Path == EtcdDisk:
			c.etcdDisk(m, d)
		case d.below(evicting):
			c.found.Warn("disk", "on the machine: journalctl --vacuum-size=200M, and crictl rmi --prune; for a greater disk set "+
				"spec.controlPlane.osDisk.sizeGiB and run kaz cluster upgrade",
				"the disk of the operating system of member %s is nearly full, and the kubelet evicts pods: %s", m.Name, d.Room())
		}
	}
}

// etcdDisk checks the disk with the database of a member.
func (c *checker) etcdDisk(m Member, d Disk) {
	remedy := "delete files below " + EtcdDisk + " that are not in its folder etcd, or replace the member, whose new disk has the " +
		"database only: " + c.command("repair", c.unit(m)) + "; for a greater disk set spec.controlPlane.etcdDisk.sizeGiB and run " +
		"kaz cluster upgrade"
	switch {
	case d.Size == 0:
		c.found.Add("disk", "see its console, or replace it with "+c.command("repair", c.unit(m)),
			"the disk of etcd of member %s is not mounted at %s, so etcd does not start", m.Name, d.Path)
	case d.below(noRoom):
		c.found.Add("disk", remedy, "the disk of etcd of member %s is full, so the member cannot write: %s", m.Name, d.Room())
	case d.below(nearlyFull):
		c.found.Warn("disk", remedy, "the disk of etcd of member %s is nearly full: %s", m.Name, d.Room())
	case d.Free < m.InUse:
		c.found.Warn("disk", remedy, "the disk of etcd of member %s has less room than its database has in use, %d MiB, and a backup and "+
			"a defragmentation need as much: %s", m.Name, m.InUse/mebi, d.Room())
	}
}

// pressure names the nodes that say that they are short of something.
func (c *checker) pressure(all []Machine) {
	var short []string
	for _, m := range all {
		if len(m.Pressure) > 0 {
			short = append(short, m.Name+" ("+strings.Join(m.Pressure, ", ")+")")
		}
	}
	if len(short) > 0 {
		c.found.Warn("nodes", "with DiskPressure the disk of the operating system is nearly full: delete logs and images there, or give "+
			"the machines a greater osDisk; with MemoryPressure and PIDPressure take pods away, or use a greater vmSize",
			"they evict pods: %s", strings.Join(short, ", "))
	}
}
