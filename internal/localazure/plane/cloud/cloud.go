// Package cloud has the hosts of Azure's public clouds. The data planes of the local Azure (the packages below plane)
// answer in their place. Layer L2.
package cloud

import "strings"

// Cloud is one of Azure's clouds.
type Cloud struct {
	// Name is the cloud's name in configuration files, Alias the name in newer tools.
	Name, Alias string
	// ARM is the host of Azure Resource Manager, Classic the host of its audience.
	ARM, Classic string
	// Logins are the hosts of Entra ID, the preferred one first.
	Logins []string
	// Registry, Storage and Vault are suffixes of data plane hosts.
	Registry, Storage, Vault string
}

// Clouds returns all clouds, the public one first.
func Clouds() []Cloud {
	return []Cloud{
		{
			Name: "AzurePublicCloud", Alias: "AzureCloud",
			ARM: "management.azure.com", Classic: "management.core.windows.net",
			Logins:   []string{"login.microsoftonline.com", "login.windows.net", "login.microsoft.com", "sts.windows.net"},
			Registry: "azurecr.io", Storage: "core.windows.net", Vault: "vault.azure.net",
		},
		{
			Name: "AzureChinaCloud",
			ARM:  "management.chinacloudapi.cn", Classic: "management.core.chinacloudapi.cn",
			Logins:   []string{"login.chinacloudapi.cn", "login.partner.microsoftonline.cn"},
			Registry: "azurecr.cn", Storage: "core.chinacloudapi.cn", Vault: "vault.azure.cn",
		},
		{
			Name: "AzureUSGovernmentCloud", Alias: "AzureUSGovernment",
			ARM: "management.usgovcloudapi.net", Classic: "management.core.usgovcloudapi.net",
			Logins:   []string{"login.microsoftonline.us", "login.usgovcloudapi.net"},
			Registry: "azurecr.us", Storage: "core.usgovcloudapi.net", Vault: "vault.usgovcloudapi.net",
		},
	}
}

// OfHost returns the cloud of a login, ARM or registry host.
func OfHost(host string) (Cloud, bool) {
	for _, c := range Clouds() {
		if c.isLogin(host) || c.isARM(host) || isBelow(host, c.Registry) {
			return c, true
		}
	}
	return Cloud{}, false
}

// IsLogin reports whether a host is a login host of Entra ID, also the login host of a region.
func IsLogin(host string) bool {
	for _, c := range Clouds() {
		if c.isLogin(host) {
			return true
		}
	}
	return false
}

func (c Cloud) isLogin(host string) bool {
	for _, login := range c.Logins {
		if strings.EqualFold(host, login) || isBelow(host, login) {
			return true
		}
	}
	return false
}

func (c Cloud) isARM(host string) bool {
	return strings.EqualFold(host, c.ARM) || strings.EqualFold(host, c.Classic) || isBelow(host, c.ARM)
}

// isBelow reports whether a host is below the domain.
func isBelow(host, domain string) bool {
	host = strings.ToLower(host)
	name, ok := strings.CutSuffix(host, "."+domain)
	return ok && name != ""
}

// Audiences returns the audiences of tokens for Azure Resource Manager: the cloud's own and the audiences of older clients,
// with and without a final slash.
func (c Cloud) Audiences() []string {
	return []string{
		"https://" + c.Classic + "/", "https://" + c.Classic,
		"https://" + c.ARM + "/", "https://" + c.ARM,
	}
}
