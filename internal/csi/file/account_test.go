package file_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/share"
	"kaz/internal/testkit"
)

// accountOf returns the account of a volume.
func accountOf(volume string) string { return strings.Split(volume, "#")[1] }

// TestAccountIsChosen checks rows 13, 15, 18, 32, 33 and defects 2, 11 and 12 of the other driver: which account a volume gets.
func TestAccountIsChosen(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.account("aaforeign", "Standard_LRS", "StorageV2", nil, nil)
	w.account("bbskipped", "Premium_LRS", "FileStorage", nil, map[string]any{"skip-matching": ""})
	w.account("cctagged", "Premium_LRS", "FileStorage", nil, map[string]any{"team": "a", "k8s-azure-created-by": "azure"})
	w.Put(testkit.Group.Resource(storage.Accounts, "aafar"), map[string]any{"location": "northeurope", "kind": "FileStorage", "sku": map[string]any{"name": "Premium_LRS"},
		"properties": map[string]any{"allowBlobPublicAccess": false}})
	w.account("aaprivate", "Standard_LRS", "StorageV2", map[string]any{"publicNetworkAccess": "Disabled"}, nil)
	for what, c := range map[string]struct {
		parameters []string
		want       string // "" for a new account
	}{
		"the first that fits":      {nil, "aaforeign"},
		"33":                       {[]string{"skuName", "Premium_LRS"}, "cctagged"},
		"13":                       {[]string{"skuName", "Premium_LRS", "matchTags", "true", "tags", "team=a"}, "cctagged"},
		"other tags":               {[]string{"skuName", "Premium_LRS", "matchTags", "true", "tags", "team=b"}, ""},
		"named":                    {[]string{"storageAccount", "bbskipped"}, "bbskipped"},
		"another SKU":              {[]string{"skuName", "Standard_GRS"}, ""},
		"own account":              {[]string{"createAccount", "true"}, ""},
		"another region":           {[]string{"skuName", "Premium_LRS", "location", "northeurope"}, "aafar"},
		"public network access":    {[]string{"publicNetworkAccess", "Disabled"}, "aaprivate"},
		"a tier":                   {[]string{"accountAccessTier", "Cool"}, ""},
		"kept when it is repeated": {[]string{"accountAccessTier", "Cool", "shareAccessTier", "Hot"}, ""},
	} {
		name := "pvc-" + strings.ReplaceAll(strings.ToLower(what), " ", "-")
		v := w.volume(name, c.parameters...)
		got := accountOf(v.GetVolumeId())
		if c.want != "" && got != c.want || c.want == "" && !strings.HasPrefix(got, "f") {
			t.Errorf("%s: account %s, want %s", what, got, c.want)
		}
		again, err := w.again().CreateVolume(t.Context(), request(name, c.parameters...))
		if err != nil || accountOf(again.GetVolume().GetVolumeId()) != got {
			t.Errorf("%s: a new process: %v, %v", what, again, err)
		}
	}
	tiers := 0
	for _, a := range w.accounts() {
		if a.Properties.AccessTier == "Cool" {
			tiers++
		}
		if strings.HasPrefix(a.ID.Name(), "f") && (a.Tags["k8s-azure-created-by"] != "azure" || a.Properties.MinimumTLSVersion != "TLS1_2") {
			t.Errorf("a new account: %+v", a)
		}
	}
	if tiers != 1 {
		t.Errorf("%d accounts with the tier Cool, want 1 for two volumes", tiers)
	}
	_, err := w.CreateVolume(t.Context(), request("pvc-none", "storageAccount", "nosuch"))
	wantCode(t, "32", err, codes.NotFound)
}

