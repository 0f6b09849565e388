package azure

import (
	"slices"
	"strings"
)

// Classify gives the kind of an error reply from its HTTP status and its codes. The codes are in order from the
// outermost: the envelope's code, then the codes of its details. The innermost known code decides, because providers
// wrap precise codes in vague ones ("RetryableError" around "ReferencedResourceNotProvisioned"). A status of 0 or 200
// is that of a failed operation read from a poll.
func Classify(status int, codes ...string) Kind {
	for _, code := range slices.Backward(codes) {
		if kind, ok := kindByCode[strings.ToLower(code)]; ok {
			return kind
		}
	}
	for _, code := range slices.Backward(codes) {
		if kind, ok := kindByPattern(strings.ToLower(code)); ok {
			return kind
		}
	}
	if kind, ok := kindByStatus[status]; ok {
		return kind
	}
	switch {
	case status >= 500:
		return Unavailable
	case status >= 400:
		return Invalid
	}
	return Internal
}

// ClassifyText is [Classify] for a reply with messages: some codes stand for several things that only
// the message tells apart. A reply with the status 429 is throttled whatever its message says. This is
// the only place where the text of an error decides anything.
func ClassifyText(status int, codes, messages []string) Kind {
	text := strings.ToLower(strings.Join(messages, "\n"))
	for _, p := range phrases() {
		if slices.ContainsFunc(codes, func(code string) bool { return strings.EqualFold(code, p.code) }) &&
			kindByStatus[status] != Throttled && strings.Contains(text, p.text) {
			return p.kind
		}
	}
	return Classify(status, codes...)
}

type phrase struct {
	code, text string
	kind       Kind
}

func phrases() []phrase {
	return []phrase{
		{"OperationNotAllowed", "quota", Quota},
		{"OperationNotAllowed", "maximum number of data disks", Quota},
		{"OperationNotAllowed", "is attached to", InUse},
		{"ConflictingUserInput", "is already owned by", InUse},
		{"OperationNotAllowed", "active shared access signature", InUse},
		{"InvalidParameter", "a disk at lun", Changed}, // another writer took it meanwhile
		{"InvalidParameter", "is not an active virtual machine scale set vm instanceid", NotFound},
	}
}

// kindByPattern knows the families of codes that providers form from resource
// type names.
func kindByPattern(code string) (Kind, bool) {
	switch {
	case strings.HasSuffix(code, "cannotbedeleted"), strings.HasSuffix(code, "cannotbeupdated"):
		return InUse, true
	case strings.HasSuffix(code, "notfound"):
		return NotFound, true
	case strings.HasSuffix(code, "alreadyexists"):
		return Exists, true
	}
	return Internal, false
}

// kindByStatus has the statuses that say more than which end is at fault.
var kindByStatus = map[int]Kind{
	401: Denied, 403: Denied, 404: NotFound, 408: Unavailable, 409: Busy, 410: NotFound, 412: Changed, 429: Throttled,
}

// kindByCode is the catalogue of codes that say more than their status, or that
// arrive in a poll without one. Codes that only repeat their status are absent.
var kindByCode = lower(map[Kind][]string{
	NotFound: {
		"ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound", "NotFound",
		"SubscriptionNotFound", "DeploymentNotFound", "ShareNotFound", "ContainerNotFound",
		"InstanceIdsListInstanceIdNotActiveVM",
	},
	Exists: {
		"RoleAssignmentExists", "StorageAccountAlreadyTaken", "StorageAccountAlreadyExists", "ShareAlreadyExists",
	},
	Changed: {
		"PreconditionFailed", "PreconditionFailedEtagMismatch", "ConditionNotMet",
		"CanceledAndSupersededDueToAnotherOperation", "OperationPreempted",
	},
	Invalid: {
		"InvalidParameter", "InvalidRequestFormat", "InvalidResourceReference", "InvalidTemplate",
		"InvalidTemplateDeployment", "PropertyChangeNotAllowed", "PrincipalNotFound", "LocationNotAvailableForResourceType",
		"FeatureNotSupportedForAccount", "InvalidResourceGroupLocation", "InvalidResourceLocation", "ConflictingUserInput",
		"NoRegisteredProviderFound", "MissingApiVersionParameter", "InvalidApiVersionParameter",
		"SecurityRuleConflict", "RulesUseSameBackendPortProtocolAndPool", "NetcfgInvalidSubnet",
		"NetcfgSubnetRangesOverlap", "RequestContentTooLarge",
	},
	Denied: {
		"AuthenticationFailed", "InvalidAuthenticationToken", "ExpiredAuthenticationToken",
		"AuthorizationFailed", "LinkedAuthorizationFailed", "RequestDisallowedByPolicy",
		"MissingSubscriptionRegistration", "SubscriptionNotRegistered", "ReadOnlyDisabledSubscription", "ScopeLocked",
	},
	Throttled: {
		"SubscriptionRequestsThrottled", "TooManyRequests", "ThrottlingException",
	},
	Quota: {
		"QuotaExceeded", "PublicIPCountLimitReached", "ResourceQuotaExceeded", "CoreQuotaExceeded",
		"PrivateIPAddressesExceeded", "SubnetIsFull", "SubscriptionQuotaExceeded", "SecurityRuleCountLimitReached",
		"SecurityRuleAddressesOrPortsPerSecurityGroupLimitReached", "PublicIpPrefixOutOfIpAddressesForTheGivenZones",
	},
	Capacity: {
		"AllocationFailed", "OverconstrainedAllocationRequest", "ZonalAllocationFailed",
		"OverconstrainedZonalAllocationRequest", "SkuNotAvailable",
	},
	InUse: {
		"NicInUse", "InUseSubnetCannotBeDeleted", "PublicIPAddressCannotBeDeleted", "ShareHasSnapshots",
		"PublicIPAddressInUse", "LoadBalancerInUseByVirtualMachineScaleSet", "CannotDeleteResource",
	},
	Busy: {
		"ReferencedResourceNotProvisioned", "RetryableErrorDueToAnotherOperation", "AnotherOperationInProgress",
		"RetryableError", "Conflict", "AttachDiskWhileBeingDetached", "ShareBeingDeleted", "AccountIsBeingDeleted",
	},
	Unavailable: {
		"GatewayTimeout", "ServiceUnavailable", "InternalServerError", "ServerTimeout", "InternalError",
	},
})

func lower(kinds map[Kind][]string) map[string]Kind {
	byCode := map[string]Kind{}
	for kind, codes := range kinds {
		for _, code := range codes {
			byCode[strings.ToLower(code)] = kind
		}
	}
	return byCode
}
