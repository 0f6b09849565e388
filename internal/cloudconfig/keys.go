package cloudconfig

import (
	"time"

	"kaz/internal/azure/secret"
)

// sections is the table of all keys. Facts about defaults and meanings are
// those of the components that users run today.
func sections() []section {
	return []section{
		{"Cloud and subscription", cloudKeys()},
		{"Identity", authKeys()},
		{"Cluster and network", clusterKeys()},
		{"Machines and routes", machineKeys()},
		{"Tags", tagKeys()},
		{"Load balancers", loadBalancerKeys()},
		{"Caches", cacheKeys()},
		{"Retries", backoffKeys()},
		{"Rate limits", rateLimitKeys()},
	}
}

func cloudKeys() []key {
	return []key{
		text("cloud", func(c *Config) *string { return &c.Cloud },
			"Name of the cloud, in any case. With `resourceManagerEndpoint` it may be any name that the endpoint describes.").
			orElse("AzurePublicCloud; with `resourceManagerEndpoint`, the first cloud that it describes"),
		text("resourceManagerEndpoint", func(c *Config) *string { return &c.ResourceManagerEndpoint },
			"Address of another Azure Resource Manager, `https://host[:port]`. The program reads the description of that cloud "+
				"from its `/metadata/endpoints`."),
		text("userAgent", func(c *Config) *string { return &c.UserAgent },
			"Complete User-Agent header of Azure requests.").orElse("name and version of the program"),
		text("tenantId", func(c *Config) *string { return &c.TenantID },
			"Entra ID tenant: id or domain, or `adfs`."),
		text("subscriptionId", func(c *Config) *string { return &c.SubscriptionID },
			"Subscription of the cluster."),
		text("networkResourceTenantID", func(c *Config) *string { return &c.NetworkResourceTenantID },
			"Tenant of the network resources.").orElse("`tenantId`"),
		text("networkResourceSubscriptionID", func(c *Config) *string { return &c.NetworkResourceSubscriptionID },
			"Subscription of load balancers, public IPs, security group, route table, virtual network and private link services.").orElse(
			"`subscriptionId`"),
		boolean("disableAzureStackCloud", func(c *Config) *bool { return &c.DisableAzureStackCloud },
			"With `cloud` AzureStackCloud: use its own endpoints, but the API versions and zones of Azure."),
		inert("identitySystem", "the tenant determines it: `adfs` or any other"),
	}
}

func authKeys() []key {
	return []key{
		text("aadClientId", func(c *Config) *string { return &c.AADClientID },
			"Client id of a service principal or of a workload identity."),
		hidden("aadClientSecret", func(c *Config) *secret.Text { return &c.AADClientSecret },
			"Secret of the service principal."),
		text("aadClientCertPath", func(c *Config) *string { return &c.AADClientCertPath },
			"PKCS#12 or PEM file with the certificate and key of the service principal."),
		hidden("aadClientCertPassword", func(c *Config) *secret.Text { return &c.AADClientCertPassword },
			"Password of the certificate file."),
		boolean("useManagedIdentityExtension", func(c *Config) *bool { return &c.UseManagedIdentityExtension },
			"Use the managed identity of the machine."),
		text("userAssignedIdentityID", func(c *Config) *string { return &c.UserAssignedIdentityID },
			"User-assigned identity: its client id or its resource id.").orElse("the system-assigned identity"),
		boolean("useFederatedWorkloadIdentityExtension", func(c *Config) *bool { return &c.UseFederatedWorkloadIdentityExtension },
			"Use workload identity: a Kubernetes token is exchanged for a token of Entra ID."),
		text("aadFederatedTokenFile", func(c *Config) *string { return &c.AADFederatedTokenFile },
			"File with the Kubernetes token for workload identity."),
		text("aadMSIDataPlaneIdentityPath", func(c *Config) *string { return &c.AADMSIDataPlaneIdentityPath },
			"Credential file of a managed identity, for hosted control planes: JSON with `client_id`, `tenant_id`, "+
				"`authentication_endpoint` and `client_secret`, a certificate with its key in base64. kaz uses a new certificate "+
				"when the file changes."),
		object("auxiliaryTokenProvider", func(c *Config) any { return &c.AuxiliaryTokenProvider },
			"Key Vault secret with a token for the network tenant, for managed identity: `subscriptionID`, `resourceGroup`, "+
				"`vaultName`, `secretName`."),
	}
}

