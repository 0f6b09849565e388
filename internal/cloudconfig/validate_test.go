package cloudconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sound returns a minimal valid configuration with additional keys.
func sound(rest string) string {
	return `{"tenantId":"t","subscriptionId":"s","resourceGroup":"rg","location":"eastus","useManagedIdentityExtension":true` + rest + `}`
}

func TestValidate(t *testing.T) {
	const together = "serviceGatewayEnabled true, loadBalancerBackendPoolConfigurationType podIP and loadBalancerSku service " +
		"require each other"
	multi := func(entries string) string {
		return `,"loadBalancerBackendPoolConfigurationType":"nodeip","multipleStandardLoadBalancerConfigurations":[` + entries + `]`
	}
	for _, test := range []struct {
		name, doc string
		want      []string
	}{
		{"sound", sound(""), nil},
		{"names in any case",
			sound(`,"vmType":"VmssFlex","cloud":"azurechinacloud","loadBalancerSku":"Basic","clusterServiceLoadBalancerHealthProbeMode":"Shared"`), nil},
		{"tenant by name, adfs", strings.Replace(sound(""), `"t"`, `"adfs"`, 1), nil},
		{"empty", `{"useManagedIdentityExtension":true}`, []string{
			"subscriptionId: is required: the subscription of the cluster",
			"resourceGroup: is required: the resource group of the cluster",
			"location: is required: the region of the cluster",
		}},
		{"config type", sound(`,"cloudConfigType":"File"`), []string{`cloudConfigType "File": must be one of file, secret, merge`}},
		{"sets of values",
			sound(`,"vmType":"pods","loadBalancerSku":"gold","loadBalancerBackendPoolConfigurationType":"bad","clusterServiceLoadBalancerHealthProbeMode":"none","preConfiguredBackendPoolLoadBalancerTypes":"External"`), []string{
				`vmType "pods": must be one of vmss, standard, vmssflex`,
				`loadBalancerSku "gold": must be one of basic, standard, service`,
				`preConfiguredBackendPoolLoadBalancerTypes "External": must be one of internal, external, all`,
				`loadBalancerBackendPoolConfigurationType "bad": must be one of nodeIPConfiguration, nodeIP, podIP`,
				`clusterServiceLoadBalancerHealthProbeMode "none": must be one of servicenodeport, shared`,
			}},
		{"ranges", sound(`,"clusterServiceSharedLoadBalancerHealthProbePort":70000,"vmCacheTTLInSeconds":-1,"cloudProviderBackoffJitter":-0.5,"cloudProviderRateLimitQPS":-1,"diskRateLimit":{"cloudProviderRateLimitBucket":-2}`), []string{
			"clusterServiceSharedLoadBalancerHealthProbePort 70000: must be from 1 to 65535",
			"vmCacheTTLInSeconds -1: must not be negative",
			"cloudProviderBackoffJitter -0.5: must not be negative",
			"cloudProviderRateLimitQPS -1: must not be negative",
			"diskRateLimit.cloudProviderRateLimitBucket -2: must not be negative",
		}},
		{"texts", sound(`,"vnetName":"a/b","userAgent":"x\n","clusterServiceSharedLoadBalancerHealthProbePath":"healthz","extendedLocationName":"edge"`), []string{
			`userAgent "x\n": must be printable ASCII`,
			`extendedLocationType: is required: extendedLocationName is set, and both are needed together`,
			`vnetName "a/b": must be a name without spaces and without any of / ? # % \`,
			`clusterServiceSharedLoadBalancerHealthProbePath "healthz": must start with /`,
		}},
		{"longest tags", sound(`,"tags":"` + strings.Repeat("n", 512) + "=" + strings.Repeat("ü", 256) + `"`), nil},
		{"tags", sound(`,"tags":"team=` + strings.Repeat("v", 257) + `,a%b=c,Both=` + strings.Repeat("v", 257) + `","tagsMap":{"` +
			strings.Repeat("n", 513) + `":"x","both":"` + strings.Repeat("w", 257) + `","none":""}`), []string{
			`tags "a%b": must be the name of a tag: at most 512 characters, and none of < > % & \ ? /`,
			`tags "team": must have a value of at most 256 characters, not 257`,
			`tagsMap "both": must have a value of at most 256 characters, not 257`,
			`tagsMap "` + strings.Repeat("n", 79) + `…: must be the name of a tag: at most 512 characters, and none of < > % & \ ? /`,
		}},
		{"availability sets", sound(`,"vmType":"standard","disableAvailabilitySetNodes":true`), []string{
			"disableAvailabilitySetNodes true: is only supported when vmType is vmss, not standard",
		}},
		{"availability sets, vmss in capitals", sound(`,"vmType":"VMSS","disableAvailabilitySetNodes":true`), nil},
		{"outbound", sound(`,"loadBalancerSku":"basic","disableOutboundSNAT":true`), []string{
			"disableOutboundSNAT true: is only supported when loadBalancerSku is standard, not basic",
		}},
		{"unknown cloud", sound(`,"cloud":"AzureGermanCloud"`), []string{
			`cloud "AzureGermanCloud": must be one of AzurePublicCloud, AzureCloud, AzureChinaCloud, AzureUSGovernmentCloud, AzureUSGovernment, AzureStackCloud, or resourceManagerEndpoint must name an endpoint that describes it`,
		}},
		{"private cloud", sound(`,"cloud":"Mine","resourceManagerEndpoint":"http://127.0.0.1:8080/"`), nil},
		{"stack", sound(`,"cloud":"azurestackcloud"`), []string{
			`cloud "azurestackcloud": needs resourceManagerEndpoint or, in the environment, AZURE_ENVIRONMENT_FILEPATH`,
		}},
		{"endpoint", sound(`,"resourceManagerEndpoint":"management.azure.com"`), []string{
			`resourceManagerEndpoint "management.azure.com": must be an address such as https://host or http://host:port`,
		}},
		{"endpoint with query", sound(`,"resourceManagerEndpoint":"https://a/?b=c"`), []string{
			`resourceManagerEndpoint "https://a/?b=c": must have no user, query or fragment`,
		}},
		{"no credentials", `{"subscriptionId":"s","resourceGroup":"rg","location":"l"}`, []string{
			"useInstanceMetadata false: useInstanceMetadata must be enabled without Azure credentials; credentials are one of " +
				"useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, aadClientSecret, aadClientCertPath, " +
				"aadMSIDataPlaneIdentityPath",
		}},
		{"workload identity",
			`{"subscriptionId":"s","resourceGroup":"rg","location":"l","useFederatedWorkloadIdentityExtension":true}`, []string{
				"tenantId: is required for workload identity",
				"aadClientId: is required for workload identity",
				"aadFederatedTokenFile: is required for workload identity",
			}},
		{"certificate", `{"subscriptionId":"s","resourceGroup":"rg","location":"l","aadClientCertPath":"/c.pem"}`, []string{
			"tenantId: is required with a client certificate",
			"aadClientId: is required with a client certificate",
		}},
		{"identity file", `{"subscriptionId":"s","resourceGroup":"rg","location":"l","aadMSIDataPlaneIdentityPath":"/c.json"}`, nil},
		{"identity id", sound(`,"userAssignedIdentityID":"/subscriptions//x"`), []string{
			`userAssignedIdentityID "/subscriptions//x": must be a client id or a resource id: `,
		}},
		{"network tenant", sound(`,"networkResourceTenantID":"n"`), []string{
			`networkResourceTenantID "n": needs a networkResourceSubscriptionID other than subscriptionId: a subscription belongs to one tenant`,
			"auxiliaryTokenProvider: is required: with a managed identity, it provides the token for networkResourceTenantID",
		}},
		{"half a vault",
			sound(`,"networkResourceTenantID":"n","networkResourceSubscriptionID":"o","auxiliaryTokenProvider":{"vaultName":"v","secretName":"x"}`), []string{
				"auxiliaryTokenProvider.resourceGroup: is required",
				"auxiliaryTokenProvider.subscriptionID: is required",
			}},
		{"same network tenant", sound(`,"networkResourceTenantID":"T"`), nil},
		{"half a service gateway", sound(`,"serviceGatewayEnabled":true`), []string{
			`loadBalancerSku "standard": ` + together,
			`loadBalancerBackendPoolConfigurationType "nodeIPConfiguration": ` + together,
		}},
		{"pod ip alone", sound(`,"loadBalancerBackendPoolConfigurationType":"podIP","loadBalancerSku":"service"`), []string{
			"serviceGatewayEnabled false: " + together,
		}},
		{"service gateway",
			sound(`,"serviceGatewayEnabled":true,"loadBalancerBackendPoolConfigurationType":"podip","loadBalancerSku":"service"`), nil},
		{"service gateway and others",
			sound(`,"serviceGatewayEnabled":true,"loadBalancerBackendPoolConfigurationType":"podip","loadBalancerSku":"service","enableMigrateToIPBasedBackendPoolAPI":true,"multipleStandardLoadBalancerConfigurations":[{"name":"a"}]`), []string{
				"enableMigrateToIPBasedBackendPoolAPI true: cannot be combined with serviceGatewayEnabled",
				`multipleStandardLoadBalancerConfigurations ["a"]: cannot be combined with serviceGatewayEnabled`,
			}},
		{"several balancers by NIC", sound(`,"multipleStandardLoadBalancerConfigurations":[{"name":"a","primaryVMSet":"x"}]`), []string{
			`loadBalancerBackendPoolConfigurationType "nodeIPConfiguration": must be nodeIP with several load balancers`,
		}},
		{"several balancers, one named like the sibling of another",
			sound(multi(`{"name":"a","primaryVMSet":"x"},{"name":"A-Internal","primaryVMSet":"y"},{"name":"b-internal","primaryVMSet":"z"}`)), []string{
				`multipleStandardLoadBalancerConfigurations[1].name "A-Internal": is the name of the internal load balancer of "a"`,
			}},
		{"balancers that Azure would refuse",
			sound(`,"loadBalancerName":"a b"` + multi(`{"name":"a/b","primaryVMSet":"x"},{"name":"b-","primaryVMSet":"y"}`)), []string{
				`loadBalancerName "a b": must be 1 to 71 letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last`,
				`multipleStandardLoadBalancerConfigurations[0].name "a/b": must be 1 to 71 letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last`,
				`multipleStandardLoadBalancerConfigurations[1].name "b-": must be 1 to 71 letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last`,
			}},
		{"several balancers",
			sound(multi(`{"name":"a","primaryVMSet":"x"},{"name":"A"},{"primaryVMSet":"X","nodeSelector":{"matchExpressions":[{"key":"k","operator":"Is"},{"operator":"In"},{"key":"k","operator":"Exists","values":["v"]}]}}`)), []string{
				`multipleStandardLoadBalancerConfigurations[1].name "A": must be unique among the load balancers`,
				"multipleStandardLoadBalancerConfigurations[1].primaryVMSet: is required",
				"multipleStandardLoadBalancerConfigurations[2].name: is required",
				`multipleStandardLoadBalancerConfigurations[2].nodeSelector.matchExpressions[0].operator "Is": must be one of In, NotIn, Exists, DoesNotExist`,
				"multipleStandardLoadBalancerConfigurations[2].nodeSelector.matchExpressions[1].key: is required",
				"multipleStandardLoadBalancerConfigurations[2].nodeSelector.matchExpressions[1].values null: must not be empty with " +
					"operator In",
				`multipleStandardLoadBalancerConfigurations[2].nodeSelector.matchExpressions[2].values ["v"]: must be empty with operator Exists`,
				`multipleStandardLoadBalancerConfigurations[2].primaryVMSet "X": must be unique among the load balancers`,
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _, err := Parse([]byte(test.doc))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if found, ok := errors.AsType[Problems](c.Validate()); ok {
				for _, p := range found {
					got = append(got, p.Error())
				}
			}
			for i, want := range test.want {
				// The rest of the message comes from the id parser.
				if strings.HasSuffix(want, "id: ") && i < len(got) && strings.HasPrefix(got[i], want) {
					got[i] = want
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsNeverShowSecrets(t *testing.T) {
	c, _, err := Parse([]byte(`{"aadClientSecret":"s3cr","aadClientCertPassword":"s3cr"}`))
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(c.Validate()); strings.Contains(text, "s3cr") {
		t.Error(text)
	}
}