// TestAccountsOfOthers checks defect 11. The driver does not choose an account that the nodes do not reach as the class
// says. Nor does it choose an account that another program has for itself, such as that of an image registry. It chooses all
// other accounts, regardless of their maker.
func TestAccountsOfOthers(t *testing.T) {
	type object = map[string]any
	closed := object{"publicNetworkAccess": "Disabled"}
	keyless := object{"allowSharedKeyAccess": false}
	denied := object{"networkAcls": object{"defaultAction": "Deny"}}
	made := object{"k8s-azure-created-by": "azure"}
	for what, c := range map[string]struct {
		properties object
		tags       object
		endpoint   bool // the account has a private endpoint
		class      []string
		chosen     bool
	}{
		"of a user":                                 {nil, nil, false, nil, true},
		"with tags of a user":                       {nil, object{"team": "a"}, false, nil, true},
		"closed":                                    {closed, made, false, nil, false},
		"closed, and the class as well":             {closed, nil, true, []string{"publicNetworkAccess", "Disabled"}, true},
		"closed to perimeters":                      {object{"publicNetworkAccess": "SecuredByPerimeter"}, nil, false, nil, false},
		"with an endpoint":                          {nil, nil, true, nil, false},
		"with an endpoint, and the class as well":   {nil, nil, true, []string{"networkEndpointType", "privateEndpoint"}, true},
		"of the driver, with an endpoint of a user": {nil, made, true, nil, true},
		"of the driver for private endpoints":       {denied, made, true, nil, false},
		"of an image registry":                      {nil, object{"kubernetes.io_cluster.c-1": "owned"}, false, nil, false},
		"of a cluster":                              {nil, object{"kubernetes.io_cluster.c-1": "shared"}, false, nil, true},
		"of the driver in a cluster that tags all": {nil, object{"kubernetes.io_cluster.c-1": "owned", "k8s-azure-created-by": "azure"},
			false, nil, true},
		"of an engine cluster, for backups of etcd":      {nil, object{"kaz_cluster": "c-1", "kaz_unit": "storage"}, false, nil, false},
		"that takes no keys":                             {keyless, nil, false, nil, false},
		"that takes no keys, of a driver":                {keyless, made, false, []string{"mountWithManagedIdentity", "true"}, false},
		"that takes no keys, and the class as well":      {keyless, nil, false, []string{"allowSharedKeyAccess", "false", "storeAccountKey", "false"}, true},
		"that takes keys, and the class has none":        {nil, nil, false, []string{"allowSharedKeyAccess", "false", "storeAccountKey", "false"}, false},
		"of Cloud Shell":                                 {nil, object{"ms-resource-usage": "azure-cloud-shell"}, false, nil, false},
		"of another kind":                                {object{"isHnsEnabled": true}, nil, false, nil, false},
		"with public network access that the class asks": {closed, nil, false, []string{"publicNetworkAccess", "Enabled"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{})
			account := w.account("aatheirs", "Standard_LRS", "StorageV2", c.properties, c.tags)
			if c.endpoint {
				w.Put(testkit.Group.Resource(network.PrivateEndpoints, "theirs"), object{"location": testkit.Location, "properties": object{
					"subnet": object{"id": testkit.VNet.Child("subnets", "nodes")},
					"privateLinkServiceConnections": []object{{"name": "c", "properties": object{"privateLinkServiceId": account,
						"groupIds": []string{"file"}}}}}})
			}
			for _, name := range []string{"pvc-1", "pvc-2"} { // the second one finds the account of the first
				if got := accountOf(w.volume(name, c.class...).GetVolumeId()); (got == "aatheirs") != c.chosen {
					t.Errorf("%s: account %s", name, got)
				}
			}
			if n := len(w.accounts()); n > 2 {
				t.Errorf("%d accounts", n)
			}
			named := w.volume("pvc-named", append(c.class, "storageAccount", "aatheirs")...)
			if got := accountOf(named.GetVolumeId()); got != "aatheirs" {
				t.Errorf("a class that names the account: %s", got)
			}
		})
	}
}

// TestAccountThatDoesNotAnswer checks that while the settings of the driver's own account cannot be read, no other account is made.
func TestAccountThatDoesNotAnswer(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	class := []string{"disableDeleteRetentionPolicy", "true"}
	w.volume("pvc-1", class...)
	if err := w.SetFaults([]core.Fault{{Method: "GET", Type: storage.FileServices, Fault: core.FaultError, Status: 403,
		Code: "AuthorizationFailed"}}); err != nil {
		t.Fatal(err)
	}
	_, err := w.again().CreateVolume(t.Context(), request("pvc-2", class...))
	wantCode(t, "settings that cannot be read", err, codes.PermissionDenied)
	if n := len(w.accounts()); n != 1 {
		t.Errorf("%d accounts, want 1", n)
	}
}

