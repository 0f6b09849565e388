package limit

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"
)

func TestTagName(t *testing.T) {
	for _, test := range []struct {
		fullType, name string
		valid          bool
	}{
		{"", "cost center", true}, {"", "Microsoft", false}, {"", "azure-team", false}, {"", "WINDOWS", false}, {"", "my-azure", true},
		{"", "a/b", false}, {"", "", false}, {"", strings.Repeat("ä", 512), true}, {"", strings.Repeat("a", 513), false},
		{"Microsoft.Storage/storageAccounts", strings.Repeat("a", 129), false},
		{"microsoft.network/privatednszones", "cost center", false}, {"Microsoft.Network/privateDnsZones", "1st", false},
		{"Microsoft.Network/privateDnsZones", "team-a_b.c", true},
	} {
		if got := TagName(test.fullType, test.name); (got == "") != test.valid {
			t.Errorf("%s %q: %q, want valid %v", test.fullType, test.name, got, test.valid)
		}
	}
	if MostTags("Microsoft.Network/privateDnsZones") != 15 || MostTags("Microsoft.Network/virtualNetworks") != 50 {
		t.Error("a private DNS zone has at most 15 tags, others 50")
	}
}

func key(kind string, fields ...[]byte) string {
	var blob []byte
	for _, field := range append([][]byte{[]byte(kind)}, fields...) {
		blob = append(binary.BigEndian.AppendUint32(blob, uint32(len(field))), field...)
	}
	return kind + " " + base64.StdEncoding.EncodeToString(blob) + " me"
}

func modulus(bits int) []byte { return append([]byte{0, 0x80}, make([]byte, bits/8-1)...) }

func TestSSHKey(t *testing.T) {
	for text, want := range map[string]string{
		key("ssh-ed25519", make([]byte, 32)):                                               "",
		key("ssh-rsa", []byte{1, 0, 1}, modulus(2048)):                                     "",
		key("ssh-rsa", []byte{1, 0, 1}, modulus(1024)):                                     "at least 2048 bits",
		key("ssh-ed25519", make([]byte, 31)):                                               "cut off",
		key("ecdsa-sha2-nistp256", []byte("nistp256"), make([]byte, 65)):                   "no other type",
		strings.Replace(key("ssh-ed25519", make([]byte, 32)), "ssh-ed25519", "ssh-rsa", 1): "not of the type",
		"ssh-ed25519 AAAA...":                                                              "no base64", "ssh-ed25519": "a public key such as",
	} {
		if got := SSHKey(text); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, valid := range map[string]bool{"azureuser": true, "core": true, "ubuntu": true, "Admin": false, "root": false, "www-data": false} {
		if got := AdminUser(name); (got == "") != valid {
			t.Errorf("user %s: %q, want valid %v", name, got, valid)
		}
	}
	for name, valid := range map[string]bool{"prod": true, "my-login": true, "login-a": false, "xbox": false, "a-windows": false, "microsoft": false} {
		if got := PublicName(name); (got == "") != valid {
			t.Errorf("name %s: %q, want valid %v", name, got, valid)
		}
	}
	if TagValue(strings.Repeat("ä", 256)) != "" || TagValue(strings.Repeat("a", 257)) == "" || TagValue("a\nb") == "" {
		t.Error("a value of a tag has at most 256 characters in one line")
	}
}
