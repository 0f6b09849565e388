package cloudconfig

import "time"

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
			orElse("AzurePublicCloud; with `resourceManagerEndpoint` the first that it describes"),
		text("resourceManagerEndpoint", func(c *Config) *string { return &c.ResourceManagerEndpoint },
			"Address of another Azure Resource Manager, `https://host[:port]`. What else there is to know about that cloud is read from its `/metadata/endpoints`."),
		text("userAgent", func(c *Config) *string { return &c.UserAgent },
			"Whole User-Agent of calls to Azure.").orElse("name and version of the program"),
		text("tenantId", func(c *Config) *string { return &c.TenantID },
			"Entra ID tenant: id or domain, or `adfs`."),
		text("subscriptionId", func(c *Config) *string { return &c.SubscriptionID },
			"Subscription of the cluster."),
		text("networkResourceTenantID", func(c *Config) *string { return &c.NetworkResourceTenantID },
			"Tenant of the network resources.").orElse("`tenantId`"),
		text("networkResourceSubscriptionID", func(c *Config) *string { return &c.NetworkResourceSubscriptionID },
			"Subscription of load balancers, public IPs, security group, route table, network and private link services.").orElse("`subscriptionId`"),
		boolean("disableAzureStackCloud", func(c *Config) *bool { return &c.DisableAzureStackCloud },
			"With `cloud` AzureStackCloud: endpoints of its own, but the API versions and zones of Azure."),
		inert("identitySystem", "the tenant says it: `adfs` or any other"),
	}
}

func authKeys() []key {
	return []key{
		text("aadClientId", func(c *Config) *string { return &c.AADClientID },
			"Client id of a service principal or of a workload identity."),
		hidden("aadClientSecret", func(c *Config) *Secret { return &c.AADClientSecret },
			"Secret of the service principal."),
		text("aadClientCertPath", func(c *Config) *string { return &c.AADClientCertPath },
			"PKCS#12 or PEM file with certificate and key of the service principal."),
		hidden("aadClientCertPassword", func(c *Config) *Secret { return &c.AADClientCertPassword },
			"Password of that file."),
		boolean("useManagedIdentityExtension", func(c *Config) *bool { return &c.UseManagedIdentityExtension },
			"Use the managed identity of the machine."),
		text("userAssignedIdentityID", func(c *Config) *string { return &c.UserAssignedIdentityID },
			"Which user-assigned identity: its client id or its resource id.").orElse("the system-assigned one"),
		boolean("useFederatedWorkloadIdentityExtension", func(c *Config) *bool { return &c.UseFederatedWorkloadIdentityExtension },
			"Use workload identity: a Kubernetes token is exchanged for one of Entra ID."),
		text("aadFederatedTokenFile", func(c *Config) *string { return &c.AADFederatedTokenFile },
			"File with that Kubernetes token."),
		text("aadMSIDataPlaneIdentityPath", func(c *Config) *string { return &c.AADMSIDataPlaneIdentityPath },
			"Credential file of the managed identity data plane, for hosted control planes."),
		object("auxiliaryTokenProvider", func(c *Config) any { return &c.AuxiliaryTokenProvider },
			"Key Vault secret with a token for the network tenant, for managed identity: `subscriptionID`, `resourceGroup`, `vaultName`, `secretName`."),
	}
}

func clusterKeys() []key {
	return []key{
		text("cloudConfigType", func(c *Config) *string { return (*string)(&c.CloudConfigType) },
			"Which count when there are a file and a Secret; `merge`: keys of the Secret win over those of the file.").
			or("merge").exactly("file", "secret", "merge"),
		text("resourceGroup", func(c *Config) *string { return &c.ResourceGroup },
			"Resource group of the cluster. Read in lower case."),
		text("location", func(c *Config) *string { return &c.Location }, "Region of what is created."),
		text("extendedLocationName", func(c *Config) *string { return &c.ExtendedLocationName },
			"Edge zone of what is created; goes with `extendedLocationType`."),
		text("extendedLocationType", func(c *Config) *string { return &c.ExtendedLocationType },
			"Type of the extended location.").oneOf("EdgeZone"),
		text("vnetName", func(c *Config) *string { return &c.VnetName }, "Virtual network of the nodes."),
		text("vnetResourceGroup", func(c *Config) *string { return &c.VnetResourceGroup }, "Its resource group.").orElse("`resourceGroup`"),
		text("subnetName", func(c *Config) *string { return &c.SubnetName }, "Subnet of internal load balancers."),
		text("securityGroupName", func(c *Config) *string { return &c.SecurityGroupName }, "Network security group of the nodes."),
		text("securityGroupResourceGroup", func(c *Config) *string { return &c.SecurityGroupResourceGroup }, "Its resource group.").orElse("`resourceGroup`"),
		text("routeTableName", func(c *Config) *string { return &c.RouteTableName }, "Route table of the pod networks."),
		text("routeTableResourceGroup", func(c *Config) *string { return &c.RouteTableResourceGroup }, "Its resource group.").orElse("`resourceGroup`"),
		boolean("disableCloudProvider", func(c *Config) *bool { return &c.DisableCloudProvider },
			"On reload: stop all controllers and stay stopped."),
	}
}