// TestAccountQuota checks row 15: the shares of an account together stay within its quota.
func TestAccountQuota(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	accounts := map[string]int{}
	for _, name := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		r := request(name, "accountQuota", "100")
		r.CapacityRange.RequiredBytes = 40 * gib
		made, err := w.CreateVolume(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		accounts[accountOf(made.GetVolume().GetVolumeId())]++
	}
	if len(accounts) != 2 {
		t.Errorf("volumes by account: %v, want 2 accounts", accounts)
	}
}

// TestFullAccount checks row 34: a full account gets a tag, and the next one is used; an account that the user names is not
// replaced.
func TestFullAccount(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.account("aafull", "Standard_LRS", "StorageV2", nil, nil)
	full := func(name string, times int) core.Fault {
		return core.Fault{Method: "PUT", Type: storage.Shares, Name: name, Times: times, Fault: core.FaultError, Status: 409,
			Code: "TotalSharesProvisionedCapacityExceedsAccountLimit"}
	}
	if err := w.SetFaults([]core.Fault{full("pvc-1", 1), full("pvc-2", 0)}); err != nil {
		t.Fatal(err)
	}
	v := w.volume("pvc-1")
	if got := accountOf(v.GetVolumeId()); got == "aafull" {
		t.Errorf("account %s", got)
	}
	for _, a := range w.accounts() {
		if _, tagged := a.Tags["skip-matching"]; tagged != (a.ID.Name() == "aafull") {
			t.Errorf("tags of %s: %v", a.ID.Name(), a.Tags)
		}
	}
	_, err := w.CreateVolume(t.Context(), request("pvc-2", "storageAccount", "aafull"))
	wantCode(t, "34 named", err, codes.ResourceExhausted)
	if w.volume("pvc-3"); len(w.accounts()) != 2 {
		t.Errorf("%d accounts", len(w.accounts()))
	}
}

// TestFullAccountIsTriedAgain checks that a full account is chosen again after some time: its deleted shares count for a while only.
// The tag of a user has no time and stays.
func TestFullAccountIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		w.account("aafull", "Standard_LRS", "StorageV2", nil, nil)
		w.account("aaskipped", "Standard_LRS", "StorageV2", nil, map[string]any{"skip-matching": ""})
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: storage.Shares, Name: "pvc-1", Times: 1, Fault: core.FaultError,
			Status: 409, Code: "TotalSharesProvisionedCapacityExceedsAccountLimit"}}); err != nil {
			t.Fatal(err)
		}
		for i, later := range []time.Duration{0, share.FullFor - time.Minute, 2 * time.Minute} {
			<-time.After(later)
			name := fmt.Sprintf("pvc-%d", i+1)
			if got := accountOf(w.volume(name).GetVolumeId()); (got == "aafull") != (i == 2) || got == "aaskipped" {
				t.Errorf("%s: account %s", name, got)
			}
		}
	})
}

// TestAccountLosesItsKeys checks that if a policy switches off the keys of the accounts that the driver makes, it does not make one
// after the other.
func TestAccountLosesItsKeys(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	id := w.volume("pvc-1").GetVolumeId()
	account := testkit.Group.Resource(storage.Accounts, accountOf(id))
	if _, err := w.Client.Patch(t.Context(), azure.Write{ID: account, Body: []byte(`{"properties":{"allowSharedKeyAccess":false}}`)}); err != nil {
		t.Fatal(err)
	}
	_, err := w.again().CreateVolume(t.Context(), request("pvc-2"))
	wantCode(t, "keys are off", err, codes.FailedPrecondition)
	if n := len(w.accounts()); n != 1 {
		t.Errorf("%d accounts, want 1", n)
	}
}

