package cloudconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The names of the well-known clouds.
const (
	PublicCloud       = "AzurePublicCloud"
	ChinaCloud        = "AzureChinaCloud"
	USGovernmentCloud = "AzureUSGovernmentCloud"
	StackCloud        = "AzureStackCloud"
)

// MetadataAPIVersion is the api-version of the document that describes a cloud.
const MetadataAPIVersion = "2019-05-01"

// Environment describes a cloud.
type Environment struct {
	Name            string
	ResourceManager string // endpoint, without a slash at its end
	Audience        string // audience of tokens for the Resource Manager
	Authority       string // issuer of tokens
	StorageSuffix   string // DNS suffix of storage accounts
	RegistrySuffix  string // DNS suffix of container registries
}

// Scope returns the scope of tokens for the Resource Manager.
func (e Environment) Scope() string { return e.Audience + "/.default" }

// EnvironmentNamed returns a well-known cloud by any of its names, in any case. The empty name is the
// public cloud.
func EnvironmentNamed(cloud string) (Environment, bool) {
	name := canonicalCloud(cloud)
	for _, e := range environments() {
		if e.Name == name {
			return e, true
		}
	}
	return Environment{Name: name}, false
}

func environments() []Environment {
	return []Environment{
		{
			Name:            PublicCloud,
			ResourceManager: "https://management.azure.com",
			Audience:        "https://management.core.windows.net/",
			Authority:       "https://login.microsoftonline.com/",
			StorageSuffix:   "core.windows.net",
			RegistrySuffix:  "azurecr.io",
		},
		{
			Name:            ChinaCloud,
			ResourceManager: "https://management.chinacloudapi.cn",
			Audience:        "https://management.core.chinacloudapi.cn/",
			Authority:       "https://login.chinacloudapi.cn/",
			StorageSuffix:   "core.chinacloudapi.cn",
			RegistrySuffix:  "azurecr.cn",
		},
		{
			Name:            USGovernmentCloud,
			ResourceManager: "https://management.usgovcloudapi.net",
			Audience:        "https://management.core.usgovcloudapi.net/",
			Authority:       "https://login.microsoftonline.us/",
			StorageSuffix:   "core.usgovcloudapi.net",
			RegistrySuffix:  "azurecr.us",
		},
	}
}

// canonicalCloud returns the canonical name of a well-known cloud. Other names are unchanged.
func canonicalCloud(cloud string) string {
	switch strings.ToLower(cloud) {
	case "", "azurepubliccloud", "azurecloud":
		return PublicCloud
	case "azurechinacloud":
		return ChinaCloud
	case "azureusgovernmentcloud", "azureusgovernment":
		return USGovernmentCloud
	case "azurestackcloud":
		return StackCloud
	}
	return cloud
}

// MetadataURL returns the URL at which a custom Resource Manager describes its cloud, or "" without
// one.
func (c Config) MetadataURL() string {
	if c.ResourceManagerEndpoint == "" {
		return ""
	}
	return strings.TrimSuffix(c.ResourceManagerEndpoint, "/") + "/metadata/endpoints?api-version=" + MetadataAPIVersion
}

// Environment describes the cloud of the configuration. The argument metadata is the document at
// [Config.MetadataURL], and file is the content of EnvironmentFile. Each is nil if the configuration does not name
// it. The file takes precedence.
func (c Config) Environment(metadata, file []byte) (Environment, error) {
	env, known := EnvironmentNamed(c.Cloud)
	if metadata != nil {
		described, err := EnvironmentFromMetadata(metadata, c.Cloud)
		if err != nil {
			return Environment{}, err
		}
		env, known = described, true
	}
	if env.ResourceManager == "" || c.ResourceManagerEndpoint != "" && metadata == nil {
		env.ResourceManager = strings.TrimSuffix(c.ResourceManagerEndpoint, "/")
	}
	if file != nil && canonicalCloud(c.Cloud) == StackCloud {
		var err error
		if env, err = env.WithFile(file); err != nil {
			return Environment{}, err
		}
		known = true
	}
	if !known {
		return Environment{},
			fmt.Errorf("cloud %q: unknown: want %s, or a resourceManagerEndpoint that describes it", c.Cloud, cloudNames())
	}
	return env, env.check()
}

// check returns an error unless tokens can be requested and used.
func (e Environment) check() error {
	var missing []error
	for _, part := range []struct{ what, value string }{
		{"Resource Manager endpoint", e.ResourceManager},
		{"authority", e.Authority},
	} {
		if problem := badEndpoint(part.value); problem != "" {
			missing = append(missing, fmt.Errorf("cloud %q: %s %q: %s", e.Name, part.what, part.value, problem))
		}
	}
	if e.Audience == "" {
		missing = append(missing, fmt.Errorf("cloud %q: no audience for tokens", e.Name))
	}
	return errors.Join(missing...)
}