func machineKeys() []key {
	return []key{
		text("vmType", func(c *Config) *string { return (*string)(&c.VMType) },
			"What nodes are, unless they show otherwise: instances of uniform scale sets, machines (in availability sets), instances of flexible scale sets.").
			or("vmss").oneOf("vmss", "standard", "vmssflex"),
		text("primaryAvailabilitySetName", func(c *Config) *string { return &c.PrimaryAvailabilitySetName },
			"Read, without effect: load balancers have the nodes of all sets."),
		text("primaryScaleSetName", func(c *Config) *string { return &c.PrimaryScaleSetName },
			"Read, without effect: load balancers have the nodes of all sets."),
		boolean("disableAvailabilitySetNodes", func(c *Config) *bool { return &c.DisableAvailabilitySetNodes },
			"Read, without effect: of what kind a machine is shows in Azure. Only with `vmType` vmss."),
		boolean("enableVmssFlexNodes", func(c *Config) *bool { return &c.EnableVmssFlexNodes },
			"Read, without effect: they are always found."),
		boolean("useInstanceMetadata", func(c *Config) *bool { return &c.UseInstanceMetadata },
			"Needs no credentials, as the file of a node may have none. Otherwise without effect: controllers ask Azure, and node managers have a flag."),
		integer("putVMSSVMBatchSize", func(c *Config) *int { return &c.PutVMSSVMBatchSize },
			"Read, without effect: instances are written side by side, as many as Azure's limits allow.").or("1"),
		seconds("routeUpdateIntervalInSeconds", func(c *Config) *time.Duration { return &c.RouteUpdateInterval },
			"Read, without effect: the first change is written at once, and what comes meanwhile shares the next write.").or("30"),
		seconds("routeUpdateWaitingInSeconds", func(c *Config) *time.Duration { return &c.RouteUpdateWaiting },
			"Read, without effect: routes are in force when Azure has finished the write. Negative: the default.").or("30").between(-1<<31, 1<<31-1),
		seconds("nodeInstanceNotFoundGracePeriodInSeconds", func(c *Config) *time.Duration { return &c.NodeInstanceNotFoundGracePeriod },
			"For how long after its creation a node whose machine Azure does not know yet is not deleted.").or("0"),
	}
}

func tagKeys() []key {
	return []key{
		text("tags", func(c *Config) *string { return &c.Tags },
			"Tags of what is created, `a=b,c=d`. `tagsMap` says the same and can hold every character."),
		object("tagsMap", func(c *Config) any { return &c.TagsMap },
			"Tags of what is created. A tag replaces one of `tags` with the same name in any case."),
		text("systemTags", func(c *Config) *string { return &c.SystemTags },
			"Beginnings of names of tags of others, `a,b`. When set, tags that neither these nor the two keys above name are taken off; at load balancers, the security group and the route table only where those name any."),
	}
}

