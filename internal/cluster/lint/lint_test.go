package lint

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLimits checks that each limit of Azure is found, and that what is just allowed is not.
func TestLimits(t *testing.T) {
	parameters := func(n int) object {
		all := object{}
		for i := range n {
			all[fmt.Sprint("p", i)] = object{"type": "string"}
		}
		return object{"parameters": all}
	}
	resources := func(n int) object {
		all := []any{}
		for i := range n {
			all = append(all, object{"type": "Microsoft.Network/routeTables", "name": fmt.Sprint("r", i)})
		}
		return object{"resources": all}
	}
	machine := func(name, data string) object {
		return object{"resources": []any{object{"type": "Microsoft.Compute/virtualMachines", "name": name,
			"properties": object{"osProfile": object{"customData": data}}}}}
	}
	expression := func(n int) string { return "[concat('" + strings.Repeat("x", n-len("[concat('')]")) + "')]" }
	nested := func(name string, inner object) object {
		return object{"resources": []any{object{"type": "Microsoft.Resources/deployments", "name": name,
			"properties": object{"template": inner}}}}
	}
	tagged := func(fullType, prefix string, n int) object {
		tags := object{}
		for i := range n {
			tags[fmt.Sprint(prefix, i)] = "v"
		}
		return object{"resources": []any{object{"type": fullType, "name": "r", "tags": tags}}}
	}
	login := func(user, key string) object {
		return object{"resources": []any{object{"type": "Microsoft.Compute/virtualMachines", "name": "m",
			"properties": object{"osProfile": object{"adminUsername": user, "linuxConfiguration": object{"ssh": object{
				"publicKeys": []any{object{"keyData": key}}}}}}}}}
	}
	const vm = "t: Microsoft.Compute/virtualMachines "
	for _, test := range []struct {
		template object
		want     []string
	}{
		{parameters(256), nil},
		{parameters(257), []string{"t: has 257 parameters, want at most 256"}},
		{resources(800), nil},
		{resources(801), []string{"t: has 801 resources, want at most 800"}},
		{machine("m", strings.Repeat("A", 87380)), nil},
		{machine("m", strings.Repeat("A", 87381)), []string{vm + "m: .properties.osProfile.customData: has 87381 characters, want at " +
			"most 87380"}},
		{machine("m", expression(24576)), nil},
		{machine("m", expression(24577)), []string{vm + "m: .properties.osProfile.customData: has 24577 characters in an expression, " +
			"want at most 24576"}},
		{machine("m_1", ""), []string{vm + `m_1: the name "m_1" is not valid: want 1 to 64 letters, digits and '-'`}},
		{tagged("Microsoft.Network/privateDnsZones", "a", 15), nil},
		{tagged("Microsoft.Network/privateDnsZones", "a", 16), []string{"t: Microsoft.Network/privateDnsZones r: has 16 tags, want at most 15"}},
		{tagged("Microsoft.Network/routeTables", "azure", 1), []string{`t: Microsoft.Network/routeTables r: the tag "azure0" is not valid: ` +
			"want a name that does not begin with microsoft, azure or windows, which Azure reserves"}},
		{login("azureuser", "[parameters('key')]"), nil},
		{login("admin", "ecdsa-sha2-nistp256 AAAA"), []string{
			vm + `m: adminUsername: "admin": want a name that Azure takes for the user of a machine, such as azureuser`,
			vm + `m: ssh.publicKeys[0]: "ecdsa-sha2-nistp256 AAAA": want an Ed25519 key or an RSA key: Azure takes no other type for a machine`}},
		{nested("in", resources(801)), []string{"t: Microsoft.Resources/deployments in: has 801 resources, want at most 800"}},
		{nested(strings.Repeat("n", 65), object{}),
			[]string{"t: Microsoft.Resources/deployments " + strings.Repeat("n", 65) + ": has 65 characters in its name, want at most 64"}},
		{object{"outputs": object{"o": strings.Repeat("x", 4<<20)}}, []string{"t: has 4194324 bytes, want at most 4194304"}},
	} {
		if diff := cmp.Diff(test.want, Template("t", test.template)); diff != "" {
			t.Error(diff)
		}
	}
	if found := Template("t", machine("m", "[concat('a'(]")); len(found) != 1 || !strings.Contains(found[0],
		".properties.osProfile.customData") {
		t.Errorf("a broken expression: %v", found)
	}
}

// TestSecrets checks that a secret is found in every encoding that artefacts use.
func TestSecrets(t *testing.T) {
	secret := []byte("-----BEGIN PRIVATE KEY-----\nMHcCAQEEIGuessMeIfYouCan+/=\n-----END PRIVATE KEY-----\n")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(append([]byte("#cloud-config\nkey: |\n"), secret...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	for name, text := range map[string]string{
		"plain":             "x" + string(secret) + "y",
		"json":              strings.ReplaceAll(string(secret), "\n", `\n`),
		"base64":            encode(secret),
		"base64, shifted 1": encode(append([]byte("k"), secret...)),
		"base64, shifted 2": encode(append([]byte("ke"), secret...)),
		"hex":               hex.EncodeToString(secret),
		"gzip":              zipped.String(),
		"gzip in base64":    `{"customData": "` + encode(zipped.Bytes()) + `"}`,
		"data URL":          "data:,key%3A%20%7C%0A" + strings.ReplaceAll(url.QueryEscape(string(secret)), "+", "%20"),
		"Ignition":          encode([]byte(`{"source":"data:;base64,` + encode(zipped.Bytes()) + `"}`)),
		"twice":             encode([]byte("data: " + encode(secret))),
	} {
		if found := Secrets(map[string][]byte{"file": []byte(text)}, map[string][]byte{"ca": secret}); len(found) != 1 {
			t.Errorf("%s: the secret is not found", name)
		}
	}
	if found := Secrets(map[string][]byte{"file": []byte(encode([]byte("nothing to see here, at all")))},
		map[string][]byte{"ca": secret}); found != nil {
		t.Errorf("found %v", found)
	}
}
