package delta

import (
	"maps"
	"slices"
	"strings"
)

// fromAzure are fields of all types that Azure alone writes, at any depth.
var fromAzure = []string{"etag", "provisioningState", "resourceGuid", "systemData"}

// readOnly are further fields that Azure alone writes, by type in lower case. A path leads through lists without their indexes. Source: the
// fields that are read-only in Azure's API specifications.
var readOnly = map[string][]string{
	"microsoft.compute/availabilitysets": {"properties.statuses", "properties.virtualMachines"},
	"microsoft.compute/disks": {"managedBy", "managedByExtended", "properties.timeCreated", "properties.uniqueId", "properties.diskState",
		"properties.diskSizeBytes", "properties.shareInfo", "properties.propertyUpdatesInProgress", "properties.LastOwnershipUpdateTime",
		"sku.tier"},
	"microsoft.compute/virtualmachines/extensions":     {"properties.instanceView"},
	"microsoft.keyvault/vaults":                        {"properties.hsmPoolResourceId", "properties.privateEndpointConnections"},
	"microsoft.managedidentity/userassignedidentities": {"properties.clientId", "properties.principalId", "properties.tenantId"},
	"microsoft.network/loadbalancers": {
		"properties.frontendIPConfigurations.properties.inboundNatRules", "properties.frontendIPConfigurations.properties.inboundNatPools",
		"properties.frontendIPConfigurations.properties.outboundRules", "properties.frontendIPConfigurations.properties.loadBalancingRules",
		"properties.backendAddressPools.properties.backendIPConfigurations",
		"properties.backendAddressPools.properties.loadBalancingRules", "properties.backendAddressPools.properties.outboundRule",
		"properties.backendAddressPools.properties.outboundRules", "properties.backendAddressPools.properties.inboundNatRules",
		"properties.probes.properties.loadBalancingRules",
	},
	"microsoft.network/natgateways": {"properties.subnets"},
	"microsoft.network/networkinterfaces": {
		"properties.virtualMachine", "properties.macAddress", "properties.primary", "properties.hostedWorkloads",
		"properties.dscpConfiguration", "properties.vnetEncryptionSupported", "properties.privateEndpoint",
		"properties.privateLinkService", "properties.tapConfigurations", "properties.defaultOutboundConnectivityEnabled",
		"properties.dnsSettings.appliedDnsServers", "properties.dnsSettings.internalFqdn",
		"properties.dnsSettings.internalDomainNameSuffix", "properties.ipConfigurations.properties.privateLinkConnectionProperties",
	},
	"microsoft.network/networksecuritygroups": {"properties.subnets", "properties.networkInterfaces", "properties.defaultSecurityRules",
		"properties.flowLogs"},
	"microsoft.network/privatednszones": {"properties.internalId", "properties.maxNumberOfRecordSets",
		"properties.maxNumberOfVirtualNetworkLinks", "properties.maxNumberOfVirtualNetworkLinksWithRegistration",
		"properties.numberOfRecordSets", "properties.numberOfVirtualNetworkLinks",
		"properties.numberOfVirtualNetworkLinksWithRegistration"},
	"microsoft.network/privatednszones/a":                   {"properties.fqdn", "properties.isAutoRegistered"},
	"microsoft.network/privatednszones/virtualnetworklinks": {"properties.virtualNetworkLinkState"},
	"microsoft.network/publicipaddresses":                   {"properties.ipConfiguration"},
	"microsoft.network/virtualnetworks": {
		"properties.subnets.properties.ipConfigurations", "properties.subnets.properties.ipConfigurationProfiles",
		"properties.subnets.properties.privateEndpoints", "properties.subnets.properties.purpose",
		"properties.subnets.properties.resourceNavigationLinks", "properties.subnets.properties.serviceAssociationLinks",
		"properties.flowLogs", "properties.defaultPublicNatGateway",
	},
	"microsoft.storage/storageaccounts": {"properties.primaryEndpoints", "properties.primaryLocation", "properties.statusOfPrimary",
		"properties.secondaryEndpoints", "properties.secondaryLocation", "properties.statusOfSecondary", "properties.creationTime",
		"properties.keyCreationTime", "properties.lastGeoFailoverTime", "properties.privateEndpointConnections",
		"properties.geoReplicationStats", "properties.blobRestoreStatus", "properties.accountMigrationInProgress", "sku.tier"},
	"microsoft.storage/storageaccounts/managementpolicies": {"properties.lastModifiedTime"},
	"microsoft.storage/storageaccounts/blobservices/containers": {"properties.version", "properties.deleted", "properties.deletedTime",
		"properties.remainingRetentionDays", "properties.lastModifiedTime", "properties.leaseStatus", "properties.leaseState",
		"properties.leaseDuration", "properties.immutabilityPolicy", "properties.legalHold", "properties.hasImmutabilityPolicy",
		"properties.hasLegalHold"},
}

// writable is a resource without what Azure alone writes.
func writable(fullType string, live object) object {
	all, _ := without("", live, readOnly[strings.ToLower(fullType)]).(object)
	for _, key := range []string{"id", "name", "type"} {
		delete(all, key)
	}
	return all
}

func without(path string, value any, fields []string) any {
	switch value := value.(type) {
	case object:
		all := maps.Clone(value)
		for key, inner := range value {
			at := strings.TrimPrefix(path+"."+key, ".")
			if slices.Contains(fromAzure, key) || slices.Contains(fields, at) {
				delete(all, key)
				continue
			}
			all[key] = without(at, inner, fields)
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, inner := range value {
			all[i] = without(path, inner, fields)
		}
		return all
	}
	return value
}
