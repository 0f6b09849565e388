package account

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
)

// longestDelegation is how long a key of a user may be valid.
const longestDelegation = 7 * 24 * time.Hour

// delegated are the parameters of a signature by the key of a user that describe the key, in the order of its text.
var delegated = []string{"skoid", "sktid", "skt", "ske", "sks", "skv"}

// DelegatedText is what a key of a user is made of, besides a key of the account.
func DelegatedText(v url.Values) string {
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

// Delegation is a request for a key of a user.
type Delegation struct {
	// Caller is the user, nil for a request without a token. Tenant is the tenant of callers that name none.
	Caller *behaviour.Principal
	Tenant string
	// Key is a key of the account. Service is the letter of the service.
	Key, Service string
	Now          time.Time
}

// Reply gives the sender of a token a key for signatures. The service keeps no keys: it makes them of a key of the account, and they end
// with that one.
func (d Delegation) Reply(w http.ResponseWriter, r *http.Request) error {
	if d.Caller == nil {
		return Unsigned("A key of a user needs a token of Entra ID.")
	}
	const most = 4 << 10
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return TooLarge(err)
	}
	var info struct {
		XMLName xml.Name `xml:"KeyInfo"`
		Start   string
		Expiry  string
		Other   string `xml:"DelegatedUserTid"`
	}
	if err := xml.Unmarshal(text, &info); err != nil {
		return InvalidDocument(err)
	}
	if info.Other != "" && !strings.EqualFold(info.Other, d.Caller.Tenant) {
		return Unsigned("The local Azure knows no users of the tenant " + info.Other + ".")
	}
	start, err := time.Parse(time.RFC3339, cmp.Or(info.Start, d.Now.UTC().Format(time.RFC3339)))
	if err != nil {
		return invalidNode("Start", info.Start)
	}
	end, err := time.Parse(time.RFC3339, info.Expiry)
	if err != nil || !end.After(start) || !end.After(d.Now) || end.Sub(d.Now) > longestDelegation {
		return invalidNode("Expiry", info.Expiry)
	}
	key := userKey{User: d.Caller.ObjectID, Tenant: cmp.Or(d.Caller.Tenant, d.Tenant), Start: start.UTC().Format(time.RFC3339),
		Expiry: end.UTC().Format(time.RFC3339), Service: d.Service, Version: r.Header.Get("x-ms-version")}
	key.Value = storage.Sign(d.Key, DelegatedText(url.Values{"skoid": {key.User}, "sktid": {key.Tenant}, "skt": {key.Start},
		"ske": {key.Expiry}, "sks": {key.Service}, "skv": {key.Version}}))
	Reply(w, http.StatusOK, key)
	return nil
}

func invalidNode(name, value string) error {
	return refuse(http.StatusBadRequest, "InvalidXmlNodeValue",
		"The value for one of the XML nodes is not in the correct format: %s is %q, want a time such as %s, a start before an end of at "+
			"most seven days from now.", name, value, time.RFC3339)
}

// SigningUser returns the user of the key with which the signature in the parameters of a request is made, for a text. It needs the
// rights that the signature gives.
func (t Target) SigningUser(r *http.Request, v url.Values, text string, now time.Time) (*behaviour.Principal, error) {
	for _, key := range t.Keys {
		if key == "" || !sas.SignedBy([2]string{storage.Sign(key, DelegatedText(v))}, text, v.Get("sig")) {
			continue
		}
		if err := CheckUse(r, url.Values{"st": {v.Get("skt")}, "se": {v.Get("ske")}}, now); err != nil {
			return nil, err
		}
		return &behaviour.Principal{ObjectID: v.Get("skoid"), Tenant: v.Get("sktid")}, nil
	}
	return nil, Unsigned("Signature did not match.")
}
