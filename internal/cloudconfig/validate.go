package cloudconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
)

// Validate returns every problem of a configuration for a program that uses Azure. The error is
// [Problems].
func (c Config) Validate() error { return c.problems().err() }

// ValidateFor returns the problems that depend on the name of the cluster.
func (c Config) ValidateFor(clusterName string) error {
	if !c.MultipleLoadBalancers() {
		return nil
	}
	names := make([]string, len(c.MultipleStandardLoadBalancerConfigurations))
	for i, lb := range c.MultipleStandardLoadBalancerConfigurations {
		if strings.EqualFold(lb.Name, clusterName) {
			return nil
		}
		names[i] = lb.Name
	}
	return Problems{{
		Key: keyMultiple, Value: shown(names),
		Message: fmt.Sprintf("one of the load balancers must have the name of the cluster, %q", clusterName),
	}}
}

const keyMultiple = "multipleStandardLoadBalancerConfigurations"

// checks collects problems.
type checks struct{ problems Problems }

func (s *checks) add(key string, value any, format string, args ...any) {
	s.problems = append(s.problems, Problem{Key: key, Value: shown(value), Message: fmt.Sprintf(format, args...)})
}

func (s *checks) require(key, value, why string) {
	if value == "" {
		s.problems = append(s.problems, Problem{Key: key, Message: "is required" + why})
	}
}

func (c Config) problems() Problems {
	c.Complete()
	var s checks
	c.checkValues(&s)
	c.checkTexts(&s)
	c.checkTags(&s)
	c.checkRequired(&s)
	c.checkCloud(&s)
	c.checkIdentity(&s)
	c.checkMachines(&s)
	c.checkBalancing(&s)
	c.checkServiceGateway(&s)
	c.checkSeveralBalancers(&s)
	c.checkClientLimits(&s)
	return inOrder(s.problems)
}

// checkValues checks enumerations and ranges of all keys.
func (c Config) checkValues(s *checks) {
	for _, k := range allKeys() {
		if k.ref == nil {
			continue
		}
		switch field := k.ref(&c).(type) {
		case *string:
			if *field != "" && len(k.allowed) > 0 && !slices.Contains(k.allowed, *field) {
				s.add(k.name, *field, "must be one of %s", strings.Join(k.allowed, ", "))
			}
		case *int:
			k.checkRange(s, float64(*field))
		case *float64:
			k.checkRange(s, *field)
		case *time.Duration:
			k.checkRange(s, field.Seconds())
		}
	}
}

func (k key) checkRange(s *checks, value float64) {
	switch {
	case value >= k.min && value <= k.max:
	case k.min == 0 && value < 0:
		s.add(k.name, value, "must not be negative")
	default:
		s.add(k.name, value, "must be from %v to %v", k.min, k.max)
	}
}

// checkTexts checks texts that become part of a URL or a header.
func (c Config) checkTexts(s *checks) {
	for _, name := range []struct{ key, value string }{
		{"tenantId", c.TenantID},
		{"subscriptionId", c.SubscriptionID},
		{"networkResourceTenantID", c.NetworkResourceTenantID},
		{"networkResourceSubscriptionID", c.NetworkResourceSubscriptionID},
		{"resourceGroup", c.ResourceGroup},
		{"vnetResourceGroup", c.VnetResourceGroup},
		{"vnetName", c.VnetName},
		{"securityGroupResourceGroup", c.SecurityGroupResourceGroup},
		{"securityGroupName", c.SecurityGroupName},
		{"routeTableResourceGroup", c.RouteTableResourceGroup},
		{"routeTableName", c.RouteTableName},
		{"loadBalancerResourceGroup", c.LoadBalancerResourceGroup},
		{"privateLinkServiceResourceGroup", c.PrivateLinkServiceResourceGroup},
	} {
		inherited := name.key != "resourceGroup" && name.value == c.ResourceGroup ||
			name.key != "subscriptionId" && name.value == c.SubscriptionID
		if !inherited && strings.ContainsAny(name.value, "/?#%\\ \t\r\n") {
			s.add(name.key, name.value, "must be a name without spaces and without any of / ? # %% \\")
		}
	}
	s.balancerName("loadBalancerName", c.LoadBalancerName)
	if strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		s.add("userAgent", c.UserAgent, "must be printable ASCII")
	}
	if !strings.HasPrefix(c.ClusterServiceSharedLoadBalancerProbePath, "/") {
		s.add("clusterServiceSharedLoadBalancerHealthProbePath", c.ClusterServiceSharedLoadBalancerProbePath, "must start with /")
	}
	if (c.ExtendedLocationName == "") != (c.ExtendedLocationType == "") {
		s.require("extendedLocationName", c.ExtendedLocationName, ": extendedLocationType is set, and both are needed together")
		s.require("extendedLocationType", c.ExtendedLocationType, ": extendedLocationName is set, and both are needed together")
	}
}