// TestFullV2Account checks row 35 and defect 36: an account with a v2 SKU has 50 shares at most.
func TestFullV2Account(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	accounts := map[string]int{}
	for i := range 52 {
		v := w.volume("pvc-"+strings.Repeat("x", i), "skuName", "PremiumV2_LRS")
		accounts[accountOf(v.GetVolumeId())]++
	}
	for name, n := range accounts {
		if n > 50 {
			t.Errorf("account %s has %d shares", name, n)
		}
	}
	if len(accounts) != 2 {
		t.Errorf("%v", accounts)
	}
}

// TestAllAccountsFull checks defect 13: a request tries a few full accounts and ends. The next one finds its volume free.
func TestAllAccountsFull(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: storage.Shares, Fault: core.FaultError, Status: 409,
		Code: "TotalSharesProvisionedCapacityExceedsAccountLimit"}}); err != nil {
		t.Fatal(err)
	}
	_, err := w.CreateVolume(t.Context(), request("pvc-1"))
	wantCode(t, "13", err, codes.ResourceExhausted)
	if n := w.calls()["PUT shares"]; n != 5 {
		t.Errorf("%d accounts were tried, want 5", n)
	}
	if err := w.SetFaults(nil); err != nil {
		t.Fatal(err)
	}
	if v := w.volume("pvc-1"); !w.exists(v.GetVolumeId()) {
		t.Error("the volume has no share")
	}
}

// TestAccountsOfVolumes checks defect 12: createAccount gives each volume an account, and selectRandomMatchingAccount uses all that
// fit, also in one minute.
func TestAccountsOfVolumes(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	own := map[string]bool{}
	for _, name := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		own[accountOf(w.volume(name, "createAccount", "true").GetVolumeId())] = true
	}
	if len(own) != 3 {
		t.Errorf("createAccount: accounts %v, want 3", own)
	}
	w = newDriverCluster(t, core.Options{})
	for _, name := range []string{"aaone", "bbtwo", "ccthree"} {
		w.account(name, "Standard_LRS", "StorageV2", nil, nil)
	}
	used := map[string]int{}
	for i := range 30 {
		used[accountOf(w.volume(fmt.Sprintf("pvc-%d", i), "selectRandomMatchingAccount", "true").GetVolumeId())]++
	}
	if len(used) != 3 || len(w.accounts()) != 3 {
		t.Errorf("selectRandomMatchingAccount: volumes by account %v, want 3 accounts", used)
	}
}

// TestNetworkOfAnotherSubscription checks defect 29: endpoint, zone and link are in the subscription of the network, and a link that
// exists is used.
func TestNetworkOfAnotherSubscription(t *testing.T) {
	const second = "00000000-0000-0000-0000-0000000000a2"
	w := newDriverCluster(t, core.Options{Subscriptions: []core.Subscription{{ID: second, Tenant: core.DefaultTenant}}})
	group := azure.GroupID(second, "net")
	hub := group.Resource("Microsoft.Network/virtualNetworks", "hub")
	w.Put(group, map[string]any{"location": testkit.Location})
	w.Put(hub, map[string]any{"location": testkit.Location, "properties": map[string]any{
		"addressSpace": map[string]any{"addressPrefixes": []string{"10.1.0.0/16"}},
		"subnets":      []map[string]any{{"name": "nodes", "properties": map[string]any{"addressPrefix": "10.1.0.0/24"}}},
	}})
	zone := group.Resource(network.PrivateZones, "privatelink.file.core.windows.net")
	w.Put(zone, map[string]any{"location": "global"})
	w.Put(zone.Child("virtualNetworkLinks", "theirs"), map[string]any{"location": "global", "properties": map[string]any{
		"virtualNetwork": map[string]any{"id": hub}, "registrationEnabled": false}})
	w.config.Cluster.NetworkSubscription, w.config.Cluster.VNetGroup, w.config.Cluster.VNet = second, "net", "hub"
	answer, err := w.again().CreateVolume(t.Context(), request("pvc-1", "networkEndpointType", "privateEndpoint", "vnetLinkName", "theirs"))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := group.Resource(network.PrivateEndpoints, accountOf(answer.GetVolume().GetVolumeId())+"-pvtendpoint")
	if e := testkit.Must[network.PrivateEndpoint](w.Azure, endpoint).Properties; !e.Subnet.ID.Equal(hub.Child("subnets", "nodes")) {
		t.Errorf("the endpoint is in %s", e.Subnet.ID)
	}
	names := testkit.Must[network.PrivateZoneGroup](w.Azure, endpoint.Child("privateDnsZoneGroups", accountOf(answer.GetVolume().GetVolumeId())+"-dnszonegroup"))
	if zones := names.Properties.Zones; len(zones) != 1 || !zones[0].Properties.Zone.Equal(zone) {
		t.Errorf("%+v, want the zone %s", zones, zone)
	}
	if n := len(testkit.List[network.PrivateZone](w.Azure, testkit.Group, network.PrivateZones)); n != 0 {
		t.Errorf("%d zones in the cluster's subscription", n)
	}
	if _, err := w.again().CreateVolume(t.Context(), request("pvc-nfs", "protocol", "nfs")); err != nil {
		t.Error(err)
	}
	subnet := testkit.Must[network.Subnet](w.Azure, hub.Child("subnets", "nodes"))
	if len(subnet.Properties.ServiceEndpoints) != 1 {
		t.Errorf("service endpoints %v", subnet.Properties.ServiceEndpoints)
	}
}