func clusterKeys() []key {
	return []key{
		text("cloudConfigType", func(c *Config) *string { return (*string)(&c.CloudConfigType) },
			"Which source is used if there are a file and a Secret. `merge`: keys of the Secret override those of the file.").
			or("merge").exactly("file", "secret", "merge"),
		text("resourceGroup", func(c *Config) *string { return &c.ResourceGroup },
			"Resource group of the cluster. Converted to lower case."),
		text("location", func(c *Config) *string { return &c.Location }, "Region of created resources."),
		text("extendedLocationName", func(c *Config) *string { return &c.ExtendedLocationName },
			"Edge zone of created resources. Requires `extendedLocationType`."),
		text("extendedLocationType", func(c *Config) *string { return &c.ExtendedLocationType },
			"Type of the extended location.").oneOf("EdgeZone"),
		text("vnetName", func(c *Config) *string { return &c.VnetName }, "Virtual network of the nodes."),
		text("vnetResourceGroup", func(c *Config) *string { return &c.VnetResourceGroup }, "Its resource group.").orElse("`resourceGroup`"),
		text("subnetName", func(c *Config) *string { return &c.SubnetName }, "Subnet of internal load balancers."),
		text("securityGroupName", func(c *Config) *string { return &c.SecurityGroupName }, "Network security group of the nodes."),
		text("securityGroupResourceGroup", func(c *Config) *string { return &c.SecurityGroupResourceGroup },
			"Its resource group.").orElse("`resourceGroup`"),
		text("routeTableName", func(c *Config) *string { return &c.RouteTableName }, "Route table of the pod networks."),
		text("routeTableResourceGroup", func(c *Config) *string { return &c.RouteTableResourceGroup },
			"Its resource group.").orElse("`resourceGroup`"),
		boolean("disableCloudProvider", func(c *Config) *bool { return &c.DisableCloudProvider },
			"On reload: stop all controllers and stay stopped."),
	}
}

func machineKeys() []key {
	return []key{
		text("vmType", func(c *Config) *string { return (*string)(&c.VMType) },
			"Kind of the nodes' machines, if it is not known otherwise: instances of uniform scale sets, virtual "+
				"machines (in availability sets), or instances of flexible scale sets.").
			or("vmss").oneOf("vmss", "standard", "vmssflex"),
		text("primaryAvailabilitySetName", func(c *Config) *string { return &c.PrimaryAvailabilitySetName },
			"Has no effect: load balancers contain the nodes of all sets."),
		text("primaryScaleSetName", func(c *Config) *string { return &c.PrimaryScaleSetName },
			"Has no effect: load balancers contain the nodes of all sets."),
		boolean("disableAvailabilitySetNodes", func(c *Config) *bool { return &c.DisableAvailabilitySetNodes },
			"Has no effect: the kind of a machine is read from Azure. Only with `vmType` vmss."),
		boolean("enableVmssFlexNodes", func(c *Config) *bool { return &c.EnableVmssFlexNodes },
			"Has no effect: flexible scale sets are always found."),
		boolean("useInstanceMetadata", func(c *Config) *bool { return &c.UseInstanceMetadata },
			"Allows a file without credentials, as on a node. Otherwise it has no effect: controllers use the Azure API, and node "+
				"managers have a flag."),
		integer("putVMSSVMBatchSize", func(c *Config) *int { return &c.PutVMSSVMBatchSize },
			"How many requests are sent at once to write instances of one uniform scale set; 0 and less mean 1. The operations "+
				"run side by side in any case. Azure has refused requests at the same time.").or("1"),
		seconds("routeUpdateIntervalInSeconds", func(c *Config) *time.Duration { return &c.RouteUpdateInterval },
			"Has no effect: the first change is written at once, and changes during that write share the next one.").or("30"),
		seconds("routeUpdateWaitingInSeconds", func(c *Config) *time.Duration { return &c.RouteUpdateWaiting },
			"Has no effect: routes apply when Azure has finished the write. A negative value is the default.").
			or("30").between(-1<<31, 1<<31-1),
		seconds("nodeInstanceNotFoundGracePeriodInSeconds", func(c *Config) *time.Duration { return &c.NodeInstanceNotFoundGracePeriod },
			"How long after its creation a node is kept although Azure does not know its machine.").or("0"),
	}
}

func tagKeys() []key {
	return []key{
		text("tags", func(c *Config) *string { return &c.Tags },
			"Tags of created resources, `a=b,c=d`. `tagsMap` is the same and allows every character."),
		object("tagsMap", func(c *Config) any { return &c.TagsMap },
			"Tags of created resources. A tag overrides the tag of the same name, without case, in `tags`."),
		text("systemTags", func(c *Config) *string { return &c.SystemTags },
			"Prefixes of names of tags that kaz keeps, `a,b`. If set, kaz removes tags that match neither these nor the two keys "+
				"above; from load balancers, the security group and the route table only if the two keys name any tag."),
	}
}

