package storage

import (
	"encoding/base64"
	"net/url"

	"kaz/internal/localazure/behaviour"
)

// keysField is the field of an account's document with the values of its keys.
const keysField = behaviour.Private + "keys"

// Keys returns the values of an account's two access keys in base64, as clients use them.
func Keys(account behaviour.Object) [2]string {
	return [2]string{behaviour.Text(account, keysField+".key1"), behaviour.Text(account, keysField+".key2")}
}

func newKey(c *behaviour.Call) string { return NewKey(c.World) }

// NewKey returns 64 random bytes as an access key.
func NewKey(w behaviour.World) string {
	const size, values = 64, 256
	key := make([]byte, size)
	for i := range key {
		key[i] = byte(w.Intn(values))
	}
	return base64.StdEncoding.EncodeToString(key)
}

func listKeys(c *behaviour.Call) (any, error) {
	values := Keys(c.Doc)
	keys := make([]any, len(values))
	for i, name := range []string{"key1", "key2"} {
		keys[i] = behaviour.Object{
			"creationTime": behaviour.Text(c.Doc, "properties.keyCreationTime."+name),
			"keyName":      name, "value": values[i], "permissions": "FULL",
		}
	}
	for _, name := range []string{"kerb1", "kerb2"} {
		if value := behaviour.Text(c.Doc, keysField+"."+name); value != "" && c.Expands("kerb") {
			keys = append(keys, behaviour.Object{"keyName": name, "value": value, "permissions": "FULL"})
		}
	}
	return behaviour.Object{"keys": keys}, nil
}

func regenerateKey(c *behaviour.Call) (any, error) {
	name := behaviour.Text(c.Body, "keyName")
	if name == "kerb1" || name == "kerb2" {
		c.Query = url.Values{"$expand": {"kerb"}} // the reply has these keys, too
		behaviour.Set(c.Doc, keysField+"."+name, newKey(c))
		return listKeys(c)
	}
	if name != "key1" && name != "key2" {
		return nil, behaviour.Invalid("InvalidKeyName",
			"The key name '%s' is not valid. The allowed values are key1, key2, kerb1 and kerb2.", name)
	}
	behaviour.Set(c.Doc, keysField+"."+name, newKey(c))
	behaviour.Set(c.Doc, "properties.keyCreationTime."+name, behaviour.Timestamp(c.Now()))
	return listKeys(c)
}

// SetKey gives an account its first access key.
func SetKey(account behaviour.Object, key string) { behaviour.Set(account, keysField+".key1", key) }