// TestPrivateEndpoint checks row 43: names as the other driver's, one endpoint for all volumes.
func TestPrivateEndpoint(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	class := []string{"networkEndpointType", "privateEndpoint"}
	v := w.volume("pvc-1", class...)
	account := accountOf(v.GetVolumeId())
	if got := v.GetVolumeContext()["server"]; got != account+".privatelink.file.core.windows.net" {
		t.Errorf("server %s", got)
	}
	endpoint := testkit.Group.Resource(network.PrivateEndpoints, account+"-pvtendpoint")
	e := testkit.Must[network.PrivateEndpoint](w.Azure, endpoint).Properties
	if len(e.Connections) != 1 || e.Connections[0].Name != account+"-pvtsvcconn" || e.Connections[0].Properties.Groups[0] != "file" {
		t.Errorf("%+v", e)
	}
	zone := testkit.Group.Resource(network.PrivateZones, "privatelink.file.core.windows.net")
	testkit.Must[network.PrivateZoneLink](w.Azure, zone.Child("virtualNetworkLinks", "vnet-vnetlink"))
	testkit.Must[network.PrivateZoneGroup](w.Azure, endpoint.Child("privateDnsZoneGroups", account+"-dnszonegroup"))
	w.Forget()
	second, err := w.again().CreateVolume(t.Context(), request("pvc-2", class...))
	if err != nil || accountOf(second.GetVolume().GetVolumeId()) != account {
		t.Errorf("%v, %v", second, err)
	}
	for call, n := range w.calls() {
		if strings.HasPrefix(call, "PUT") && call != "PUT shares" {
			t.Errorf("%d x %s for the second volume", n, call)
		}
	}
}

