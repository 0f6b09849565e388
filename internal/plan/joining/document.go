// Package joining decides whether a machine gets the certificate of a node. A machine proves what it is with the signed document of
// Azure's metadata service. Layer L1: pure.
package joining

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/smallstep/pkcs7"
)

// longestDocument is the number of bytes of a document that is read. Those of Azure have some three thousand.
const longestDocument = 32 << 10

// documentTime is the form of the times in a document.
const documentTime = "01/02/06 15:04:05 -0700"

// Document is what the metadata service says about the machine that asked for it.
type Document struct {
	Nonce          string `json:"nonce"`
	VMID           string `json:"vmId"`
	SubscriptionID string `json:"subscriptionId"`
	TimeStamp      struct {
		CreatedOn string `json:"createdOn"`
		ExpiresOn string `json:"expiresOn"`
	} `json:"timeStamp"`
}

// Signed is a document with its signature, which is not verified yet.
type Signed struct{ message *pkcs7.PKCS7 }

// ReadDocument parses the signature that the metadata service answers with.
func ReadDocument(text string) (Signed, error) {
	if len(text) > longestDocument {
		return Signed{}, fmt.Errorf("the signed document has %d bytes; allowed are %d", len(text), longestDocument)
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Signed{}, fmt.Errorf("the signed document is not base64: %w", err)
	}
	message, err := pkcs7.Parse(der)
	if err != nil {
		return Signed{}, fmt.Errorf("the signed document is not PKCS #7: %w", err)
	}
	if message.GetOnlySigner() == nil {
		return Signed{}, errors.New("the signed document needs one signature with its certificate")
	}
	return Signed{message}, nil
}

// Issuers are the addresses of the certificate that signed the signer's certificate. A document has only the signer's.
func (s Signed) Issuers() []string { return s.message.GetOnlySigner().IssuingCertificateURL }

// Trust is what a signature must lead to.
type Trust struct {
	// Roots are the authorities, Intermediates further certificates between them and the signer.
	Roots, Intermediates *x509.CertPool
	// Domain is the name of the signer. Azure's regions sign with names below it.
	Domain string
}

// Domain returns the name of the signer of documents in a cloud, "" if that has none.
func Domain(cloud string) string {
	return map[string]string{
		"azurepubliccloud": "metadata.azure.com", "azurecloud": "metadata.azure.com", "": "metadata.azure.com",
		"azureusgovernmentcloud": "metadata.azure.us", "azureusgovernment": "metadata.azure.us",
		"azurechinacloud": "metadata.azure.cn",
	}[strings.ToLower(cloud)]
}

// Verify returns the content of a document if a signer that is trusted signed it and it is valid now.
func (s Signed) Verify(t Trust, now time.Time) (Document, error) {
	var d Document
	signer := s.message.GetOnlySigner()
	isSigner := func(name string) bool {
		name = strings.ToLower(name)
		return name == t.Domain || strings.HasSuffix(name, "."+t.Domain)
	}
	if t.Roots == nil || t.Domain == "" {
		return d, errors.New("no signer of documents is trusted")
	}
	if !slices.ContainsFunc(signer.DNSNames, isSigner) {
		return d, fmt.Errorf("the signer's certificate is for %q; allowed is %s", signer.DNSNames, t.Domain)
	}
	if _, err := signer.Verify(x509.VerifyOptions{
		Roots: t.Roots, Intermediates: t.Intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}); err != nil {
		return d, fmt.Errorf("the signer's certificate: %w", err)
	}
	if err := s.message.Verify(); err != nil {
		return d, fmt.Errorf("the signature of the document: %w", err)
	}
	if err := json.Unmarshal(s.message.Content, &d); err != nil {
		return Document{}, fmt.Errorf("the content of the signed document: %w", err)
	}
	return d, d.checkTime(now)
}

// checkTime rejects a document that is not valid now. The machine that signs and this one may have clocks that differ a little. Documents
// of Azure were seen that end in the second in which they were asked for, and begin six hours before.
func (d Document) checkTime(now time.Time) error {
	const apart, longer = 5 * time.Minute, 6 * time.Hour
	created, err := time.Parse(documentTime, d.TimeStamp.CreatedOn)
	if err != nil {
		return fmt.Errorf("timeStamp.createdOn of the signed document: %w", err)
	}
	expires, err := time.Parse(documentTime, d.TimeStamp.ExpiresOn)
	switch {
	case err != nil:
		return fmt.Errorf("timeStamp.expiresOn of the signed document: %w", err)
	case now.After(expires.Add(longer)):
		return fmt.Errorf("the signed document ended at %s", d.TimeStamp.ExpiresOn)
	case created.After(now.Add(apart)):
		return fmt.Errorf("the signed document begins at %s", d.TimeStamp.CreatedOn)
	}
	return nil
}