// checkRequired checks that the keys for Azure requests are set. Programs that only use the instance
// metadata service do not need them.
func (c Config) checkRequired(s *checks) {
	if c.Credential() == NoCredential && c.UseInstanceMetadata {
		return
	}
	s.require("subscriptionId", c.SubscriptionID, ": the subscription of the cluster")
	s.require("resourceGroup", c.ResourceGroup, ": the resource group of the cluster")
	s.require("location", c.Location, ": the region of the cluster")
}

func (c Config) checkCloud(s *checks) {
	if c.ResourceManagerEndpoint != "" {
		if problem := badEndpoint(c.ResourceManagerEndpoint); problem != "" {
			s.add("resourceManagerEndpoint", c.ResourceManagerEndpoint, "%s", problem)
		}
		return
	}
	switch _, known := EnvironmentNamed(c.Cloud); {
	case known:
	case canonicalCloud(c.Cloud) != StackCloud:
		s.add("cloud", c.Cloud, "must be one of %s, or resourceManagerEndpoint must name an endpoint that describes it", cloudNames())
	case c.EnvironmentFile == "":
		s.add("cloud", c.Cloud, "needs resourceManagerEndpoint or, in the environment, AZURE_ENVIRONMENT_FILEPATH")
	}
}

func (c Config) checkIdentity(s *checks) {
	if c.MultiTenant() && c.Credential() != WorkloadIdentity && strings.EqualFold(c.NetworkResourceSubscriptionID, c.SubscriptionID) {
		s.add("networkResourceTenantID", c.NetworkResourceTenantID,
			"needs a networkResourceSubscriptionID other than subscriptionId: a subscription belongs to one tenant")
	}
	switch way := c.Credential(); way {
	case WorkloadIdentity:
		s.require("aadFederatedTokenFile", c.AADFederatedTokenFile, " for workload identity")
		s.require("aadClientId", c.AADClientID, " for workload identity")
		s.require("tenantId", c.TenantID, " for workload identity")
	case ClientSecret, ClientCertificate:
		s.require("aadClientId", c.AADClientID, " with a "+string(way))
		s.require("tenantId", c.TenantID, " with a "+string(way))
	case ManagedIdentity:
		c.checkManagedIdentity(s)
	case NoCredential:
		if !c.UseInstanceMetadata {
			s.add("useInstanceMetadata", false, "useInstanceMetadata must be enabled without Azure credentials; credentials are one of "+
				"useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, aadClientSecret, aadClientCertPath, "+
				"aadMSIDataPlaneIdentityPath")
		}
	}
}

func (c Config) checkManagedIdentity(s *checks) {
	if id := c.UserAssignedIdentityID; strings.Contains(strings.ToLower(id), "/subscriptions/") {
		if _, err := azure.ParseID(id); err != nil {
			s.add("userAssignedIdentityID", id, "must be a client id or a resource id: %v", err)
		}
	}
	if !c.MultiTenant() {
		return
	}
	p := c.AuxiliaryTokenProvider
	if p == nil {
		s.require("auxiliaryTokenProvider", "", ": with a managed identity, it provides the token for networkResourceTenantID")
		return
	}
	s.require("auxiliaryTokenProvider.subscriptionID", p.SubscriptionID, "")
	s.require("auxiliaryTokenProvider.resourceGroup", p.ResourceGroup, "")
	s.require("auxiliaryTokenProvider.vaultName", p.VaultName, "")
	s.require("auxiliaryTokenProvider.secretName", p.SecretName, "")
}

func (c Config) checkMachines(s *checks) {
	if c.DisableAvailabilitySetNodes && c.VMType != VMTypeScaleSet {
		s.add("disableAvailabilitySetNodes", true, "is only supported when vmType is vmss, not %s", c.VMType)
	}
}

func (c Config) checkBalancing(s *checks) {
	if c.DisableOutboundSNAT && c.LoadBalancerSKU != SKUStandard {
		s.add("disableOutboundSNAT", true, "is only supported when loadBalancerSku is standard, not %s", c.LoadBalancerSKU)
	}
}

