package boot

import "fmt"

// unitDir has the units of systemd that belong to a machine.
const unitDir = "/etc/systemd/system/"

// kubeletService is the unit of the kubelet.
func kubeletService(at layout) string {
	return `[Unit]
Description=kubelet
After=containerd.service network-online.target
Wants=network-online.target
[Service]
ExecStart=` + at.programs + `/kubelet
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
`
}

// kubeletArguments are the arguments of the kubelet, as kubeadm writes them. The boot script adds those of programs that a
// machine may have or not.
func kubeletArguments(at layout) string {
	return `[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/kaz/kubelet.env
ExecStart=
ExecStart=` + at.programs + `/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
  --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS $KAZ_KUBELET_ARGS
`
}

// kubeletIdentity lets the boot script get the kubelet's certificate before the kubelet starts for the first time. The script waits some
// minutes for an approval.
func kubeletIdentity(at layout) string {
	return "[Service]\nTimeoutStartSec=10min\nExecStartPre=" + at.script() + " identity\n"
}

// kubeletAfterDisk lets the kubelet of a member wait for the disk of etcd. Without this wait a machine that boots again could
// start etcd in the empty directory below the mount point, as a new cluster.
const kubeletAfterDisk = `[Service]
ExecStartPre=/bin/sh -c 'until mountpoint -q /var/lib/etcddisk; do sleep 1; done'
`

// timer runs a task of the boot script periodically on members of the control plane, after their boot.
type timer struct {
	name, about, every, spread string
	after                      string // a line of the service that runs something after it
}

// timers returns the timers of the control plane. They start at different times on each member. A renewal of certificates
// restarts etcd, so all members must not do it at once.
func timers(at layout, backups int) []timer {
	// The "-" ignores an error: a backup counts although old backups could not be deleted.
	after := fmt.Sprintf("ExecStartPost=-%s prune %d\n", at.script(), backups)
	return []timer{
		{"backup", "Save etcd in the storage account", "hourly", "10min", after},
		{"renew", "Renew the certificates of the control plane", "daily", "20h", ""},
		{"join-token", "Keep the join token of the key vault valid", "*-*-* 00/12:00:00", "1h", ""},
	}
}

// files are the units of a timer.
func (t timer) files(at layout) []file {
	return []file{
		{unitDir + "kaz-" + t.name + ".service", "0644", "[Unit]\nDescription=" + t.about +
			"\nConditionPathExists=/run/kaz/bootstrap-success\n[Service]\nType=oneshot\n" +
			"ExecStart=" + at.script() + " " + t.name + "\n" + t.after},
		{unitDir + "kaz-" + t.name + ".timer", "0644", "[Unit]\nDescription=" + t.about + "\n[Timer]\nOnCalendar=" + t.every +
			"\nRandomizedDelaySec=" + t.spread + "\nPersistent=true\n[Install]\nWantedBy=timers.target\n"},
	}
}

// bootstrapUnit is the unit that runs the boot script.
const bootstrapUnit = "kaz-bootstrap.service"

func bootstrapService(at layout) string {
	return `[Unit]
Description=Join the Kubernetes cluster
After=network-online.target
Wants=network-online.target
[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/bin/bash -o pipefail -c "` + at.script() + ` 2>&1 | tee -a /var/log/kaz-bootstrap.log"
StandardOutput=journal+console
[Install]
WantedBy=multi-user.target
`
}