func loadBalancerKeys() []key {
	return append([]key{
		text("loadBalancerSku", func(c *Config) *string { return (*string)(&c.LoadBalancerSKU) },
			"SKU of load balancers and public IPs. Azure has retired the SKU Basic: basic is read as standard, and load balancers of that SKU are replaced.").or("standard").oneOf("basic", "standard", "service"),
		text("loadBalancerName", func(c *Config) *string { return &c.LoadBalancerName },
			"Name of the load balancer.").orElse("name of the cluster"),
		text("loadBalancerResourceGroup", func(c *Config) *string { return &c.LoadBalancerResourceGroup },
			"Its resource group.").orElse("`resourceGroup`"),
		text("preConfiguredBackendPoolLoadBalancerTypes", func(c *Config) *string { return (*string)(&c.PreConfiguredBackendPoolLoadBalancerTypes) },
			"Load balancers whose backend pools are filled by somebody else; empty: none.").exactly("internal", "external", "all"),
		boolean("excludeMasterFromStandardLB", func(c *Config) *bool { return &c.ExcludeMasterFromStandardLB },
			"Control-plane nodes are not behind standard load balancers.").or("true").orQuoted(),
		boolean("disableOutboundSNAT", func(c *Config) *bool { return &c.DisableOutboundSNAT },
			"Load balancing rules give no outbound connectivity. Only with `loadBalancerSku` standard."),
		integer("maximumLoadBalancerRuleCount", func(c *Config) *int { return &c.MaximumLoadBalancerRuleCount },
			"Rules after which one of several load balancers takes no further Services; those that are there stay. Azure's own limit of 300 counts in any case.").or("250"),
		text("loadBalancerBackendPoolConfigurationType", func(c *Config) *string { return (*string)(&c.LoadBalancerBackendPoolConfigurationType) },
			"How nodes are members of backend pools. `podIP` only with the service gateway. Azure has no private link services before pools of addresses: with `nodeIP` a Service gets none, and where one stands already the pools go on to list network interfaces until it goes.").
			or("nodeIPConfiguration").oneOf("nodeIPConfiguration", "nodeIP", "podIP"),
		text("privateLinkServiceResourceGroup", func(c *Config) *string { return &c.PrivateLinkServiceResourceGroup },
			"Resource group of private link services.").orElse("`resourceGroup`"),
		boolean("enableMigrateToIPBasedBackendPoolAPI", func(c *Config) *bool { return &c.EnableMigrateToIPBasedBackendPoolAPI },
			"Let Azure convert backend pools when the type changes to nodeIP."),
		boolean("enableIPTagMutationForExistingPublicIP", func(c *Config) *bool { return &c.EnableIPTagMutationForExistingPublicIP },
			"Change the IP tags of public IPs that exist."),
		seconds("loadBalancerBackendPoolUpdateIntervalInSeconds", func(c *Config) *time.Duration { return &c.LoadBalancerBackendPoolUpdateInterval },
			"Read, without effect: the first change is written at once, and what comes meanwhile shares the next write.").or("30"),
		boolean("serviceGatewayEnabled", func(c *Config) *bool { return &c.ServiceGatewayEnabled },
			"Use the service gateway; goes with pool type podIP and `loadBalancerSku` service."),
	}, probeAndPlacementKeys()...)
}

func probeAndPlacementKeys() []key {
	return []key{
		text("clusterServiceLoadBalancerHealthProbeMode", func(c *Config) *string { return (*string)(&c.ClusterServiceLoadBalancerHealthProbeMode) },
			"How Services of external traffic policy Cluster are probed: each at its node port, or all with one probe.").
			or("servicenodeport").oneOf("servicenodeport", "shared"),
		integer("clusterServiceSharedLoadBalancerHealthProbePort", func(c *Config) *int { return &c.ClusterServiceSharedLoadBalancerProbePort },
			"Port of the one probe.").or("10256").between(1, 65535),
		text("clusterServiceSharedLoadBalancerHealthProbePath", func(c *Config) *string { return &c.ClusterServiceSharedLoadBalancerProbePath },
			"Path of the one probe.").or("/healthz"),
		object("multipleStandardLoadBalancerConfigurations", func(c *Config) any { return &c.MultipleStandardLoadBalancerConfigurations },
			"Several standard load balancers: a list of `name`, `primaryVMSet`, `allowServicePlacement` (true), `serviceLabelSelector`, `serviceNamespaceSelector`, `nodeSelector`. One bears the name of the cluster. Not with pool type nodeIPConfiguration."),
	}
}

