package table

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"kaz/internal/localazure/plane/account"
)

// continuation begins the headers that say with what the next page begins.
const continuation = "x-ms-continuation-"

// token spells a key or a name with which a page begins. Its form is like that of Azure: base64, with characters that URLs do not change.
func token(key string) string {
	text := strings.ReplaceAll(base64.URLEncoding.EncodeToString([]byte(key)), "=", ".")
	return "1!" + strconv.Itoa(len(text)) + "!" + text
}

// parseToken reads the token in a parameter, "" without one.
func parseToken(name string, v url.Values) (string, error) {
	given := v.Get(name)
	if given == "" {
		return "", nil
	}
	const parts = 3
	if all := strings.SplitN(given, "!", parts); len(all) == parts {
		if key, err := base64.URLEncoding.DecodeString(strings.ReplaceAll(all[2], ".", "=")); err == nil {
			return string(key), nil
		}
	}
	return "", account.InvalidParameter(name, given, "the value of the header "+continuation+name+" of an answer")
}
