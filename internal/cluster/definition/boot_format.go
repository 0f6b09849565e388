package definition

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kaz/internal/azure/machinesize"
)

// flatcar is the publisher of Flatcar Container Linux in the marketplace.
const flatcar = "kinvolk"

// bootFormats checks that images, sizes and files fit the boot format of their machines.
func (v *validator) bootFormats() {
	c := v.d.Cluster.Spec.ControlPlane
	cluster := v.d.Cluster.Metadata.Name
	v.bootFormat("Cluster", cluster, "spec.controlPlane.", c.BootFormat, c.Image)
	if c.BootFormat == Ignition && machinesize.NVMeOnly(c.VMSize) {
		v.inCluster("spec.controlPlane.vmSize", "Ignition finds the disk of etcd by its SCSI name, and this size has NVMe disks only: "+
			"want a size up to v5, or spec.controlPlane.bootFormat CloudInit")
	}
	var ignition []string // the machines that boot with it
	if c.BootFormat == Ignition {
		ignition = append(ignition, "")
	}
	for _, p := range v.d.Pools {
		v.bootFormat("NodePool", p.Metadata.Name, "spec.", p.Spec.BootFormat, p.Spec.Image)
		if p.Spec.BootFormat == Ignition {
			ignition = append(ignition, p.Metadata.Name)
		}
	}
	for _, e := range v.d.Extensions {
		if slices.ContainsFunc(ignition, e.Spec.AppliesTo.Has) {
			v.ignitionFiles(e)
		}
	}
}

// bootFormat refuses images of the marketplace that are known to read another format.
func (v *validator) bootFormat(kind, name, at, format string, i Image) {
	switch {
	case i.ID != "":
	case format == Ignition && i.Publisher == "Canonical":
		v.add(kind, name, at+"image.publisher", "Ubuntu does not read Ignition: want an image that does, such as publisher %s, offer "+
			"flatcar-container-linux-corevm-amd64 and sku stable-gen2, or %sbootFormat CloudInit", flatcar, at)
	case format != Ignition && i.Publisher == flatcar:
		v.add(kind, name, at+"bootFormat", "Flatcar Container Linux boots with Ignition: want Ignition")
	}
}

// ignitionFiles checks the files of an Extension for machines that boot with Ignition.
func (v *validator) ignitionFiles(e Extension) {
	for i, f := range e.Spec.Files {
		at := fmt.Sprintf("spec.files[%d].path", i)
		if clean := path.Clean(f.Path); clean != f.Path {
			v.add("Extension", e.Metadata.Name, at, "Ignition takes only clean paths: want %s", clean)
			continue
		}
		switch top, _, _ := strings.Cut(strings.TrimPrefix(f.Path, "/"), "/"); top {
		case "usr", "bin", "sbin", "lib", "lib64":
			v.add("Extension", e.Metadata.Name, at, "machines that boot with Ignition have a read-only /usr: want a path below another "+
				"directory, such as /opt")
		}
	}
}
