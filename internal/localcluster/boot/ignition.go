package boot

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ignitionPackages returns the packages of the image that boots with Ignition. Like Flatcar Container Linux it has neither cloud-init nor
// python3 nor jq, and gawk as awk.
func ignitionPackages() []string {
	all := slices.DeleteFunc(packages(), func(name string) bool {
		return slices.Contains([]string{"cloud-init", "cloud-guest-utils", "python3", "python3-cffi-backend", "jq"}, name)
	})
	return append(all, "ignition", "gawk", "openssl")
}

// plugins is where the image has the CNI plugins: nothing can write /usr.
const plugins = "opt/cni/bin"

// ignitionTree returns the layer with Debian and Ignition.
func (c Catalogue) ignitionTree(ctx context.Context) (string, error) {
	from := append([]string{suite, plugins}, slices.Sorted(slices.Values(ignitionPackages()))...)
	return c.once(ctx, "ignition-tree", from, func(dir string) error {
		if err := bootstrap(ctx, dir, ignitionPackages()); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(plugins)), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, "usr/lib/cni"), filepath.Join(dir, plugins)); err != nil {
			return err
		}
		return remove(dir, "usr/bin/apt-get") // the image has no package manager
	})
}

// healthReport is a script in place of the Azure agent of an image such as Flatcar. cloud-init does this itself.
const healthReport = `#!/bin/sh
# Reports to the wire server that the machine has started, as the Azure agent of an image does.
set -eu
ask() { curl -sS -f --retry 10 --retry-delay 1 --retry-all-errors --noproxy '*' -H 'x-ms-version: 2015-04-05' "$@"; }
goal=$(ask 'http://168.63.129.16/machine?comp=goalstate')
value() { printf %s "$goal" | sed -n "s|.*<$1>\(.*\)</$1>.*|\1|p"; }
ask -H 'Content-Type: text/xml; charset=utf-8' --data-binary @- 'http://168.63.129.16/machine?comp=health' <<XML
<?xml version="1.0" encoding="utf-8"?>
<Health>
  <GoalStateIncarnation>$(value Incarnation)</GoalStateIncarnation>
  <Container>
    <ContainerId>$(value ContainerId)</ContainerId>
    <RoleInstanceList>
      <Role><InstanceId>$(value InstanceId)</InstanceId><Health><State>Ready</State></Health></Role>
    </RoleInstanceList>
  </Container>
</Health>
XML
`

const healthUnit = `[Unit]
Description=Report to Azure that the machine has started
After=network-online.target
Wants=network-online.target
[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/usr/lib/azure/report-health
[Install]
WantedBy=multi-user.target
`

// ignitionSettings returns the files with which the image fits this host, by name.
func ignitionSettings() map[string]string {
	all := settings()
	delete(all, "etc/cloud/cloud.cfg.d/90-azure.cfg")
	all["etc/hostname"] = "localhost\n" // the boot script gives the machine its name
	all["etc/network/interfaces.d/eth0"] = "auto eth0\niface eth0 inet dhcp\n"
	all["usr/lib/modules/none"] = "The kernel is that of the host.\n" // pods mount the directory, which the kernel's package makes
	all["usr/lib/azure/report-health"], all["etc/systemd/system/report-health.service"] = healthReport, healthUnit
	// Debian's Ignition labels the files that it writes for SELinux, which the image does not have.
	all["etc/selinux/config"] = "SELINUX=disabled\nSELINUXTYPE=none\n"
	all["usr/sbin/setfiles"] = "#!/bin/sh\ncat > /dev/null\n"
	return all
}

// Ignition returns the image that boots with Ignition, with Kubernetes. It has the container images of another image.
func (c Catalogue) Ignition(ctx context.Context, content Content, other Image) (Image, error) {
	tree, err := c.ignitionTree(ctx)
	if err != nil {
		return Image{}, err
	}
	files, symbolic := ignitionSettings(), links()
	symbolic["etc/systemd/system/multi-user.target.wants/report-health.service"] = "/etc/systemd/system/report-health.service"
	host, err := c.once(ctx, "ignition-host", hashInputs(files, symbolic), func(dir string) error { return write(dir, files, symbolic) })
	if err != nil {
		return Image{}, err
	}
	programs, err := c.programs(ctx, "ignition-kubernetes-", "opt/bin", content.Releases)
	other.Layers, other.Ignition = []string{programs, host, tree}, true
	return other, err
}

// ReadsIgnition reports whether custom data, in base64, is an Ignition config.
func ReadsIgnition(customData string) bool {
	text, err := base64.StdEncoding.DecodeString(customData)
	return err == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}

// enabledUnits returns the units that a preset file of systemd enables.
func enabledUnits(preset string) []string {
	var all []string
	for line := range strings.Lines(preset) {
		if unit, enabled := strings.CutPrefix(strings.TrimSpace(line), "enable "); enabled {
			all = append(all, strings.TrimSpace(unit))
		}
	}
	return all
}
