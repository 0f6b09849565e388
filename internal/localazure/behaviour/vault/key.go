package vault

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// keys is the type of the keys that ARM creates in vaults or managed HSMs. A PUT of a key that exists changes nothing.
func keys(in string) behaviour.Type {
	return behaviour.Type{
		Name:    in + "/keys",
		Style:   secretStyle("Microsoft.KeyVault keys"),
		NoState: true,
		Own:     []string{"properties.keyUri", "properties.keyUriWithVersion"},
		Header:  serviceHeader,
		Fill:    fillKey,
		Views: map[string]func(c *behaviour.Call) (any, error){"versions": func(c *behaviour.Call) (any, error) {
			version := behaviour.Text(c.Old, "properties.keyUriWithVersion")
			version = version[strings.LastIndexByte(version, '/')+1:]
			view, _ := c.View(c.ID)
			view = behaviour.Clone(view)
			view["id"], view["name"] = string(c.ID.Child("versions", version)), version
			view["type"] = c.Type.Name + "/versions"
			return behaviour.Object{"value": []any{view}}, nil
		}},
	}
}

// keyMembers are the properties of a key that a request may have. All others are ignored, and so are empty ones.
var keyMembers = []string{"attributes", "curveName", "keyOps", "keySize", "kty", "release_policy", "rotationPolicy"}

func fillKey(c *behaviour.Call) error {
	if !secretName.MatchString(c.ID.Name()) {
		return behaviour.Invalid("InvalidKeyName", "The key name '%s' is invalid: 1 to 127 letters, digits and hyphens are allowed.",
			c.ID.Name())
	}
	if was := behaviour.Sub(c.Old, "properties"); was != nil {
		c.Doc["properties"], c.Doc["location"] = behaviour.Clone(was), c.Old["location"]
		return nil
	}
	given := behaviour.Sub(c.Doc, "properties")
	maps.DeleteFunc(given, func(name string, value any) bool { return value == "" || !slices.Contains(keyMembers, name) })
	kind := behaviour.Text(c.Doc, "properties.kty")
	switch kind {
	case "RSA", "RSA-HSM":
		behaviour.Default(c.Doc, "properties.keySize", 2048)
		behaviour.Default(c.Doc, "properties.keyOps", []any{"encrypt", "decrypt", "sign", "verify", "wrapKey", "unwrapKey"})
	case "EC", "EC-HSM":
		behaviour.Default(c.Doc, "properties.curveName", "P-256")
		behaviour.Default(c.Doc, "properties.keyOps", []any{"sign", "verify"})
	default:
		return behaviour.Invalid("BadRequest", "The key type '%s' is not valid: RSA, RSA-HSM, EC and EC-HSM are.", kind)
	}
	now := c.Now().Unix()
	behaviour.Default(c.Doc, "properties.attributes.enabled", true)
	behaviour.Default(c.Doc, "properties.attributes.exportable", false)
	behaviour.Set(c.Doc, "properties.attributes.created", now)
	behaviour.Set(c.Doc, "properties.attributes.updated", now)
	behaviour.Set(c.Doc, "properties.attributes.recoveryLevel", RecoveryLevel(c.Parent))
	c.Doc["location"] = behaviour.Text(c.Parent, "location")
	uri := cmp.Or(behaviour.Text(c.Parent, "properties.vaultUri"), behaviour.Text(c.Parent, "properties.hsmUri"))
	at := strings.TrimSuffix(uri, "/") + "/keys/" + c.ID.Name()
	behaviour.Set(c.Doc, "properties.keyUri", at)
	behaviour.Set(c.Doc, "properties.keyUriWithVersion", at+"/"+strings.ReplaceAll(c.GUID(), "-", ""))
	return nil
}
