package blob

import (
	"cmp"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
)

// longestDelegation is how long a key of a user may be valid.
const longestDelegation = 7 * 24 * time.Hour

// delegated are the parameters of a signature by the key of a user that describe the key, in the order of its text.
var delegated = []string{"skoid", "sktid", "skt", "ske", "sks", "skv"}

// keyText is what a key of a user is made of, besides a key of the account.
func keyText(v url.Values) string {
	var text []string
	for _, name := range delegated {
		text = append(text, v.Get(name))
	}
	return strings.Join(text, "\n")
}

// userKey is the answer to a request for a key of a user.
type userKey struct {
	XMLName xml.Name `xml:"UserDelegationKey"`
	User    string   `xml:"SignedOid"`
	Tenant  string   `xml:"SignedTid"`
	Start   string   `xml:"SignedStart"`
	Expiry  string   `xml:"SignedExpiry"`
	Service string   `xml:"SignedService"`
	Version string   `xml:"SignedVersion"`
	Value   string   `xml:"Value"`
}

// delegate gives the sender of a token a key for signatures. The service keeps no keys: it makes them of a key of the account, and they
// end with that one.
func (c serviceCall) delegate() error {
	if c.caller == nil {
		return unsigned("A key of a user needs a token of Entra ID.")
	}
	const most = 4 << 10
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	var info struct {
		XMLName xml.Name `xml:"KeyInfo"`
		Start   string
		Expiry  string
		Other   string `xml:"DelegatedUserTid"`
	}
	if err := xml.Unmarshal(text, &info); err != nil {
		return invalidDocument(err)
	}
	if info.Other != "" && !strings.EqualFold(info.Other, c.caller.Tenant) {
		return unsigned("The local Azure knows no users of the tenant " + info.Other + ".")
	}
	start, err := time.Parse(time.RFC3339, cmp.Or(info.Start, c.now.UTC().Format(time.RFC3339)))
	if err != nil {
		return invalidNode("Start", info.Start)
	}
	end, err := time.Parse(time.RFC3339, info.Expiry)
	if err != nil || !end.After(start) || !end.After(c.now) || end.Sub(c.now) > longestDelegation {
		return invalidNode("Expiry", info.Expiry)
	}
	var doc behaviour.Object
	key := userKey{User: c.caller.ObjectID, Tenant: c.caller.Tenant, Start: start.UTC().Format(time.RFC3339),
		Expiry: end.UTC().Format(time.RFC3339), Service: "b", Version: c.r.Header.Get("x-ms-version")}
	c.service.Azure.Look(func(w behaviour.World) {
		_, doc = accountOf(w, account(c.r.Host))
		key.Tenant = cmp.Or(key.Tenant, w.Tenant())
	})
	key.Value = storage.Sign(storage.Keys(doc)[0], keyText(url.Values{"skoid": {key.User}, "sktid": {key.Tenant}, "skt": {key.Start},
		"ske": {key.Expiry}, "sks": {key.Service}, "skv": {key.Version}}))
	reply(c.w, http.StatusOK, key)
	return nil
}

func invalidNode(name, value string) error {
	return refuse(http.StatusBadRequest, "InvalidXmlNodeValue",
		"The value for one of the XML nodes is not in the correct format: %s is %q, want a time such as %s, a start before an end of at "+
			"most seven days from now.", name, value, time.RFC3339)
}

// isDelegated reports whether a request has a signature by the key of a user, and not by a key of the account.
func (c *call) isDelegated() bool {
	return c.query.Get("skoid") != "" && c.query.Get("ss") == "" && !c.byKey && !sharedkey.Signed(c.r)
}

// delegatedText is the text of a signature by the key of a user for a resource such as /blob/ACCOUNT/CONTAINER/BLOB.
func (c *call) delegatedText(resource string) string {
	// The first versions with the users that an administrator names, with the scope, and with the tenant of another user, and headers and
	// parameters of the request.
	const withUsers, withScope, withTenant, withRequest = "2020-02-10", "2020-12-06", "2025-07-05", "2026-04-06"
	v, version := c.query, c.query.Get("sv")
	text := []string{v.Get("sp"), v.Get("st"), v.Get("se"), resource, keyText(v)}
	for _, part := range []struct {
		since string
		names []string
	}{
		{withUsers, []string{"saoid", "suoid", "scid"}}, {withTenant, []string{"skdutid", "sduoid"}},
		{"", []string{"sip", "spr", "sv", "sr", "snapshot"}}, {withScope, []string{"ses"}},
	} {
		if version >= part.since {
			for _, name := range part.names {
				text = append(text, v.Get(name))
			}
		}
	}
	if version >= withRequest {
		headers, parameters := "", ""
		for _, name := range names(v.Get("srh")) {
			headers += name + ":" + c.r.Header.Get(name) + "\n"
		}
		for _, name := range names(v.Get("srq")) {
			parameters += "\n" + name + ":" + v.Get(name)
		}
		text = append(text, headers, parameters)
	}
	for _, header := range []string{"rscc", "rscd", "rsce", "rscl", "rsct"} {
		text = append(text, v.Get(header))
	}
	return strings.Join(text, "\n")
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// checkDelegated returns why a signature by the key of a user does not allow an operation: its user needs the right, too.
func (c *call) checkDelegated(w behaviour.World, o operation, t target, resource string) error {
	for _, key := range t.keys {
		if key == "" || !sas.SignedBy([2]string{storage.Sign(key, keyText(c.query))}, c.delegatedText(resource), c.query.Get("sig")) {
			continue
		}
		if code, message := sas.Check(c.r, url.Values{"st": {c.query.Get("skt")}, "se": {c.query.Get("ske")}}, c.now); code != "" {
			return refuse(http.StatusForbidden, code, "%s", message)
		}
		user := &behaviour.Principal{ObjectID: c.query.Get("skoid"), Tenant: c.query.Get("sktid")}
		if o.action != "" && !w.AllowedData(user, "Microsoft.Storage/storageAccounts/blobServices/"+o.action, c.container) {
			return mismatch(permission, "permission")
		}
		return nil
	}
	return unsigned("Signature did not match.")
}
