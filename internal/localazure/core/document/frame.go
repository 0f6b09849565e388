package document

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/localazure/behaviour"
)

// CheckFrame checks the frame that all resources share.
func CheckFrame(body behaviour.Object) error {
	for field, value := range body {
		ok := true
		switch v := value.(type) {
		case nil:
		case behaviour.Object:
			ok = field != "location" && (field != "tags" || allTexts(v))
		case string:
			ok = !slices.Contains([]string{"properties", "tags", "sku", "identity"}, field)
		default:
			ok = !slices.Contains([]string{"properties", "tags", "sku", "identity", "location", "name"}, field)
		}
		if !ok {
			return behaviour.Gateway(400, "InvalidRequestContent",
				"The request content was invalid and could not be deserialized: the value of '%s' is not of the type that it needs.", field)
		}
	}
	tags, _ := body["tags"].(behaviour.Object)
	return checkTags(tags)
}

// The limits of tags, as Azure documents them. The code for too many tags is not recorded. The error for a value is the
// error that users of kubernetes-sigs/cloud-provider-azure#510 and Azure/AKS#2160 got. The error for a name is the error in
// Azure's own PowerShell. Of a reserved name only the prefixes are documented, not the error.
const (
	mostTags        = 50
	longestTagName  = 512
	longestTagValue = 256
)

// reservedPrefixes begin the names of tags that Azure keeps for itself.
var reservedPrefixes = []string{"microsoft", "azure", "windows"}

func checkTags(tags behaviour.Object) error {
	if len(tags) > mostTags {
		return behaviour.Gateway(400, "InvalidRequestContent", "The resource has %d tags. A resource can have at most %d.",
			len(tags), mostTags)
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		if utf8.RuneCountInString(name) > longestTagName {
			return behaviour.Gateway(400, "InvalidTagName",
				"Tag key too large.  Following tag name '%s' exceeded the maximum length. Maximum allowed length for tag name - "+
					"'%d' characters.", name, longestTagName)
		}
		for _, prefix := range reservedPrefixes {
			if strings.HasPrefix(strings.ToLower(name), prefix) {
				return behaviour.Gateway(400, "InvalidTagName", "The tag name '%s' begins with '%s', which is reserved for Azure.", name,
					prefix)
			}
		}
		if value, _ := tags[name].(string); utf8.RuneCountInString(value) > longestTagValue {
			return behaviour.Gateway(400, "InvalidTagValueLength",
				"Tag value too large.  Following tag value '%s' exceeded the maximum length. Maximum allowed length for tag value - "+
					"'%d' characters.", value, longestTagValue)
		}
	}
	return nil
}

func allTexts(o behaviour.Object) bool {
	for _, v := range o {
		if _, ok := v.(string); !ok && v != nil {
			return false
		}
	}
	return true
}
