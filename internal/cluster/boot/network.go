package boot

import (
	"fmt"
	"strings"
)

// podNetwork are the files of a pod network with cloud routes.
func (b builder) podNetwork() []file {
	return []file{
		{"/etc/kaz/cni.template", "0644", networkTemplate},
		{"/etc/kaz/masquerade.nft", "0644", b.masquerade()},
		{unitDir + "kaz-masquerade.service", "0644", masqueradeService},
	}
}

// networkTemplate is the template from which containerd makes the pod network, as soon as the node has a range of addresses.
const networkTemplate = `{
  "cniVersion": "1.0.0", "name": "kaz",
  "plugins": [
    {"type": "bridge", "bridge": "cbr0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// masquerade gives packets of pods to addresses outside the virtual network the address of the node. Azure knows no pods, so
// nothing would answer them. The ranges of a virtual network that exists are not known. There only pods and Services see the
// address of a pod.
func (b builder) masquerade() string {
	k := b.spec.Kubernetes
	inner := []string{k.PodCIDR, k.ServiceCIDR}
	if b.spec.Network.Subnets.Nodes.ID == "" {
		inner = append(inner, b.spec.Network.CIDRs...)
	}
	return fmt.Sprintf(`table ip kaz
delete table ip kaz
table ip kaz {
  chain postrouting {
    type nat hook postrouting priority srcnat + 10;
    ip saddr %s ip daddr != { %s } masquerade
  }
}
`, k.PodCIDR, strings.Join(inner, ", "))
}

const masqueradeService = `[Unit]
Description=Masquerade packets of pods that leave the virtual network
[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/usr/sbin/nft -f /etc/kaz/masquerade.nft
[Install]
WantedBy=multi-user.target
`
