package boot

import (
	"encoding/xml"
	"os"
	"path/filepath"
)

// environment is the file that Azure gives a new machine on its provisioning disk: host name, administrator and custom data.
type environment struct {
	XMLName  xml.Name `xml:"http://schemas.dmtf.org/ovf/environment/1 Environment"`
	Section  section  `xml:"http://schemas.microsoft.com/windowsazure ProvisioningSection"`
	Platform platform `xml:"http://schemas.microsoft.com/windowsazure PlatformSettingsSection"`
}

type section struct {
	Version string        `xml:"http://schemas.microsoft.com/windowsazure Version"`
	Linux   linuxSettings `xml:"http://schemas.microsoft.com/windowsazure LinuxProvisioningConfigurationSet"`
}

type linuxSettings struct {
	Kind       string `xml:"ConfigurationSetType"`
	Host       string `xml:"HostName"`
	User       string `xml:"UserName"`
	KeysOnly   bool   `xml:"DisableSshPasswordAuthentication"`
	CustomData string `xml:"CustomData,omitempty"`
}

type platform struct {
	Version  string           `xml:"http://schemas.microsoft.com/windowsazure Version"`
	Settings platformSettings `xml:"http://schemas.microsoft.com/windowsazure PlatformSettings"`
}

type platformSettings struct {
	Agent bool `xml:"ProvisionGuestAgent"`
}

// environmentFile is where cloud-init finds the provisioning files without a disk.
const environmentFile = "var/lib/cloud/seed/azure/ovf-env.xml"

// provision writes the provisioning file into the root of a machine.
func provision(root string, s Spec) error {
	text, err := xml.MarshalIndent(environment{
		Section: section{Version: "1.0", Linux: linuxSettings{Kind: "LinuxProvisioningConfiguration", Host: s.Host, User: s.User,
			KeysOnly: true, CustomData: s.CustomData}},
		Platform: platform{Version: "1.0"},
	}, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(root, environmentFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), text...), 0o600)
}
