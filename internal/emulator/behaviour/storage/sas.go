package storage

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// accountSAS returns a shared access signature for an account.
func accountSAS(c *behaviour.Call) (any, error) {
	for _, field := range []string{"signedServices", "signedResourceTypes", "signedPermission", "signedExpiry"} {
		if behaviour.Text(c.Body, field) == "" {
			return nil, behaviour.Invalid("InvalidValuesForRequestParameters", "Values for request parameters are invalid: %s.", field)
		}
	}
	return behaviour.Object{"accountSasToken": signature(c, map[string]string{"sv": "2015-04-05", "ss": "signedServices",
		"srt": "signedResourceTypes", "sp": "signedPermission", "st": "signedStart", "se": "signedExpiry", "spr": "signedProtocol",
		"sip": "signedIp"})}, nil
}

// serviceSAS returns a shared access signature for a resource of an account's service.
func serviceSAS(c *behaviour.Call) (any, error) {
	if behaviour.Text(c.Body, "canonicalizedResource") == "" {
		return nil, behaviour.Invalid("InvalidValuesForRequestParameters",
			"Values for request parameters are invalid: canonicalizedResource.")
	}
	return behaviour.Object{"serviceSasToken": signature(c, map[string]string{"sv": "2015-04-05", "sr": "signedResource",
		"sp": "signedPermission", "st": "signedStart", "se": "signedExpiry", "spr": "signedProtocol", "sip": "signedIp",
		"si": "signedIdentifier"})}, nil
}

// signature joins the parameters of a request, with a signature by the key that the request names.
func signature(c *behaviour.Call, parameters map[string]string) string {
	values := url.Values{}
	for name, field := range parameters {
		if value := behaviour.Text(c.Body, field); value != "" {
			values.Set(name, value)
		} else if name == "sv" {
			values.Set(name, field)
		}
	}
	key := Keys(c.Old)[0]
	if behaviour.Text(c.Body, "keyToSign") == "key2" {
		key = Keys(c.Old)[1]
	}
	text := []string{c.ID.Name()}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text = append(text, values.Get(name))
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(strings.Join(text, "\n")))
	values.Set("sig", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return values.Encode()
}

// listSKUs lists the SKUs of accounts in all regions.
func listSKUs(*behaviour.Call) (behaviour.Reply, error) {
	value := []any{}
	for _, region := range catalog.Regions() {
		for _, name := range slices.Sorted(maps.Keys(replications)) {
			tier, _, _ := strings.Cut(name, "_")
			for _, kind := range replications[name] {
				value = append(value, behaviour.Object{"resourceType": "storageAccounts", "name": name,
					"tier": strings.TrimSuffix(tier, "V2"), "kind": kind, "locations": []any{region.Name},
					"capabilities": []any{}, "restrictions": []any{}})
			}
		}
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": value}}, nil
}
