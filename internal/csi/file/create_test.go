package file_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestRefusedParameters checks rows 1 to 22 and 40: each mistake is named before any request to Azure.
func TestRefusedParameters(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	for _, c := range []struct {
		row        string
		parameters []string
		want       string
	}{
		{"1", []string{"foo", "bar"}, `parameter foo: "bar" is not allowed: the key is not known`},
		{"2", []string{"protocol", "NFS"}, `parameter protocol: "NFS" is not allowed: want smb, nfs`},
		{"3", []string{"protocol", "nfs", "skuName", "Standard_LRS"}, "needs a Premium SKU"},
		{"4", []string{"protocol", "nfs", "fsType", "ext4"}, "VHD"},
		{"5", []string{"fsType", "ntfs"}, "want cifs, smb, nfs"},
		{"5 ext4", []string{"fsType", "ext4"}, "VHD file are not supported"},
		{"6", []string{"shareAccessTier", "hot"}, "want Cool, Hot"},
		{"7 tier", []string{"accountAccessTier", "Archive"}, "accountAccessTier"},
		{"7 squash", []string{"rootSquashType", "x"}, "want AllSquash"},
		{"7 group", []string{"fsGroupChangePolicy", "x"}, "want None, Always, OnRootMismatch"},
		{"7 public", []string{"publicNetworkAccess", "disabled"}, "want Enabled, Disabled"},
		{"7 endpoint", []string{"networkEndpointType", "x"}, "want privateEndpoint, serviceEndpoint"},
		{"8", []string{"shareNamePrefix", "ABC"}, "at most 20"},
		{"8 long", []string{"shareNamePrefix", strings.Repeat("a", 21)}, "at most 20"},
		{"8 dash", []string{"shareNamePrefix", "-a"}, "at most 20"},
		{"9", []string{"privateDNSZoneResourceGroup", "g"}, "only with networkEndpointType"},
		{"10", []string{"networkEndpointType", "privateEndpoint", "subnetName", "a,b"}, "one subnet"},
		{"11", []string{"enableMultichannel", "true", "skuName", "Standard_LRS"}, "Premium SKU"},
		{"11 nfs", []string{"enableMultichannel", "true", "protocol", "nfs"}, "protocol smb"},
		{"12", []string{"allowSharedKeyAccess", "false"}, "storeAccountKey false"},
		{"13", []string{"matchTags", "true", "storageAccount", "acct"}, "only without storageAccount"},
		{"14", []string{"subscriptionID", "00000000-0000-0000-0000-0000000000a2"}, "resourceGroup is missing"},
		{"15", []string{"accountQuota", "50"}, "from 100 on"},
		{"16", []string{"mountPermissions", "999"}, "octal digits"},
		{"17 up", []string{"folderName", "../x"}, "without . and .."},
		{"17 empty", []string{"folderName", "a//b"}, "folders separated by /"},
		{"17 colon", []string{"folderName", "a:b"}, "folders separated by /"},
		{"17 dot", []string{"folderName", "x."}, "no dot"},
		{"18", []string{"tags", "a"}, "want KEY=VALUE"},
		{"19", []string{"useDataPlaneAPI", "maybe"}, "want true, oauth"},
		{"20", []string{"mountWithManagedIdentity", "true", "mountWithWorkloadIdentityToken", "true"}, "at most one"},
		{"20 secret", []string{"mountWithOAuthToken", "true"}, "secretName is missing"},
		{"20 nfs", []string{"mountWithOAuthToken", "true", "secretName", "s", "protocol", "nfs"}, "by SMB only"},
		{"21", []string{"provisionedIOPS", "-1"}, "from 0 on"},
		{"21 text", []string{"provisionedIOPS", "abc"}, "from 0 on"},
		{"40", []string{"shareName", "My_Share"}, "parameter shareName"},
		{"82", []string{"protocol", "nfs", "useDataPlaneAPI", "true"}, "cannot create NFS shares"},
		{"two names of a key", []string{"skuName", "Premium_LRS", "storageAccountType", "Standard_LRS"}, "is also set"},
		{"a mode", []string{"fileMode", "rw"}, "octal digits"},
		{"a user", []string{"uid", "postgres"}, "number of a user"},
		{"TLS", []string{"encryptInTransit", "true"}, "aznfs"},
		{"a bad account", []string{"storageAccount", "My-Account"}, "3 to 24"},
	} {
		_, err := w.CreateVolume(t.Context(), request("pvc-1", c.parameters...))
		wantCode(t, c.row, err, codes.InvalidArgument)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.row, err, c.want)
		}
	}
	block := request("pvc-1")
	block.VolumeCapabilities[0].AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	none := request("pvc-1")
	none.VolumeCapabilities = nil
	for what, r := range map[string]*csispec.CreateVolumeRequest{"22 block": block, "22 no capability": none, "22 no name": request("")} {
		_, err := w.CreateVolume(t.Context(), r)
		wantCode(t, what, err, codes.InvalidArgument)
	}
	limited := request("pvc-1", "skuName", "Premium_LRS")
	limited.CapacityRange.LimitBytes = 50 * gib
	_, err := w.CreateVolume(t.Context(), limited)
	wantCode(t, "29", err, codes.OutOfRange)
	if calls := w.calls(); len(calls) > 0 {
		t.Errorf("requests for bad parameters: %v", calls)
	}
}