func loadBalancerKeys() []key {
	return append([]key{
		text("loadBalancerSku", func(c *Config) *string { return (*string)(&c.LoadBalancerSKU) },
			"SKU of load balancers and public IPs. Azure has retired the SKU Basic: basic is read as standard, and load balancers "+
				"of that SKU are replaced.").or("standard").oneOf("basic", "standard", "service"),
		text("loadBalancerName", func(c *Config) *string { return &c.LoadBalancerName },
			"Name of the load balancer.").orElse("name of the cluster"),
		text("loadBalancerResourceGroup", func(c *Config) *string { return &c.LoadBalancerResourceGroup },
			"Its resource group.").orElse("`resourceGroup`"),
		text("preConfiguredBackendPoolLoadBalancerTypes",
			func(c *Config) *string { return (*string)(&c.PreConfiguredBackendPoolLoadBalancerTypes) },
			"Load balancers whose backend pools kaz does not fill; empty: none.").exactly("internal", "external", "all"),
		boolean("excludeMasterFromStandardLB", func(c *Config) *bool { return &c.ExcludeMasterFromStandardLB },
			"Standard load balancers leave out control-plane nodes.").or("true").orQuoted(),
		boolean("disableOutboundSNAT", func(c *Config) *bool { return &c.DisableOutboundSNAT },
			"Load balancing rules provide no outbound connectivity. Only with `loadBalancerSku` standard."),
		integer("maximumLoadBalancerRuleCount", func(c *Config) *int { return &c.MaximumLoadBalancerRuleCount },
			"With several load balancers: number of rules from which a load balancer gets no further Services. Existing Services "+
				"stay. Azure's own limit of 300 always applies.").or("250"),
		text("loadBalancerBackendPoolConfigurationType",
			func(c *Config) *string { return (*string)(&c.LoadBalancerBackendPoolConfigurationType) },
			"How backend pools refer to nodes. `podIP` requires the service gateway. Azure supports no private link services "+
				"with pools of addresses: with `nodeIP` a Service gets none. While one exists already, its load balancer's pools keep "+
				"listing network interfaces.").
			or("nodeIPConfiguration").oneOf("nodeIPConfiguration", "nodeIP", "podIP"),
		text("privateLinkServiceResourceGroup", func(c *Config) *string { return &c.PrivateLinkServiceResourceGroup },
			"Resource group of private link services.").orElse("`resourceGroup`"),
		boolean("enableMigrateToIPBasedBackendPoolAPI", func(c *Config) *bool { return &c.EnableMigrateToIPBasedBackendPoolAPI },
			"Let Azure convert the backend pools when the pool type changes to nodeIP."),
		boolean("enableIPTagMutationForExistingPublicIP", func(c *Config) *bool { return &c.EnableIPTagMutationForExistingPublicIP },
			"Change the IP tags of existing public IPs in place."),
		seconds("loadBalancerBackendPoolUpdateIntervalInSeconds",
			func(c *Config) *time.Duration { return &c.LoadBalancerBackendPoolUpdateInterval },
			"Has no effect: the first change is written at once, and changes during that write share the next one.").or("30"),
		boolean("serviceGatewayEnabled", func(c *Config) *bool { return &c.ServiceGatewayEnabled },
			"Use the service gateway. Requires pool type podIP and `loadBalancerSku` service."),
	}, probeAndPlacementKeys()...)
}

func probeAndPlacementKeys() []key {
	return []key{
		text("clusterServiceLoadBalancerHealthProbeMode",
			func(c *Config) *string { return (*string)(&c.ClusterServiceLoadBalancerHealthProbeMode) },
			"How Services with external traffic policy Cluster are probed: each at its node port, or all with one shared probe.").
			or("servicenodeport").oneOf("servicenodeport", "shared"),
		integer("clusterServiceSharedLoadBalancerHealthProbePort",
			func(c *Config) *int { return &c.ClusterServiceSharedLoadBalancerProbePort },
			"Port of the shared probe.").or("10256").between(1, 65535),
		text("clusterServiceSharedLoadBalancerHealthProbePath",
			func(c *Config) *string { return &c.ClusterServiceSharedLoadBalancerProbePath },
			"Path of the shared probe.").or("/healthz"),
		object("multipleStandardLoadBalancerConfigurations", func(c *Config) any { return &c.MultipleStandardLoadBalancerConfigurations },
			"Several standard load balancers: a list of `name`, `primaryVMSet`, `allowServicePlacement` (true), "+
				"`serviceLabelSelector`, `serviceNamespaceSelector`, `nodeSelector`. One must have the name of the cluster. Not with "+
				"pool type nodeIPConfiguration."),
	}
}

