package fields

import "maps"

// Consumers are the programs and the resources of Azure that a value ends in, by the path of its field. The rules of a field, in fields.go
// and in limits.go of package definition, are those of its consumers: a new consumer brings its rules. Fields that only kaz reads have
// the consumer kaz.
func Consumers() map[string]string {
	all := map[string]string{}
	for _, part := range []map[string]string{clusterConsumers(), machineConsumers(), extensionConsumers()} {
		maps.Copy(all, part)
	}
	return all
}

func clusterConsumers() map[string]string {
	const c, k, n = "Cluster.spec.", "Cluster.spec.kubernetes.", "Cluster.spec.network."
	const rule, subnet, program = "security rule", "subnet, security rule", "its own flags, kubeadm"
	return map[string]string{
		"Cluster.metadata.name": "names of resources (key vault, storage container, machines), public DNS label, private DNS zone, tags, " +
			"kubeadm (clusterName), controller manager (--cluster-name)",
		c + "azure.cloud":          "azure.json, login and endpoints of the cloud",
		c + "azure.subscriptionID": "ids of resources, azure.json", c + "azure.tenantID": "azure.json, key vault",
		c + "azure.location": "location of resources, public DNS name", c + "azure.resourceGroup.name": "resource group, azure.json",
		c + "azure.resourceGroup.lifecycle": "kaz",
		c + "azure.tags":                    "tags of every resource, also of storage account and private DNS zone; autoscaler",
		k + "version":                       "URLs of programs, kubeadm (kubernetesVersion)",
		k + "dnsDomain":                     "kubeadm (dnsDomain), kubelet (clusterDomain), CoreDNS, the API server's certificate",
		k + "podCIDR":                       "kubeadm (podSubnet), controller manager (--cluster-cidr), route table, CNI",
		k + "serviceCIDR":                   "kubeadm (serviceSubnet), API server (--service-cluster-ip-range), kubelet (clusterDNS)",
		k + "podNetwork":                    "controller manager (--allocate-node-cidrs), network interfaces, route table",
		k + "apiServer.certSANs":            "kubeadm (certSANs), the API server's certificate",
		k + "apiServer.extraArgs":           program, k + "controllerManager.extraArgs": program, k + "scheduler.extraArgs": program,
		k + "artifactMirror": "curl on machines", k + "artifactChecksums": "sha256sum on machines",

		n + "cidrs": "virtual network", n + "subnets.controlPlane.id": subnet, n + "subnets.controlPlane.cidr": subnet,
		n + "subnets.nodes.id": "subnet", n + "subnets.nodes.cidr": "subnet", n + "routeTableID": "subnet, azure.json",
		n + "outbound.type": "NAT gateway, load balancer", n + "outbound.publicIPs": "NAT gateway, load balancer",
		n + "outbound.idleTimeoutMinutes": "NAT gateway, outbound rule", n + "apiServer.access": "load balancer, private DNS zone",
		n + "podMetadata":              "nftables on machines",
		n + "apiServer.port":           "kubeadm (bindPort), load balancer, security rule",
		n + "apiServer.allowedSources": rule, n + "sshSources": rule,
		n + "apiServer.internalIP": "load balancer, private DNS zone, the API server's certificate",
		n + "apiServer.dnsLabel":   "public IP address (domainNameLabel), the API server's certificate",

		c + "identity.controlPlane.id": "machines, role assignments", c + "identity.nodes.id": "machines, role assignments",
		c + "identity.roles": "role assignments", c + "identity.registryIDs": "role assignments",
		c + "keyVault.id": "key vault", c + "storage.id": "storage account",
		c + "access.adminUser": "machines (adminUsername), Linux", c + "access.sshPublicKeys": "machines (ssh.publicKeys), sshd",
		c + "machines.packages": "dpkg on machines", c + "machines.packages[].url": "curl on machines",
		c + "machines.packages[].sha256":      "sha256sum on machines",
		c + "machines.certificateAuthorities": "update-ca-certificates on machines",
		k + "imageRepository":                 "kubeadm (imageRepository), container runtime",
		c + "addons.repository":               "container runtime", c + "addons.tag": "container runtime", c + "addons.disks": "kaz",
	}
}

func machineConsumers() map[string]string {
	const c, p = "Cluster.spec.controlPlane.", "NodePool.spec."
	const size, disk, image, format = "machines (vmSize)", "disk of a machine", "machines (imageReference)", "cloud-init or Ignition"
	all := map[string]string{
		c + "replicas": "kaz, etcd", c + "etcdDisk.sizeGiB": "managed disk", c + "etcdDisk.type": "managed disk",
		c + "upgrade.strategy": "kaz", c + "etcdBackups": "kaz, on members",
		"NodePool.metadata.name": "names of scale sets and machines, tags, node label kaz/pool",
		p + "backend":            "scale set or machines", p + "replicas": "scale set (capacity), subnet, pod ranges",
		p + "autoscaling":     "kaz",
		p + "autoscaling.min": "autoscaler (tag min)", p + "autoscaling.max": "autoscaler (tag max), subnet, pod ranges",
		p + "priority": "scale set or machines", p + "spot.maxPrice": "scale set or machines (billingProfile)",
		p + "spot.evictionPolicy": "scale set or machines", p + "osDisk.ephemeral": disk, p + "dataDisks": "machines",
		p + "dataDisks[].sizeGiB": disk, p + "dataDisks[].type": disk, p + "subnet.id": "network interface", p + "subnet.cidr": "subnet",
		p + "maxPods":          "kubelet (--max-pods), pod ranges, autoscaler",
		p + "labels":           "kubelet (--node-labels), API server (NodeRestriction), autoscaler (tags of the scale set)",
		p + "taints":           "kubeadm (taints), kubelet (--register-with-taints), autoscaler (tags of the scale set)",
		p + "upgrade.maxSurge": "kaz", p + "upgrade.maxUnavailable": "kaz",
	}
	for _, at := range []string{c, p} {
		maps.Copy(all, map[string]string{at + "vmSize": size, at + "bootFormat": format, at + "zones": "machines, public IP addresses",
			at + "osDisk.sizeGiB": disk, at + "osDisk.type": disk, at + "image.id": image, at + "image.publisher": image,
			at + "image.offer": image, at + "image.sku": image, at + "image.version": image})
	}
	return all
}

func extensionConsumers() map[string]string {
	const e, c, t = "Extension.spec.", "Extension.spec.charts[].", "TemplatePatch.spec."
	const file, helm, reads = "cloud-init or Ignition", "Helm's templates", "kaz"
	return map[string]string{
		"Extension.metadata.name": "deployments, names of files", e + "appliesTo.controlPlane": reads, e + "appliesTo.pools": reads,
		e + "files": file, e + "files[].path": file, e + "files[].content": file, e + "files[].url": "curl on machines, Ignition",
		e + "files[].sha256": "sha256sum on machines, Ignition", e + "files[].mode": file, e + "commands": "bash on machines",
		e + "manifests": "API server (kubectl apply)", e + "charts": helm, e + "resources": "Azure Resource Manager",
		c + "releaseName": helm, c + "namespace": "API server, " + helm, c + "createNamespace": reads, c + "path": reads, c + "url": reads,
		c + "sha256": reads, c + "values": helm, c + "includeCRDs": reads, c + "apiVersions": helm, c + "atBoot": reads,
		"TemplatePatch.metadata.name": reads, t + "target.unit": reads, t + "target.symbol": reads, t + "target.type": reads,
		t + "merge": "Azure Resource Manager",
	}
}