// checkServiceGateway requires all three settings of the service gateway, or none.
func (c Config) checkServiceGateway(s *checks) {
	podIP := c.LoadBalancerBackendPoolConfigurationType == PoolPodIP
	service := c.LoadBalancerSKU == SKUService
	if !c.ServiceGatewayEnabled && !podIP && !service {
		return
	}
	const together = "serviceGatewayEnabled true, loadBalancerBackendPoolConfigurationType podIP and loadBalancerSku service " +
		"require each other"
	if !c.ServiceGatewayEnabled {
		s.add("serviceGatewayEnabled", false, together)
	}
	if !podIP {
		s.add("loadBalancerBackendPoolConfigurationType", c.LoadBalancerBackendPoolConfigurationType, together)
	}
	if !service {
		s.add("loadBalancerSku", c.LoadBalancerSKU, together)
	}
	if !c.ServiceGatewayEnabled {
		return
	}
	if len(c.MultipleStandardLoadBalancerConfigurations) > 0 {
		s.add(keyMultiple, c.balancerNames(), "cannot be combined with serviceGatewayEnabled")
	}
	if c.EnableMigrateToIPBasedBackendPoolAPI {
		s.add("enableMigrateToIPBasedBackendPoolAPI", true, "cannot be combined with serviceGatewayEnabled")
	}
}

func (c Config) balancerNames() []string {
	var names []string
	for _, lb := range c.MultipleStandardLoadBalancerConfigurations {
		names = append(names, lb.Name)
	}
	return names
}

// checkSeveralBalancers checks the rules for several load balancers. Names must be unique without
// case, because Azure ignores case.
func (c Config) checkSeveralBalancers(s *checks) {
	if !c.MultipleLoadBalancers() {
		return
	}
	if c.LoadBalancerBackendPoolConfigurationType == PoolNodeIPConfiguration {
		s.add("loadBalancerBackendPoolConfigurationType", c.LoadBalancerBackendPoolConfigurationType,
			"must be nodeIP with several load balancers")
	}
	names, sets := map[string]bool{}, map[string]bool{}
	for i, lb := range c.MultipleStandardLoadBalancerConfigurations {
		at := fmt.Sprintf("%s[%d].", keyMultiple, i)
		s.unique(names, at+"name", lb.Name)
		s.balancerName(at+"name", lb.Name)
		s.unique(sets, at+"primaryVMSet", lb.PrimaryVMSet)
		checkSelector(s, at+"serviceLabelSelector", lb.ServiceLabelSelector)
		checkSelector(s, at+"serviceNamespaceSelector", lb.ServiceNamespaceSelector)
		checkSelector(s, at+"nodeSelector", lb.NodeSelector)
	}
	for i, lb := range c.MultipleStandardLoadBalancerConfigurations {
		const internal = "-internal" // suffix of the load balancer for internal Services
		if of, is := strings.CutSuffix(strings.ToLower(lb.Name), internal); is && names[of] {
			s.add(fmt.Sprintf("%s[%d].name", keyMultiple, i), lb.Name, "is the name of the internal load balancer of %q", of)
		}
	}
}

// balancerName checks a load balancer name. An empty name is valid.
func (s *checks) balancerName(key, name string) {
	if problem := badBalancerName(name); name != "" && problem != "" {
		s.add(key, name, "%s", problem)
	}
}

func (s *checks) unique(seen map[string]bool, key, value string) {
	s.require(key, value, "")
	folded := strings.ToLower(value)
	if value != "" && seen[folded] {
		s.add(key, value, "must be unique among the load balancers")
	}
	seen[folded] = true
}

func checkSelector(s *checks, at string, selector *LabelSelector) {
	if selector == nil {
		return
	}
	for i, e := range selector.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d].", at, i)
		s.require(at+"key", e.Key, "")
		switch e.Operator {
		case "In", "NotIn":
			if len(e.Values) == 0 {
				s.add(at+"values", e.Values, "must not be empty with operator %s", e.Operator)
			}
		case "Exists", "DoesNotExist":
			if len(e.Values) > 0 {
				s.add(at+"values", e.Values, "must be empty with operator %s", e.Operator)
			}
		default:
			s.add(at+"operator", e.Operator, "must be one of In, NotIn, Exists, DoesNotExist")
		}
	}
}

func (c Config) checkClientLimits(s *checks) {
	for name, limit := range c.ClientRateLimits {
		for _, m := range limit.members() {
			switch field := m.ref.(type) {
			case *int:
				if *field < 0 {
					s.add(name+"."+m.name, *field, "must not be negative")
				}
			case *float64:
				if *field < 0 {
					s.add(name+"."+m.name, *field, "must not be negative")
				}
			}
		}
	}
}

// inOrder sorts problems in the order of the reference.
func inOrder(problems Problems) Problems {
	place := map[string]int{}
	for i, k := range allKeys() {
		place[k.name] = i
	}
	at := func(p Problem) int {
		name := p.Key
		if i := strings.IndexAny(name, ".["); i >= 0 {
			name = name[:i]
		}
		return place[name]
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if d := at(a) - at(b); d != 0 {
			return d
		}
		return strings.Compare(a.Key, b.Key)
	})
	return problems
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("(%T)", value)
	}
	return shorten(string(text))
}
