package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"

	"sigs.k8s.io/yaml"

	"kaz/internal/cloudconfig"
	"kaz/internal/component"
)

// variable is an environment variable of the in-tree provider that sets a key of the cloud configuration.
type variable struct {
	key, name string
	boolean   bool
}

// variables returns the table of variables. Of two variables of one key the later one decides.
func variables() []variable {
	return []variable{
		{"cloud", "ARM_CLOUD", false}, {"location", "LOCATION", false},
		{"tenantId", "ARM_TENANT_ID", false}, {"tenantId", "AZURE_TENANT_ID", false},
		{"subscriptionId", "ARM_SUBSCRIPTION_ID", false}, {"resourceGroup", "ARM_RESOURCE_GROUP", false},
		{"vmType", "ARM_VM_TYPE", false},
		{"aadClientId", "ARM_CLIENT_ID", false}, {"aadClientId", "AZURE_CLIENT_ID", false},
		{"aadClientSecret", "ARM_CLIENT_SECRET", false},
		{"aadClientCertPath", "ARM_CLIENT_CERT_PATH", false}, {"aadClientCertPassword", "ARM_CLIENT_CERT_PASSWORD", false},
		{"aadFederatedTokenFile", "AZURE_FEDERATED_TOKEN_FILE", false},
		{"useManagedIdentityExtension", "ARM_USE_MANAGED_IDENTITY_EXTENSION", true},
		{"useFederatedWorkloadIdentityExtension", "ARM_USE_FEDERATED_WORKLOAD_IDENTITY_EXTENSION", true},
		{"useFederatedWorkloadIdentityExtension", "ARM_USE_WORKLOAD_IDENTITY_EXTENSION", true},
		{"userAssignedIdentityID", "ARM_USER_ASSIGNED_IDENTITY_ID", false},
	}
}

// fromEnvironment returns the cloud configuration that the environment gives, nil if it gives none.
func fromEnvironment(lookup func(string) (string, bool)) ([]byte, error) {
	keys := map[string]any{}
	var problems []error
	for _, v := range variables() {
		value, _ := lookup(v.name)
		switch {
		case value == "":
		case v.boolean:
			b, err := strconv.ParseBool(value)
			if err != nil {
				problems = append(problems, fmt.Errorf("$%s %q: must be true or false", v.name, value))
			}
			keys[v.key] = b
		default:
			keys[v.key] = value
		}
	}
	if len(keys) == 0 {
		return nil, errors.Join(problems...)
	}
	text, err := json.Marshal(keys)
	return text, errors.Join(append(problems, err)...)
}

// own are the keys that only the autoscaler's provider has.
type own struct {
	EnableForceDelete bool `json:"enableForceDelete"`
}

// readConfig reads the cloud configuration: the environment, then the file. A file that does not exist is no error if
// the environment has what is needed.
func readConfig(path string, lookup func(string) (string, bool), log *slog.Logger) (cloudconfig.Config, own, error) {
	var extra own
	overrides, err := fromEnvironment(lookup)
	if err != nil {
		return cloudconfig.Config{}, extra, err
	}
	file, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && overrides != nil:
	case errors.Is(err, fs.ErrNotExist):
		return cloudconfig.Config{}, extra, fmt.Errorf("--cloud-config: %w; name the azure.json of the cluster, or set the environment "+
			"variables of the in-tree provider, such as ARM_SUBSCRIPTION_ID and ARM_RESOURCE_GROUP", err)
	case err != nil:
		return cloudconfig.Config{}, extra, fmt.Errorf("--cloud-config: %w", err)
	}
	if file, extra, err = cutOwn(file); err != nil {
		return cloudconfig.Config{}, extra, fmt.Errorf("--cloud-config %s: %w", path, err)
	}
	if text, ok := lookup("AZURE_ENABLE_FORCE_DELETE"); ok && text != "" {
		if extra.EnableForceDelete, err = strconv.ParseBool(text); err != nil {
			return cloudconfig.Config{}, extra, fmt.Errorf("$AZURE_ENABLE_FORCE_DELETE %q: must be true or false", text)
		}
	}
	config, warnings, err := cloudconfig.Merge(file, overrides)
	config, err = component.CheckCloudConfig(log, path, config, warnings, err)
	return config, extra, err
}

// cutOwn takes the keys that only this provider has out of a cloud configuration.
func cutOwn(file []byte) (rest []byte, o own, err error) {
	if file == nil {
		return nil, o, nil
	}
	var keys map[string]any
	if yaml.Unmarshal(file, &keys) != nil {
		return file, o, nil // whoever reads the rest says what is wrong
	}
	if yaml.Unmarshal(file, &o) != nil {
		return nil, o, errors.New("enableForceDelete: must be true or false")
	}
	for _, key := range ownKeys() {
		delete(keys, key)
	}
	rest, err = json.Marshal(keys)
	return rest, o, err
}

// ownKeys are the keys of the in-tree provider that other components do not have.
func ownKeys() []string {
	return []string{
		"enableForceDelete", "strictCacheUpdates", "enableVMsAgentPool", "enableVMSSEtag", "enableDynamicInstanceList",
		"enableDetailedCSEMessage", "enableFastDeleteOnFailedProvisioning", "enableLabelPredictionsOnTemplate",
		"getVmssSizeRefreshPeriod", "maxDeploymentsCount", "vmssVmsCacheJitter", "vmssCacheTTL", "vmssVmsCacheTTL",
		"deployment", "deploymentParameters", "clusterResourceGroup", "authMethod",
	}
}
