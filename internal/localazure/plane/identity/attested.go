package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const (
	attestedPath = "/metadata/attested/document"
	// attestedLife is how long a document is valid.
	attestedLife = 6 * time.Hour
	// attestedTime is the form of the times in a document.
	attestedTime = "01/02/06 15:04:05 -0700"
	// longestNonce is the number of letters and digits in the API's description.
	longestNonce = 32
)

// sharedAttested answers requests for a signed document at the shared address. The document is an identity, so it needs the secret.
func (s *Service) sharedAttested(machine azure.ID) http.Handler {
	return needsMetadata(func(w http.ResponseWriter, r *http.Request) {
		if !s.knows(r.Header.Get(SecretHeader)) {
			fail(w, http.StatusForbidden, "forbidden", "At this address a signed document needs the header "+SecretHeader+
				" with the value of IDENTITY_HEADER.")
			return
		}
		s.attested(w, r, machine)
	})
}

// attested answers with a document that proves on which machine it was asked for.
func (s *Service) attested(w http.ResponseWriter, r *http.Request, machine azure.ID) {
	query := lowerKeys(r.URL.Query())
	nonce := query.Get("nonce")
	switch {
	case query.Get("api-version") == "":
		fail(w, http.StatusBadRequest, "Bad request", "api-version was not specified in the request.")
		return
	case len(nonce) > longestNonce:
		fail(w, http.StatusBadRequest, "Bad request", fmt.Sprintf("nonce has %d characters; allowed are %d", len(nonce), longestNonce))
		return
	}
	content := s.describeAttested(machine, nonce, time.Now().UTC())
	if content == nil || s.Attest == nil {
		fail(w, http.StatusNotFound, "not_found", fmt.Sprintf("There is no virtual machine %s.", machine))
		return
	}
	text, err := json.Marshal(content)
	if err == nil {
		text, err = s.Attest(text)
	}
	if err != nil {
		fail(w, http.StatusInternalServerError, "server_error", "The document could not be signed.")
		return
	}
	send(w, http.StatusOK, map[string]string{"encoding": "pkcs7", "signature": base64.StdEncoding.EncodeToString(text)})
}

// describeAttested returns the content of a machine's document, nil if there is no such machine.
func (s *Service) describeAttested(machine azure.ID, nonce string, now time.Time) (content object) {
	if nonce == "" {
		nonce = now.Format("20060102-150405")
	}
	s.World(func(w behaviour.World) {
		doc, ok := findMachine(w, machine)
		if !ok {
			return
		}
		image := behaviour.Sub(doc, "properties.storageProfile.imageReference")
		content = object{
			"nonce": nonce,
			"plan": object{"name": behaviour.Text(doc, "plan.name"), "product": behaviour.Text(doc, "plan.product"),
				"publisher": behaviour.Text(doc, "plan.publisher")},
			"timeStamp":      object{"createdOn": now.Format(attestedTime), "expiresOn": now.Add(attestedLife).Format(attestedTime)},
			"vmId":           behaviour.Text(doc, "properties.vmId"),
			"subscriptionId": machine.Subscription(),
			"sku":            behaviour.Text(image, "sku"),
			"licenseType":    behaviour.Text(doc, "properties.licenseType"),
		}
	})
	return content
}
