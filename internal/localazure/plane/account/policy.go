package account

import (
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/url"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/sas"
)

// policyList is the list of the stored access policies of a container, a queue or a table.
type policyList struct {
	XMLName  xml.Name         `xml:"SignedIdentifiers"`
	Policies []storage.Policy `xml:"SignedIdentifier"`
}

// ReplyPolicies answers with the stored access policies in a document. Their times are spelled in one way, which some clients insist on.
func ReplyPolicies(w http.ResponseWriter, doc behaviour.Object) {
	policies := storage.Policies(doc)
	for i := range policies {
		for _, text := range []*string{&policies[i].Start, &policies[i].Expiry} {
			if at, err := sas.ParseTime(*text); err == nil {
				*text = behaviour.Timestamp(at)
			}
		}
	}
	Reply(w, http.StatusOK, policyList{Policies: policies})
}

// GivenPolicies reads the stored access policies of a request.
func GivenPolicies(w http.ResponseWriter, r *http.Request) ([]storage.Policy, error) {
	const mostBytes, most, longest = 64 << 10, 5, 64
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		return nil, TooLarge(err)
	}
	if len(text) == 0 {
		return nil, nil
	}
	var list policyList
	if err := xml.Unmarshal(text, &list); err != nil {
		return nil, InvalidDocument(err)
	}
	if len(list.Policies) > most {
		return nil, refuse(http.StatusBadRequest, "InvalidXmlDocument",
			"XML specified is not valid: it has %d policies, at most %d are allowed.", len(list.Policies), most)
	}
	for _, p := range list.Policies {
		if len(p.ID) == 0 || len(p.ID) > longest {
			return nil, refuse(http.StatusBadRequest, "InvalidXmlDocument",
				"XML specified is not valid: the id %q has %d characters, 1 to %d are allowed.", p.ID, len(p.ID), longest)
		}
	}
	return list.Policies, nil
}

// WithPolicy returns the parameters of a signature with what the stored access policy that it names has. The document is that of the
// container, the queue or the table.
func WithPolicy(doc behaviour.Object, v url.Values) (url.Values, error) {
	id := v.Get("si")
	if id == "" {
		return v, nil
	}
	for _, p := range storage.Policies(doc) {
		if p.ID != id {
			continue
		}
		merged := maps.Clone(v)
		for name, value := range map[string]string{"st": p.Start, "se": p.Expiry, "sp": p.Permission} {
			if merged.Get(name) == "" && value != "" {
				merged.Set(name, value)
			}
		}
		return merged, nil
	}
	return nil, Unsigned("Access policy not found.")
}