// TestNoZones checks defect 29: where others manage DNS, the driver makes the endpoint and neither zone, link nor zone group. A class
// with zones that shares the account gets them.
func TestNoZones(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	class := []string{"networkEndpointType", "privateEndpoint"}
	v := w.volume("pvc-1", append(class, "skipPrivateDNSZone", "true")...)
	account := accountOf(v.GetVolumeId())
	if got := v.GetVolumeContext()["server"]; got != account+".privatelink.file.core.windows.net" {
		t.Errorf("server %s", got)
	}
	testkit.Must[network.PrivateEndpoint](w.Azure, testkit.Group.Resource(network.PrivateEndpoints, account+"-pvtendpoint"))
	names := func() (n int) {
		for _, write := range w.Writes() {
			for _, of := range []string{account + "-dnszonegroup", "privatelink.file.core.windows.net", "vnet-vnetlink"} {
				if write == "PUT "+of {
					n++
				}
			}
		}
		return n
	}
	if n := names(); n > 0 {
		t.Errorf("%d writes of names: %v", n, w.Writes())
	}
	w.Forget()
	if got := accountOf(w.volume("pvc-2", class...).GetVolumeId()); got != account {
		t.Errorf("account %s, want %s", got, account)
	}
	if names() != 3 {
		t.Errorf("a class with zones: %v, want a zone, a link and a zone group", w.Writes())
	}
	for _, bad := range [][]string{{"skipPrivateDNSZone", "true"}, append(class, "skipPrivateDNSZone", "perhaps"),
		append(class, "skipPrivateDNSZone", "true", "privateDNSZoneResourceGroup", "rg"),
		append(class, "skipPrivateDNSZone", "true", "vnetLinkName", "l")} {
		_, err := w.CreateVolume(t.Context(), request("pvc-bad", bad...))
		wantCode(t, strings.Join(bad, " "), err, codes.InvalidArgument)
	}
}

// TestServiceEndpoint checks row 44 and the subnets of NFS volumes.
func TestServiceEndpoint(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("pvc-1", "protocol", "nfs")
	var rules int
	for _, a := range w.accounts() {
		if a.ID.Name() == accountOf(v.GetVolumeId()) {
			rules = len(a.Properties.NetworkRules.Subnets)
			if a.Properties.NetworkRules.DefaultAction != "Deny" || *a.Properties.HTTPSOnly || a.SKU.Name != "Premium_LRS" {
				t.Errorf("%+v", a)
			}
		}
	}
	subnet := testkit.Must[network.Subnet](w.Azure, testkit.Group.Resource("Microsoft.Network/virtualNetworks", "vnet").Child("subnets", "nodes"))
	if rules != 1 || len(subnet.Properties.ServiceEndpoints) != 1 {
		t.Errorf("%d rules, endpoints %v", rules, subnet.Properties.ServiceEndpoints)
	}
	if s := w.share(v.GetVolumeId()); s.Protocols != "NFS" || s.QuotaGiB != 100 {
		t.Errorf("%+v", s)
	}
	if calls := w.calls(); calls["POST listKeys"] > 0 {
		t.Errorf("defect 21: keys were read for NFS: %v", calls)
	}
}

// TestAllSubnetsOfTheNetwork checks that a class which names no subnet opens its account for every subnet of the virtual network that
// nodes can be in. A subnet that cannot be changed is left out, unless it is that of the cloud configuration.
func TestAllSubnetsOfTheNetwork(t *testing.T) {
	for what, c := range map[string]struct {
		refused string
		want    []string
		code    codes.Code
	}{
		"all":                   {"", []string{"nodes", "pool-b", "pool-c"}, codes.OK},
		"one cannot be changed": {"pool-b", []string{"nodes", "pool-c"}, codes.OK},
		"that of the nodes":     {"nodes", nil, codes.PermissionDenied},
	} {
		t.Run(what, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{})
			var subnets []map[string]any
			for i, name := range []string{"nodes", "pool-b", "pool-c", "GatewaySubnet"} {
				subnets = append(subnets, map[string]any{"name": name, "properties": map[string]any{"addressPrefix": fmt.Sprintf("10.9.%d.0/24", i)}})
			}
			w.Put(testkit.Group.Resource(network.VirtualNetworks, "wide"), map[string]any{"location": testkit.Location, "properties": map[string]any{
				"addressSpace": map[string]any{"addressPrefixes": []string{"10.9.0.0/16"}}, "subnets": subnets}})
			if c.refused != "" {
				if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: network.Subnets, Name: c.refused, Fault: core.FaultError,
					Status: 403, Code: "AuthorizationFailed"}}); err != nil {
					t.Fatal(err)
				}
			}
			made, err := w.CreateVolume(t.Context(), request("pvc-1", "protocol", "nfs", "vnetName", "wide"))
			wantCode(t, "create", err, c.code)
			if err != nil {
				return
			}
			var got []string
			account := testkit.Group.Resource(storage.Accounts, accountOf(made.GetVolume().GetVolumeId()))
			for _, rule := range testkit.Must[storage.Account](w.Azure, account).Properties.NetworkRules.Subnets {
				got = append(got, rule.ID.Name())
				if s := testkit.Must[network.Subnet](w.Azure, rule.ID).Properties; len(s.ServiceEndpoints) != 1 {
					t.Errorf("service endpoints of %s: %v", rule.ID.Name(), s.ServiceEndpoints)
				}
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("rules of %v, want %v", got, c.want)
			}
		})
	}
}

