package share_test

import (
	"os"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/plan/share"
)

// defaults are what the driver does for a class without parameters, as the reference says it, by the first key of the row. Each text is
// made of what the code answers.
func defaults(t *testing.T) map[string]string {
	t.Helper()
	class := func(pairs ...string) share.Request {
		values := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			values[pairs[i]] = pairs[i+1]
		}
		p, err := share.ReadClass(values, nil)
		if err != nil {
			t.Fatal(err)
		}
		return share.Request{Parameters: p, Cluster: share.Cluster{Subscription: "s", ResourceGroup: "rg", Location: "westeurope",
			VNetGroup: "net", VNet: "vnet", Subnet: "nodes", Suffix: "core.windows.net"}}
	}
	none, nfs := class(), class("protocol", "nfs")
	mount := share.Mounting{Parameters: none.Parameters, Account: "acct", Share: "s", Host: none.Cluster.Host("acct", "")}.Mount()
	account := none.NewAccount("acct")
	name, err := none.NameOf("pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	// when returns a text if the code does what it says.
	when := func(holds bool, text string) string {
		if !holds {
			return "not: " + text
		}
		return text
	}
	quoted := func(text string) string { return "`" + text + "`" }
	s := none.Share(100, "", "")
	return map[string]string{
		"skuName": when(none.Matches(account) && none.SKU == "", "any; ") + quoted(account.SKU.Name) + " for a new account, " +
			quoted(nfs.NewAccount("a").SKU.Name) + " for NFS",
		"protocol":       when(mount.Type == "cifs", "`smb`"),
		"storageAccount": when(none.Account == "", "chosen"),
		"location": when(account.Location == "westeurope" && none.Group() == azure.GroupID("s", "rg"),
			"those of the cluster"),
		"createAccount":   when(none.CreateAccount == nil && none.MatchTags == nil && none.RandomAccount == nil && none.AccountQuota == nil, ""),
		"shareName":       when(name == "pvc-1", "the name of the volume"),
		"folderName":      when(mount.Source == "//acct.file.core.windows.net/s", "the root"),
		"shareAccessTier": when(s.AccessTier == "" && s.RootSquash == "" && account.Properties.AccessTier == "", "Azure's"),
		"provisionedIOPS": when(suggested(class("skuName", "PremiumV2_LRS"), 3100, 110), "what Azure suggests for the size"),
		"enableLargeFileShares": when(account.Properties.LargeFileShares == "" && account.Properties.PublicNetworkAccess == "" &&
			account.Properties.AllowSharedKeyAccess == nil && !*account.Properties.AllowBlobPublicAccess, "Azure's; `allowBlobPublicAccess`: `false`"),
		"networkEndpointType": when(none.Endpoint == "" && !none.NeedsSubnets(), "none") +
			when(nfs.NeedsSubnets(), "; NFS without a private endpoint uses service endpoints"),
		"vnetResourceGroup": when(none.Network() == azure.GroupID("s", "net").Resource("Microsoft.Network/virtualNetworks", "vnet") &&
			len(nfs.Subnets()) == 1 && nfs.Subnets()[0].Name() == "nodes", "that of the cluster"),
		"skipPrivateDNSZone":       when(len(class("networkEndpointType", "privateEndpoint").EndpointNeeds(account.ID)) == 4, "`false`"),
		"storeAccountKey":          when(none.StoresKey(), "") + quoted(share.SecretName("ACCOUNT")) + " in the claim's namespace",
		"useDataPlaneAPI":          when(none.DataPlane == "", "`false`"),
		"fileMode":                 quoted(option(mount, "file_mode")) + when(option(mount, "dir_mode") == option(mount, "file_mode"), "") + option(mount, "uid"),
		"mountPermissions":         quoted(share.UsualPermissions) + ", " + when(none.GroupChange == "", quoted(share.GroupOnMismatch)),
		"server":                   when(none.Server == "" && none.EndpointSuffix == "", "those of the cloud"),
		"mountWithManagedIdentity": when(!none.Identity(), "a key"),
		"useSecretCache":           "",
	}
}

// suggested reports whether a share of 100 GiB has a performance.
func suggested(r share.Request, iops, bandwidth int64) bool {
	s := r.Share(100, "", "")
	return *s.IOPS == iops && *s.BandwidthMiBs == bandwidth
}

// option returns the value of a mount option, "" if it is not there.
func option(m share.Mount, name string) string {
	for _, o := range m.Options {
		if value, ok := strings.CutPrefix(o, name+"="); ok {
			return value
		}
	}
	return ""
}

// TestReferenceHasDefaults checks defect 35: the defaults in the reference are what the driver does.
func TestReferenceHasDefaults(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/azurefile-csi-driver.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| key | values | default |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	want, rows := defaults(t), 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(cells[1]), "`"), "`")
		is, known := want[first]
		if shown := strings.TrimSpace(cells[3]); !known || shown != is {
			t.Errorf("%s: the reference says %q, and the driver does %q", first, shown, is)
		}
		rows++
	}
	if rows != len(want) {
		t.Errorf("%d rows in the reference, and %d in the test", rows, len(want))
	}
}
