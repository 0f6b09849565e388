package share_test

import (
	"testing"

	"kaz/internal/plan/share"
)

// TestUses checks by which of its parts a persistent volume uses the share "common" of the account "acct".
func TestUses(t *testing.T) {
	type attributes = map[string]string
	for what, c := range map[string]struct {
		volume share.Claimed
		want   share.Use
	}{
		"an id":                {share.Claimed{Handle: "rg#acct#common##x#apps"}, share.Used},
		"letter case":          {share.Claimed{Handle: "rg#ACCT#Common##x#apps"}, share.Used},
		"a folder":             {share.Claimed{Handle: "rg#acct#common/folder"}, share.Used},
		"another share":        {share.Claimed{Handle: "rg#acct#other###apps"}, share.NotUsed},
		"another account":      {share.Claimed{Handle: "rg#acct2#common###apps"}, share.NotUsed},
		"a volume of in-tree":  {share.Claimed{Handle: "#acct#common#web#apps"}, share.Used},
		"a Secret of in-tree":  {share.Claimed{Handle: "#my-key#common#web#apps"}, share.MayUse},
		"an account in secret": {share.Claimed{Handle: "rg##common###apps"}, share.MayUse},
		"attributes": {share.Claimed{Handle: "shared-ns-b-unique-id",
			Attributes: attributes{"storageaccount": "acct", "shareName": "common"}}, share.Used},
		"attributes before the id": {share.Claimed{Handle: "rg#acct2#other###apps",
			Attributes: attributes{"storageAccount": "acct", "shareName": "common"}}, share.Used},
		"attributes of another account": {share.Claimed{Handle: "any",
			Attributes: attributes{"storageAccount": "acct2", "shareName": "common"}}, share.NotUsed},
		"attributes of another share": {share.Claimed{Handle: "common-2",
			Attributes: attributes{"storageAccount": "acct", "shareName": "other"}}, share.NotUsed},
		"no account": {share.Claimed{Handle: "any", Attributes: attributes{"shareName": "common"}}, share.MayUse},
		"a server": {share.Claimed{Handle: "any",
			Attributes: attributes{"shareName": "common", "server": "acct.privatelink.file.core.windows.net"}}, share.Used},
		"another server": {share.Claimed{Handle: "any",
			Attributes: attributes{"shareName": "common", "server": "acct2.file.core.windows.net"}}, share.NotUsed},
		"a server with a name like an account's": {share.Claimed{Handle: "any",
			Attributes: attributes{"shareName": "common", "server": "proxy.file.example.com"}}, share.MayUse},
		"a server with its own name": {share.Claimed{Handle: "rg#acct2#common###apps",
			Attributes: attributes{"server": "10.0.0.4"}}, share.MayUse},
		"a claim's name": {share.Claimed{Handle: "rg#acct#x##y#apps", ClaimName: "common",
			Attributes: attributes{"shareName": "${pvc.metadata.name}"}}, share.Used},
		"a claim that is not known": {share.Claimed{Handle: "any",
			Attributes: attributes{"shareName": "${pvc.metadata.name}", "storageAccount": "acct"}}, share.MayUse},
		"an id that only has the name": {share.Claimed{Handle: "acct/Common"}, share.MayUse},
		"an id that says nothing":      {share.Claimed{Handle: "any"}, share.NotUsed},
	} {
		if got := c.volume.Uses("acct", "common"); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// TestTranslatedVolumes checks which ids are those of the in-tree driver: they have five parts and a name, which can look like that
// of a VHD file.
func TestTranslatedVolumes(t *testing.T) {
	for id, want := range map[string]share.Volume{
		"#acct#share2#web-data#shop":   {Account: "acct", Share: "share2", UUID: "web-data", Namespace: "shop", Translated: true},
		"#acct#share2#web.vhd#shop":    {Account: "acct", Share: "share2", UUID: "web.vhd", Namespace: "shop", Translated: true},
		"#acct#share2##shop":           {Account: "acct", Share: "share2", Namespace: "shop", Translated: true},
		"rg#acct#share2#web-data#shop": {Group: "rg", Account: "acct", Share: "share2", UUID: "web-data", Namespace: "shop", Translated: true},
		"rg#acct#share2##pvc-1":        {Group: "rg", Account: "acct", Share: "share2", UUID: "pvc-1"},
		"rg#acct#share2#d.VHD#pvc-1":   {Group: "rg", Account: "acct", Share: "share2", Disk: "d.VHD", UUID: "pvc-1"},
		"#acct#share2##pvc-1#shop":     {Account: "acct", Share: "share2", UUID: "pvc-1", Namespace: "shop"},
		"rg#acct#share2#x#pvc-1#shop":  {Group: "rg", Account: "acct", Share: "share2", UUID: "pvc-1", Namespace: "shop"},
	} {
		if got, err := share.ParseVolume(id); err != nil || got != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}
