package storage

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
)

// sasVersion is the version of the signatures that Azure Resource Manager makes.
const sasVersion = "2015-04-05"

// accountSAS returns a shared access signature for an account.
func accountSAS(c *behaviour.Call) (any, error) {
	for _, field := range []string{"signedServices", "signedResourceTypes", "signedPermission", "signedExpiry"} {
		if behaviour.Text(c.Body, field) == "" {
			return nil, behaviour.Invalid("InvalidValuesForRequestParameters", "Values for request parameters are invalid: %s.", field)
		}
	}
	values := parameters(c, map[string]string{"ss": "signedServices", "srt": "signedResourceTypes", "sp": "signedPermission",
		"st": "signedStart", "se": "signedExpiry", "spr": "signedProtocol", "sip": "signedIp"})
	values.Set("sig", Sign(keyOf(c), AccountSASText(c.ID.Name(), values)))
	return behaviour.Object{"accountSasToken": values.Encode()}, nil
}

// BlobSAS returns the query of a shared access signature with which a blob can be read until a time.
func BlobSAS(key, account, container, blob string, until time.Time) string {
	v := url.Values{"sv": {sasVersion}, "sr": {"b"}, "sp": {"r"}, "se": {until.UTC().Format(time.RFC3339)}}
	v.Set("sig", Sign(key, BlobSASText("/blob/"+account+"/"+container+"/"+blob, v)))
	return v.Encode()
}

// serviceSAS returns a shared access signature for a resource of an account's service.
func serviceSAS(c *behaviour.Call) (any, error) {
	resource := behaviour.Text(c.Body, "canonicalizedResource")
	if resource == "" {
		return nil, behaviour.Invalid("InvalidValuesForRequestParameters",
			"Values for request parameters are invalid: canonicalizedResource.")
	}
	values := parameters(c, map[string]string{"sr": "signedResource", "sp": "signedPermission", "st": "signedStart", "se": "signedExpiry",
		"spr": "signedProtocol", "sip": "signedIp", "si": "signedIdentifier", "spk": "startPk", "srk": "startRk", "epk": "endPk",
		"erk": "endRk"})
	text := ServiceSASText
	switch service, name, _ := strings.Cut(strings.TrimPrefix(resource, "/"), "/"); service {
	case "queue":
		text = QueueSASText
	case "table":
		text = TableSASText
		values.Set("tn", name[strings.LastIndexByte(name, '/')+1:])
	}
	values.Set("sig", Sign(keyOf(c), text(resource, values)))
	return behaviour.Object{"serviceSasToken": values.Encode()}, nil
}

// parameters returns the parameters of a signature that a request gives, by their names in URLs.
func parameters(c *behaviour.Call, fields map[string]string) url.Values {
	values := url.Values{"sv": {sasVersion}}
	for name, field := range fields {
		if value := behaviour.Text(c.Body, field); value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// keyOf returns the key that a request selects for signing.
func keyOf(c *behaviour.Call) string {
	if behaviour.Text(c.Body, "keyToSign") == "key2" {
		return Keys(c.Old)[1]
	}
	return Keys(c.Old)[0]
}

// Sign returns the signature of a text by an access key, "" for a key that is not base64.
func Sign(key, text string) string {
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// AccountSASText returns the text that the signature of an account's shared access signature is for.
func AccountSASText(account string, v url.Values) string {
	text := []string{account, v.Get("sp"), v.Get("ss"), v.Get("srt"), v.Get("st"), v.Get("se"), v.Get("sip"), v.Get("spr"), v.Get("sv")}
	const withScope = "2020-12-06" // the first version with an encryption scope
	if v.Get("sv") >= withScope {
		text = append(text, v.Get("ses"))
	}
	return strings.Join(text, "\n") + "\n"
}

// ServiceSASText returns the text that the signature of a shared access signature is for a resource such as /file/ACCOUNT/SHARE.
func ServiceSASText(resource string, v url.Values) string {
	text := []string{v.Get("sp"), v.Get("st"), v.Get("se"), resource, v.Get("si"), v.Get("sip"), v.Get("spr"), v.Get("sv")}
	for _, header := range []string{"rscc", "rscd", "rsce", "rscl", "rsct"} {
		text = append(text, v.Get(header))
	}
	return strings.Join(text, "\n")
}

// BlobSASText returns the text that the signature of a shared access signature is for a resource such as /blob/ACCOUNT/CONTAINER/BLOB.
func BlobSASText(resource string, v url.Values) string {
	const withResource, withScope = "2018-11-09", "2020-12-06" // the first versions with the kind and snapshot, and the scope
	if v.Get("sv") < withResource {
		return ServiceSASText(resource, v)
	}
	text := []string{v.Get("sp"), v.Get("st"), v.Get("se"), resource, v.Get("si"), v.Get("sip"), v.Get("spr"), v.Get("sv"), v.Get("sr"),
		v.Get("snapshot")}
	if v.Get("sv") >= withScope {
		text = append(text, v.Get("ses"))
	}
	for _, header := range []string{"rscc", "rscd", "rsce", "rscl", "rsct"} {
		text = append(text, v.Get(header))
	}
	return strings.Join(text, "\n")
}

// QueueSASText returns the text that the signature of a shared access signature is for a resource such as /queue/ACCOUNT/QUEUE.
func QueueSASText(resource string, v url.Values) string {
	text := []string{v.Get("sp"), v.Get("st"), v.Get("se"), resource, v.Get("si"), v.Get("sip"), v.Get("spr"), v.Get("sv")}
	return strings.Join(text, "\n")
}

// TableSASText returns the text that the signature of a shared access signature is for a resource such as /table/ACCOUNT/TABLE, in small
// letters.
func TableSASText(resource string, v url.Values) string {
	text := []string{QueueSASText(resource, v)}
	for _, key := range []string{"spk", "srk", "epk", "erk"} {
		text = append(text, v.Get(key))
	}
	return strings.Join(text, "\n")
}

// abilities are what accounts can do, with the kinds that can.
var abilities = map[string][]string{
	"supportschangenotification": {"BlobStorage", "BlockBlobStorage", "StorageV2"},
	"supportsfileencryption":     {"FileStorage", "StorageV2", "Storage"},
	"supportshoeclsplus":         {"BlobStorage", "BlockBlobStorage", "StorageV2"},
}

func capabilities(kind string) []any {
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(abilities)) {
		all = append(all, behaviour.Object{"name": name, "value": strconv.FormatBool(slices.Contains(abilities[name], kind))})
	}
	return all
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
					"capabilities": capabilities(kind), "restrictions": []any{}})
			}
		}
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": value}}, nil
}