// TestSizes checks rows 23 to 25.
func TestSizes(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	for i, c := range []struct {
		sku              string
		required, want   int64 // GiB
		iops, throughput int64
	}{
		{"Premium_LRS", 1, 100, 0, 0}, {"PremiumV2_LRS", 1, 32, 3032, 104}, {"Standard_LRS", 1, 1, 0, 0}, {"Standard_LRS", 0, 100, 0, 0},
		{"PremiumV2_LRS", 100, 100, 3100, 110}, {"StandardV2_LRS", 32, 32, 1007, 61},
	} {
		r := request(fmt.Sprintf("pvc-%d", i), "skuName", c.sku)
		r.CapacityRange.RequiredBytes = c.required * gib
		made, err := w.CreateVolume(t.Context(), r)
		if err != nil {
			t.Fatal(c, err)
		}
		if got := made.GetVolume().GetCapacityBytes(); got != c.want*gib {
			t.Errorf("%v: %d GiB", c, got/gib)
		}
		if s := w.share(made.GetVolume().GetVolumeId()); s.QuotaGiB != c.want || c.iops > 0 && (*s.IOPS != c.iops || *s.BandwidthMiBs != c.throughput) {
			t.Errorf("%v: %+v", c, s)
		}
	}
	r := request("pvc-mutable", "skuName", "PremiumV2_LRS", "provisionedIOPS", "4000")
	r.MutableParameters = map[string]string{"provisionedIOPS": "9999"}
	made, err := w.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if s := w.share(made.GetVolume().GetVolumeId()); *s.IOPS != 9999 {
		t.Errorf("25: %+v", s)
	}
}

// TestIdempotent checks rows 26 to 28 and 83.
func TestIdempotent(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	first := w.volume("pvc-1")
	for what, c := range map[string]csispec.ControllerServer{"26": w, "83 a new process": w.again()} {
		w.Forget()
		again, err := c.CreateVolume(t.Context(), request("pvc-1"))
		if err != nil || again.GetVolume().GetVolumeId() != first.GetVolumeId() {
			t.Errorf("%s: %v, %v", what, again, err)
		}
		if calls := w.calls(); calls["PUT shares"] > 0 || calls["PUT storageAccounts"] > 0 {
			t.Errorf("%s: %v", what, calls)
		}
		larger := request("pvc-1")
		larger.CapacityRange.RequiredBytes = 20 * gib
		_, err = c.CreateVolume(t.Context(), larger)
		wantCode(t, what+": 27", err, codes.AlreadyExists)
		smaller := request("pvc-1")
		smaller.CapacityRange.RequiredBytes = gib
		if got, err := c.CreateVolume(t.Context(), smaller); err != nil || got.GetVolume().GetCapacityBytes() != 10*gib {
			t.Errorf("%s: 28: %v, %v, want the real size", what, got, err)
		}
	}
}

