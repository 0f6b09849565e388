package ipam

import (
	"strings"
	"sync"

	"kaz/internal/localazure/core/catalog"
)

// serviceTags are the names that stand for the addresses of a service. A name with a final dot also exists for each
// region: "Storage.WestEurope".
const serviceTags = `
VirtualNetwork AzureLoadBalancer Internet
ActionGroup ApiManagement. ApplicationInsightsAvailability AppConfiguration AppService. AppServiceManagement
AutonomousDevelopmentPlatform AzureActiveDirectory AzureActiveDirectoryDomainServices AzureAdvancedThreatProtection
AzureArcInfrastructure AzureAttestation AzureBackup AzureBotService AzureCloud. AzureCognitiveSearch AzureConnectors.
AzureContainerAppsService AzureContainerRegistry. AzureCosmosDB. AzureDatabricks AzureDataExplorerManagement
AzureDeviceUpdate AzureDevOps AzureDevSpaces AzureDigitalTwins AzureEventGrid AzureFrontDoor.Frontend
AzureFrontDoor.Backend AzureFrontDoor.FirstParty AzureHealthcareAPIs AzureInformationProtection AzureIoTHub
AzureKeyVault. AzureMachineLearning AzureMachineLearningInference AzureManagedGrafana AzureMonitor
AzureMonitorForSAP AzureOpenDatasets AzurePlatformDNS AzurePlatformIMDS AzurePlatformLKM AzureResourceManager
AzureSentinel AzureSignalR AzureSiteRecovery AzureSphere AzureSpringCloud AzureStack AzureTrafficManager
AzureUpdateDelivery AzureVideoAnalyzerForMedia AzureWebPubSub BatchNodeManagement. ChaosStudio
CognitiveServicesFrontend CognitiveServicesManagement DataFactory. DataFactoryManagement Dynamics365BusinessCentral
Dynamics365ForMarketingEmail EOPExternalPublishedIPs EventHub. GatewayManager GenevaActions GuestAndHybridManagement
HDInsight. LogicApps LogicAppsManagement Marketplace M365ManagementActivityApi MicrosoftAzureFluidRelay
MicrosoftCloudAppSecurity MicrosoftContainerRegistry. MicrosoftDefenderForEndpoint MicrosoftPurviewPolicyDistribution
OneDsCollector PowerBI PowerPlatformInfra PowerPlatformPlex PowerQueryOnline Scuba SCCservice SecurityCopilot
SerialConsole ServiceBus. ServiceFabric Sql. SqlManagement Storage. StorageSyncService StorageMover
VideoIndexer WindowsAdminCenter WindowsVirtualDesktop`

var tags = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for word := range strings.FieldsSeq(serviceTags) {
		name, regional := strings.CutSuffix(strings.ToLower(word), ".")
		known[name] = regional
	}
	return known
})

// IsServiceTag reports whether a text is "*" or a service tag, in any case.
func IsServiceTag(text string) bool {
	lower := strings.ToLower(text)
	if _, ok := tags()[lower]; ok || text == "*" {
		return true
	}
	name, region, hasRegion := strings.Cut(lower, ".")
	if !hasRegion || !tags()[name] {
		return false
	}
	_, ok := catalog.FindRegion(region)
	return ok
}