// TestSubnetsOfNodesChange checks defect 37. When the nodes get another subnet, the account that the driver made gets a rule
// for the subnet. It keeps the rules and settings of other programs. An account of a user is not changed.
func TestSubnetsOfNodesChange(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	subnets := testkit.Group.Resource("Microsoft.Network/virtualNetworks", "wide")
	w.Put(subnets, map[string]any{"location": testkit.Location, "properties": map[string]any{
		"addressSpace": map[string]any{"addressPrefixes": []string{"10.9.0.0/16"}}, "subnets": []map[string]any{
			{"name": "first", "properties": map[string]any{"addressPrefix": "10.9.0.0/24"}},
			{"name": "second", "properties": map[string]any{"addressPrefix": "10.9.1.0/24"}},
			{"name": "third", "properties": map[string]any{"addressPrefix": "10.9.2.0/24",
				"serviceEndpoints": []map[string]any{{"service": "Microsoft.Storage"}}}},
		}}})
	rule := map[string]any{"id": subnets.Child("subnets", "third"), "action": "Allow"}
	w.account("aatheirs", "Premium_LRS", "FileStorage", map[string]any{"supportsHttpsTrafficOnly": false,
		"networkAcls": map[string]any{"defaultAction": "Deny", "virtualNetworkRules": []map[string]any{rule}}}, nil)
	class := []string{"protocol", "nfs", "vnetName", "wide"}
	account := accountOf(w.volume("pvc-1", append(class, "subnetName", "first")...).GetVolumeId())
	id := testkit.Group.Resource(storage.Accounts, account)
	if _, err := w.Client.Patch(t.Context(), azure.Write{ID: id, Body: []byte(`{"properties":{"networkAcls":{"bypass":"Metrics",
		"ipRules":[{"value":"203.0.113.7"}]}}}`)}); err != nil {
		t.Fatal(err)
	}
	for name, subnet := range map[string]string{"pvc-2": "first, second", "pvc-3": "second", "pvc-4": "first"} {
		made, err := w.again().CreateVolume(t.Context(), request(name, append(class, "subnetName", subnet)...))
		if err != nil {
			t.Fatal(err)
		}
		if got := accountOf(made.GetVolume().GetVolumeId()); got != account {
			t.Errorf("%s: account %s, want %s", name, got, account)
		}
	}
	rules := testkit.Must[struct {
		Rules struct {
			DefaultAction, Bypass string
			VirtualNetworkRules   []struct{ ID azure.ID }
			IPRules               []struct{ Value string }
		} `json:"networkAcls"`
	}](w.Azure, id).Properties.Rules
	if len(rules.VirtualNetworkRules) != 2 || len(rules.IPRules) != 1 || rules.DefaultAction != "Deny" || rules.Bypass != "Metrics" {
		t.Errorf("rules %+v, want 2 of subnets, 1 of an address, and Deny", rules)
	}
	if s := testkit.Must[network.Subnet](w.Azure, subnets.Child("subnets", "second")).Properties; len(s.ServiceEndpoints) != 1 {
		t.Errorf("service endpoints of the second subnet: %v", s.ServiceEndpoints)
	}
	if n := w.calls()["PATCH storageAccounts"]; n != 2 {
		t.Errorf("%d changes of accounts, want 2: that of the user, and one of the driver", n)
	}
	if got := accountOf(w.volume("pvc-5", append(class, "subnetName", "third")...).GetVolumeId()); got != "aatheirs" {
		t.Errorf("account %s, want that of the user, which has a rule", got)
	}
}
