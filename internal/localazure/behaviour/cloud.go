package behaviour

import "strings"

// Cloud are the DNS suffixes of the cloud that a region belongs to.
type Cloud struct {
	Storage  string // "core.windows.net"
	Registry string // "azurecr.io"
	Vault    string // "vault.azure.net"
}

// CloudOf is the cloud of a region: the public one, China's or the US government's.
func CloudOf(location string) Cloud {
	switch {
	case strings.HasPrefix(location, "china"):
		return Cloud{Storage: "core.chinacloudapi.cn", Registry: "azurecr.cn", Vault: "vault.azure.cn"}
	case strings.HasPrefix(location, "usgov"), strings.HasPrefix(location, "usdod"):
		return Cloud{Storage: "core.usgovcloudapi.net", Registry: "azurecr.us", Vault: "vault.usgovcloudapi.net"}
	}
	return Cloud{Storage: "core.windows.net", Registry: "azurecr.io", Vault: "vault.azure.net"}
}