// described is a cloud in the metadata of a Resource Manager.
type described struct {
	Name            string `json:"name"`
	ResourceManager string `json:"resourceManager"`
	Authentication  struct {
		LoginEndpoint string   `json:"loginEndpoint"`
		Audiences     []string `json:"audiences"`
	} `json:"authentication"`
	Suffixes struct {
		Registry string `json:"acrLoginServer"`
		Storage  string `json:"storage"`
	} `json:"suffixes"`
}

// EnvironmentFromMetadata returns a cloud from the document that a Resource Manager serves at
// /metadata/endpoints, a list of clouds. An empty name selects the first cloud. What the document
// lacks comes from the well-known cloud of that name. The endpoint is empty if the document lacks it:
// the caller's endpoint then applies.
func EnvironmentFromMetadata(doc []byte, cloud string) (Environment, error) {
	var clouds []described
	if err := json.Unmarshal(doc, &clouds); err != nil {
		return Environment{}, fmt.Errorf("cloud metadata: want a list of clouds in JSON: %w", err)
	}
	found, err := pick(clouds, cloud)
	if err != nil {
		return Environment{}, err
	}
	env, known := EnvironmentNamed(found.Name)
	if !known {
		env = Environment{Name: found.Name}
	}
	if len(found.Authentication.Audiences) == 0 || found.Authentication.Audiences[0] == "" {
		return Environment{}, fmt.Errorf("cloud metadata: cloud %q has no audiences", found.Name)
	}
	env.Audience = found.Authentication.Audiences[0]
	env.ResourceManager = strings.TrimSuffix(found.ResourceManager, "/")
	replace(&env.Authority, found.Authentication.LoginEndpoint)
	replace(&env.StorageSuffix, found.Suffixes.Storage)
	replace(&env.RegistrySuffix, found.Suffixes.Registry)
	return env, nil
}

func pick(clouds []described, cloud string) (described, error) {
	if len(clouds) == 0 {
		return described{}, errors.New("cloud metadata: the list of clouds is empty")
	}
	if cloud == "" {
		return clouds[0], nil
	}
	wanted := canonicalCloud(cloud)
	i := slices.IndexFunc(clouds, func(d described) bool {
		return strings.EqualFold(d.Name, cloud) || d.Name != "" && strings.EqualFold(canonicalCloud(d.Name), wanted)
	})
	if i >= 0 {
		return clouds[i], nil
	}
	// An Azure Stack has its own name and describes only itself.
	if wanted == StackCloud && len(clouds) == 1 {
		return clouds[0], nil
	}
	names := make([]string, len(clouds))
	for i, d := range clouds {
		names[i] = d.Name
	}
	return described{}, fmt.Errorf("cloud metadata: no cloud %q, only %s", cloud, strings.Join(names, ", "))
}

// stackFile has the keys that are read from an Azure Stack's environment file.
type stackFile struct {
	Name            string `json:"name"`
	ResourceManager string `json:"resourceManagerEndpoint"`
	Audience        string `json:"tokenAudience"`
	Authority       string `json:"activeDirectoryEndpoint"`
	Storage         string `json:"storageEndpointSuffix"`
	Registry        string `json:"containerRegistryDNSSuffix"`
}

// WithFile applies an Azure Stack's environment file. It uses endpoint and audience of the Resource
// Manager only if both are set.
func (e Environment) WithFile(doc []byte) (Environment, error) {
	var file stackFile
	if err := json.Unmarshal(doc, &file); err != nil {
		return Environment{}, fmt.Errorf("azure stack environment file: %w", err)
	}
	if file.ResourceManager != "" && file.Audience != "" {
		e.ResourceManager = strings.TrimSuffix(file.ResourceManager, "/")
		e.Audience = file.Audience
	}
	replace(&e.Name, file.Name)
	replace(&e.Authority, file.Authority)
	replace(&e.StorageSuffix, file.Storage)
	replace(&e.RegistrySuffix, file.Registry)
	return e, nil
}

func replace(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// badEndpoint returns what is wrong with an address, or "".
func badEndpoint(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return "must be an address such as https://host or http://host:port"
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "must have no user, query or fragment"
	}
	return ""
}

func cloudNames() string {
	return strings.Join([]string{PublicCloud, "AzureCloud", ChinaCloud, USGovernmentCloud, "AzureUSGovernment", StackCloud}, ", ")
}
