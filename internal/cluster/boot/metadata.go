package boot

// metadata are the files that keep pods from what Azure tells a machine: the tokens of its identity, and its certificates and settings.
func (b builder) metadata() []file {
	if b.spec.Network.PodMetadata == "Allowed" {
		return nil
	}
	return []file{
		{"/etc/kaz/metadata.nft", "0644", metadataRules},
		{unitDir + "kaz-metadata.service", "0644", metadataService},
		{unitDir + "kubelet.service.d/30-metadata.conf", "0644", kubeletAfterMetadata},
	}
}

// metadataRules refuse forwarded packets only. So programs of the machine and pods in its network reach Azure's addresses. DNS at the
// second address stays: it is the resolver of virtual networks.
const metadataRules = `table inet kaz-metadata
delete table inet kaz-metadata
table inet kaz-metadata {
  chain forward {
    type filter hook forward priority filter - 10;
    ip daddr 169.254.169.254 reject with icmpx admin-prohibited
    ip daddr 168.63.129.16 tcp dport { 80, 32526 } reject with icmpx admin-prohibited
  }
}
`

const metadataService = `[Unit]
Description=Keep pods from the metadata of the machine
After=nftables.service
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/usr/sbin/nft -f /etc/kaz/metadata.nft
[Install]
WantedBy=multi-user.target
`

// kubeletAfterMetadata starts no pods without the rule.
const kubeletAfterMetadata = `[Unit]
Requires=kaz-metadata.service
After=kaz-metadata.service
`
