// Package environment has what the template function environment() shows. Layer L2.
package environment

import "kaz/internal/localazure/behaviour"

// Of is the result of environment() at a server with an address: the endpoints of this local Azure, and the suffixes of the public cloud.
func Of(host string) behaviour.Object {
	return behaviour.Object{
		"name": "AzureCloud", "gallery": "https://gallery.azure.com/", "graph": "https://graph.windows.net/",
		"portal": "https://portal.azure.com", "graphAudience": "https://graph.windows.net/",
		"activeDirectoryDataLake": "https://datalake.azure.net/", "batch": "https://batch.core.windows.net/",
		"media": "https://rest.media.azure.net", "sqlManagement": "https://management.core.windows.net:8443/",
		"vmImageAliasDoc": "https://raw.githubusercontent.com/Azure/azure-rest-api-specs/master/arm-compute/quickstart-templates/" +
			"aliases.json",
		"resourceManager": host + "/",
		"authentication": behaviour.Object{
			"loginEndpoint": host + "/", "audiences": []any{"https://management.core.windows.net/", "https://management.azure.com/"},
			"tenant": "common", "identityProvider": "AAD",
		},
		"suffixes": behaviour.Object{
			"acrLoginServer": ".azurecr.io", "azureDatalakeAnalyticsCatalogAndJob": "azuredatalakeanalytics.net",
			"azureDatalakeStoreFileSystem": "azuredatalakestore.net", "azureFrontDoorEndpointSuffix": "azurefd.net",
			"keyvaultDns": ".vault.azure.net", "sqlServerHostname": ".database.windows.net", "storage": "core.windows.net",
		},
	}
}
