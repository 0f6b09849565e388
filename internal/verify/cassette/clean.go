package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Redacted stands for a secret.
const Redacted = "REDACTED"

// Clean returns exchanges without secrets and without names of persons and organisations. Headers are kept by name, members of documents
// are removed by name, signatures of URLs and addresses of mail are replaced. Each GUID is replaced by the same other GUID, that of the
// subscription by zeros, so that the exchanges still belong together. GUIDs of role definitions are public and stay.
func Clean(exchanges []Exchange) []Exchange {
	c := cleaner{guids: map[string]string{}}
	cleaned := make([]Exchange, len(exchanges))
	for i, e := range exchanges {
		c.findSubscription(e.URL)
		e.URL = c.text(e.URL)
		e.Header, e.AnswerHeader = c.headers(e.Header, sentHeaders), c.headers(e.AnswerHeader, answeredHeaders)
		e.Body, e.Answer = c.body(e.Body), c.body(e.Answer)
		cleaned[i] = e
	}
	return cleaned
}

var sentHeaders = []string{"Accept", "Content-Type", "If-Match", "If-None-Match"}

var answeredHeaders = []string{
	"Azure-Asyncoperation", "Content-Type", "Date", "Etag", "Location", "Operation-Location", "Retry-After", "X-Ms-Request-Id",
	"X-Ms-Ratelimit-Remaining-Resource", "X-Ms-Ratelimit-Remaining-Subscription-Reads", "X-Ms-Ratelimit-Remaining-Subscription-Writes",
	"X-Ms-Ratelimit-Remaining-Subscription-Deletes", "X-Ms-Error-Code",
}

// secretMembers are the lower-case names of members with secrets, or with names of persons.
var secretMembers = []string{
	"accesskey", "accesssas", "accesstoken", "adminpassword", "connectionstring", "createdby", "customdata", "data",
	"displayname", "lastmodifiedby", "password", "primaryconnectionstring", "primarykey", "protectedsettings", "sastoken",
	"secondaryconnectionstring", "secondarykey", "secret", "sharedkey", "token", "userdata",
}

var (
	guid         = regexp.MustCompile(`(?i)(roleDefinitions/)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	signature    = regexp.MustCompile(`(?i)([?&]|\\u0026)(sig|se|sp|sv|sr|skoid|sktid|t|c|s|h)=[^&"\\\s]*`)
	mail         = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	subscription = regexp.MustCompile(`(?i)/subscriptions/([0-9a-f-]{36})`)
)

// cleaner remembers which GUID stands for which.
type cleaner struct{ guids map[string]string }

const zeros = "00000000-0000-0000-0000-000000000000"

// findSubscription makes the first subscription of the URLs the one with zeros.
func (c *cleaner) findSubscription(url string) {
	if m := subscription.FindStringSubmatch(url); m != nil && len(c.guids) == 0 {
		c.guids[strings.ToLower(m[1])] = zeros
	}
}

func (c *cleaner) text(s string) string {
	if !strings.ContainsAny(s, "-@=") { // no GUID, address of mail or parameter
		return s
	}
	s = guid.ReplaceAllStringFunc(s, func(g string) string {
		if strings.HasPrefix(strings.ToLower(g), "roledefinitions/") {
			return g
		}
		key := strings.ToLower(g)
		if c.guids[key] == "" {
			c.guids[key] = fmt.Sprintf("cccccccc-0000-0000-0000-%012x", len(c.guids))
		}
		return c.guids[key]
	})
	s = signature.ReplaceAllString(s, "${1}${2}="+Redacted)
	return mail.ReplaceAllString(s, Redacted)
}

func (c *cleaner) headers(h http.Header, keep []string) http.Header {
	kept := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !slices.Contains(keep, http.CanonicalHeaderKey(name)) {
			continue
		}
		for _, v := range h[name] {
			if name != "X-Ms-Request-Id" { // it finds the request in Azure's logs
				v = c.text(v)
			}
			kept.Add(name, v)
		}
	}
	return kept
}

// body cleans a JSON document, or a text of any other form.
func (c *cleaner) body(text []byte) []byte {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return []byte(c.text(string(text)))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(c.tree(tree)) != nil { // a decoded tree can be encoded
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}

func (c *cleaner) tree(x any) any {
	switch x := x.(type) {
	case string:
		return c.text(x)
	case []any:
		for i, v := range x {
			x[i] = c.tree(v)
		}
	case map[string]any:
		return c.object(x)
	}
	return x
}

// object cleans an object. Names of members may have ids, too, such as those of identities.
func (c *cleaner) object(x map[string]any) map[string]any {
	cleaned := map[string]any{}
	_, key := x["keyName"]                             // of a storage account: {keyName, value, permissions}
	for _, name := range slices.Sorted(maps.Keys(x)) { // the order decides which GUID becomes which
		_, text := x[name].(string)
		if secret := slices.Contains(secretMembers, strings.ToLower(name)) || key && name == "value"; secret && text {
			cleaned[name] = Redacted
			continue
		}
		cleaned[c.text(name)] = c.tree(x[name])
	}
	return cleaned
}