func cacheKeys() []key {
	ttl := func(name, initial, what string, field func(*Config) *time.Duration) key {
		return seconds(name, field, "How long cached "+what+" are used before they are read again.").or(initial)
	}
	return []key{
		boolean("disableAPICallCache", func(c *Config) *bool { return &c.DisableAPICallCache },
			"Disable the cache: every read is a request to Azure."),
		ttl("nonVmssUniformNodesCacheTTLInSeconds", "900", "nodes outside uniform scale sets",
			func(c *Config) *time.Duration { return &c.NonVmssUniformNodesCacheTTL }),
		ttl("vmssCacheTTLInSeconds", "600", "scale sets", func(c *Config) *time.Duration { return &c.VMSSCacheTTL }),
		ttl("vmssVirtualMachinesCacheTTLInSeconds", "600", "instances of uniform scale sets",
			func(c *Config) *time.Duration { return &c.VMSSVirtualMachinesCacheTTL }),
		ttl("vmssFlexCacheTTLInSeconds", "600", "flexible scale sets", func(c *Config) *time.Duration { return &c.VMSSFlexCacheTTL }),
		ttl("vmssFlexVMCacheTTLInSeconds", "600", "instances of flexible scale sets",
			func(c *Config) *time.Duration { return &c.VMSSFlexVMCacheTTL }),
		ttl("vmCacheTTLInSeconds", "60", "virtual machines", func(c *Config) *time.Duration { return &c.VMCacheTTL }),
		ttl("availabilitySetsCacheTTLInSeconds", "600", "availability sets",
			func(c *Config) *time.Duration { return &c.AvailabilitySetsCacheTTL }),
		ttl("loadBalancerCacheTTLInSeconds", "120", "load balancers", func(c *Config) *time.Duration { return &c.LoadBalancerCacheTTL }),
		ttl("nsgCacheTTLInSeconds", "120", "network security groups", func(c *Config) *time.Duration { return &c.NSGCacheTTL }),
		ttl("routeTableCacheTTLInSeconds", "120", "route tables", func(c *Config) *time.Duration { return &c.RouteTableCacheTTL }),
		ttl("plsCacheTTLInSeconds", "120", "private link services", func(c *Config) *time.Duration { return &c.PLSCacheTTL }),
		ttl("publicIPCacheTTLInSeconds", "120", "public IPs", func(c *Config) *time.Duration { return &c.PublicIPCacheTTL }),
		inert("availabilitySetNodesCacheTTLInSeconds",
			"replaced by `availabilitySetsCacheTTLInSeconds` and `nonVmssUniformNodesCacheTTLInSeconds`"),
		inert("listVmssVirtualMachinesWithoutInstanceView",
			"instances are always read with their instance view, which has the power state and fault domain"),
	}
}

func backoffKeys() []key {
	return []key{
		boolean("cloudProviderBackoff", func(c *Config) *bool { return &c.CloudProviderBackoff }, "Retry failed requests."),
		integer("cloudProviderBackoffRetries", func(c *Config) *int { return &c.CloudProviderBackoffRetries },
			"Attempts of a request in all.").orElse("6 with `cloudProviderBackoff`, else 1"),
		number("cloudProviderBackoffExponent", func(c *Config) *float64 { return &c.CloudProviderBackoffExponent },
			"Factor between consecutive delays.").or("1.5"),
		seconds("cloudProviderBackoffDuration", func(c *Config) *time.Duration { return &c.CloudProviderBackoffDuration },
			"The first delay.").or("5"),
		number("cloudProviderBackoffJitter", func(c *Config) *float64 { return &c.CloudProviderBackoffJitter },
			"Random share that is added to a delay.").or("1"),
		inert("cloudProviderBackoffMode", "there is only one mode"),
		boolean("enableMinimumRetryAfter", func(c *Config) *bool { return &c.EnableMinimumRetryAfter },
			"Poll an operation at the earliest after the first delay (`cloudProviderBackoffDuration`, 1 s without "+
				"backoff), even if Azure allows it sooner."),
	}
}

func rateLimitKeys() []key {
	keys := []key{
		boolean("cloudProviderRateLimit", func(c *Config) *bool { return &c.RateLimit.Enabled },
			"Limit the requests of each client. Requests wait; none fails."),
		number("cloudProviderRateLimitQPS", func(c *Config) *float64 { return &c.RateLimit.QPS },
			"Reads per second.").orElse("1 when limited"),
		integer("cloudProviderRateLimitBucket", func(c *Config) *int { return &c.RateLimit.Bucket },
			"Reads in a burst after a pause.").orElse("5 when limited"),
		number("cloudProviderRateLimitQPSWrite", func(c *Config) *float64 { return &c.RateLimit.QPSWrite },
			"Writes per second.").orElse("that for reads"),
		integer("cloudProviderRateLimitBucketWrite", func(c *Config) *int { return &c.RateLimit.BucketWrite },
			"Writes in a burst after a pause.").orElse("that for reads"),
	}
	for _, client := range limitedClients() {
		keys = append(keys, clientLimit(client.key))
	}
	return append(keys,
		inert("attachDetachDiskRateLimit", "attaching and detaching disks are writes of machines: `virtualMachineRateLimit`"),
		inert("entries", "each client has its own key"))
}