// TestFiftyAtOnce checks row 31 and the aims of speed: one account, one list, one request for keys.
func TestFiftyAtOnce(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	const volumes = 50
	create := func(prefix string) {
		var group sync.WaitGroup
		for i := range volumes {
			group.Go(func() {
				if _, err := w.CreateVolume(t.Context(), request(fmt.Sprintf("%s-%d", prefix, i))); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	create("cold")
	calls := w.calls()
	if len(w.accounts()) != 1 || calls["GET storageAccounts"] > 2 || calls["POST listKeys"] != 1 || calls["PUT shares"] != volumes ||
		calls["PUT storageAccounts"] != 1 {
		t.Errorf("no account yet: %v", calls)
	}
	w.Controller = w.again()
	w.Forget()
	create("warm")
	calls = w.calls()
	if calls["GET storageAccounts"] != 1 || calls["POST listKeys"] != 1 || calls["PUT shares"] != volumes || calls["GET shares"] != 1 {
		t.Errorf("a known account: %v", calls)
	}
	if total := calls["GET storageAccounts"] + calls["POST listKeys"] + calls["PUT shares"] + calls["GET shares"]; total != len(w.Requests()) {
		t.Errorf("other requests: %v", calls)
	}
}

// TestVolumeID checks the ids, names and contexts of volumes.
func TestVolumeID(t *testing.T) {
	const second = "00000000-0000-0000-0000-0000000000a2"
	w := newDriverCluster(t, core.Options{Subscriptions: []core.Subscription{{ID: second, Tenant: core.DefaultTenant}}})
	w.Put(azure.GroupID(second, "far"), map[string]any{"location": testkit.Location})
	for _, c := range []struct {
		row, name  string
		parameters []string
		want       string // id after the account
		context    map[string]string
	}{
		{"usual", "pvc-1", []string{"csi.storage.k8s.io/pvc/namespace", "apps"}, "#pvc-1###apps", map[string]string{"secretnamespace": "apps"}},
		{"41", "pvc-2", []string{"shareName", "${pvc.metadata.name}-x", "csi.storage.k8s.io/pvc/name", "p1"}, "#p1-x##pvc-2#default", nil},
		{"42", "pvc-3", []string{"folderName", "/${pvc.metadata.name}/a/", "csi.storage.k8s.io/pvc/name", "p1"}, "#pvc-3###default",
			map[string]string{"folderName": "p1/a"}},
		{"8", "pvc-4", []string{"shareNamePrefix", strings.Repeat("a", 20)}, "#" + strings.Repeat("a", 20) + "-pvc-4###default", nil},
		{"14", "pvc-5", []string{"subscriptionID", second, "resourceGroup", "far"}, "#pvc-5###default#" + second, nil},
		{"nfs", "pvc-6", []string{"protocol", "nfs"}, "#pvcn-6###default", map[string]string{"protocol": "nfs"}},
		{"a bad name", "PVC_7", nil, "#pvc-file-dynamic-", nil},
	} {
		v := w.volume(c.name, c.parameters...)
		if !strings.Contains(v.GetVolumeId(), c.want) {
			t.Errorf("%s: %s, want %s", c.row, v.GetVolumeId(), c.want)
		}
		for key, value := range c.context {
			if v.GetVolumeContext()[key] != value {
				t.Errorf("%s: context %v, want %s=%s", c.row, v.GetVolumeContext(), key, value)
			}
		}
		if again := w.volume(c.name, c.parameters...); again.GetVolumeId() != v.GetVolumeId() {
			t.Errorf("%s: %s the second time", c.row, again.GetVolumeId())
		}
	}
}