func cacheKeys() []key {
	ttl := func(name, initial, what string, field func(*Config) *time.Duration) key {
		return seconds(name, field, "For how long "+what+" may be used again after they were read.").or(initial)
	}
	return []key{
		boolean("disableAPICallCache", func(c *Config) *bool { return &c.DisableAPICallCache }, "Read everything from Azure each time."),
		ttl("nonVmssUniformNodesCacheTTLInSeconds", "900", "the nodes that are in no uniform scale set", func(c *Config) *time.Duration { return &c.NonVmssUniformNodesCacheTTL }),
		ttl("vmssCacheTTLInSeconds", "600", "scale sets", func(c *Config) *time.Duration { return &c.VMSSCacheTTL }),
		ttl("vmssVirtualMachinesCacheTTLInSeconds", "600", "instances of uniform scale sets", func(c *Config) *time.Duration { return &c.VMSSVirtualMachinesCacheTTL }),
		ttl("vmssFlexCacheTTLInSeconds", "600", "flexible scale sets", func(c *Config) *time.Duration { return &c.VMSSFlexCacheTTL }),
		ttl("vmssFlexVMCacheTTLInSeconds", "600", "instances of flexible scale sets", func(c *Config) *time.Duration { return &c.VMSSFlexVMCacheTTL }),
		ttl("vmCacheTTLInSeconds", "60", "virtual machines", func(c *Config) *time.Duration { return &c.VMCacheTTL }),
		ttl("availabilitySetsCacheTTLInSeconds", "600", "availability sets", func(c *Config) *time.Duration { return &c.AvailabilitySetsCacheTTL }),
		ttl("loadBalancerCacheTTLInSeconds", "120", "load balancers", func(c *Config) *time.Duration { return &c.LoadBalancerCacheTTL }),
		ttl("nsgCacheTTLInSeconds", "120", "network security groups", func(c *Config) *time.Duration { return &c.NSGCacheTTL }),
		ttl("routeTableCacheTTLInSeconds", "120", "route tables", func(c *Config) *time.Duration { return &c.RouteTableCacheTTL }),
		ttl("plsCacheTTLInSeconds", "120", "private link services", func(c *Config) *time.Duration { return &c.PLSCacheTTL }),
		ttl("publicIPCacheTTLInSeconds", "120", "public IPs", func(c *Config) *time.Duration { return &c.PublicIPCacheTTL }),
		inert("availabilitySetNodesCacheTTLInSeconds", "`availabilitySetsCacheTTLInSeconds` and `nonVmssUniformNodesCacheTTLInSeconds` took its place"),
		inert("listVmssVirtualMachinesWithoutInstanceView", "instances are always read with their instance view: power state and fault domain stand only there"),
	}
}

func backoffKeys() []key {
	return []key{
		boolean("cloudProviderBackoff", func(c *Config) *bool { return &c.CloudProviderBackoff }, "Try failed steps again."),
		integer("cloudProviderBackoffRetries", func(c *Config) *int { return &c.CloudProviderBackoffRetries },
			"How often a step is tried.").orElse("6 with `cloudProviderBackoff`, else 1"),
		number("cloudProviderBackoffExponent", func(c *Config) *float64 { return &c.CloudProviderBackoffExponent },
			"Factor from one wait to the next.").or("1.5"),
		seconds("cloudProviderBackoffDuration", func(c *Config) *time.Duration { return &c.CloudProviderBackoffDuration },
			"The first wait.").or("5"),
		number("cloudProviderBackoffJitter", func(c *Config) *float64 { return &c.CloudProviderBackoffJitter },
			"Share of a wait that chance may add.").or("1"),
		inert("cloudProviderBackoffMode", "there is one way of waiting"),
		boolean("enableMinimumRetryAfter", func(c *Config) *bool { return &c.EnableMinimumRetryAfter },
			"Ask for the state of an operation no sooner than after the first wait (`cloudProviderBackoffDuration`, 1 s without backoff), though Azure allows it sooner."),
	}
}

func rateLimitKeys() []key {
	keys := []key{
		boolean("cloudProviderRateLimit", func(c *Config) *bool { return &c.RateLimit.Enabled },
			"Limit the calls of each client. Callers wait; no call fails."),
		number("cloudProviderRateLimitQPS", func(c *Config) *float64 { return &c.RateLimit.QPS },
			"Reads a second.").orElse("1 when limited"),
		integer("cloudProviderRateLimitBucket", func(c *Config) *int { return &c.RateLimit.Bucket },
			"Reads at once after a pause.").orElse("5 when limited"),
		number("cloudProviderRateLimitQPSWrite", func(c *Config) *float64 { return &c.RateLimit.QPSWrite },
			"Writes a second.").orElse("that of reads"),
		integer("cloudProviderRateLimitBucketWrite", func(c *Config) *int { return &c.RateLimit.BucketWrite },
			"Writes at once after a pause.").orElse("that of reads"),
	}
	for _, client := range limitedClients() {
		keys = append(keys, clientLimit(client.key))
	}
	return append(keys,
		inert("attachDetachDiskRateLimit", "attaching and detaching are writes of machines: `virtualMachineRateLimit`"),
		inert("entries", "per-client limits stand in keys of their own"))
}
