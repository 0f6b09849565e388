package boot

import "kaz/internal/cluster/definition"

// layout is what differs between the images of a boot format.
type layout struct {
	// programs has the programs of Kubernetes, library the boot script, and plugins the CNI plugins.
	programs, library, plugins string
	// authorities is the beginning of the paths of certificate authorities that machines trust, and authorityEnd their end, as
	// update-ca-certificates of the image wants it.
	authorities, authorityEnd string
	// setName is not empty if the boot script gives the machine its computer name, as cloud-init does by itself.
	setName string
}

// script is the path of the boot script.
func (l layout) script() string { return l.library + "/bootstrap.sh" }

// layouts are the layouts by the boot format. Images that boot with Ignition have a read-only /usr.
func layouts() map[string]layout {
	return map[string]layout{
		"CloudInit": {programs: "/usr/local/bin", library: "/usr/local/lib/kaz", plugins: "/usr/lib/cni",
			authorities: "/usr/local/share/ca-certificates/kaz-", authorityEnd: ".crt"},
		definition.Ignition: {programs: "/opt/bin", library: "/opt/kaz", plugins: "/opt/cni/bin", setName: "true",
			authorities: "/etc/ssl/certs/kaz-", authorityEnd: ".pem"},
	}
}

// formatOf is the boot format of a pool's machines, or of the control plane's if pool is nil.
func formatOf(spec definition.ClusterSpec, pool *definition.NodePool) string {
	format := spec.ControlPlane.BootFormat
	if pool != nil {
		format = pool.Spec.BootFormat
	}
	if format == "" { // of a definition that was recorded before the field was there
		format = "CloudInit"
	}
	return format
}

func (b builder) layout(pool *definition.NodePool) layout { return layouts()[formatOf(b.spec, pool)] }
