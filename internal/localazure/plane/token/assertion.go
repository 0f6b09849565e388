package token

import (
	"bytes"
	"crypto/sha1" // clients name a certificate by its SHA-1 thumbprint
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"
)

// proveAssertion checks a token that the client signed with its certificate, or that a trusted issuer signed.
func (g *grant) proveAssertion(app Application, text string) error {
	j, err := parseJWT(text)
	if err != nil {
		return refuse(401, invalidClient, 50027, "JWT token is invalid or malformed.")
	}
	if strings.EqualFold(j.claims.text("iss"), app.ClientID) {
		err = g.proveCertificate(app, j)
	} else {
		err = g.proveFederated(app, j)
	}
	if err != nil {
		return err
	}
	return g.proveTime(j)
}

// proveTime checks the times of an assertion with a clock difference of five minutes, as Entra ID does.
func (g *grant) proveTime(j *jwt) error {
	const skew = 5 * time.Minute
	const form = "2006-01-02T15:04:05.0000000Z"
	now, from, until := time.Now(), j.claims.time("nbf"), j.claims.time("exp")
	if until.IsZero() || now.After(until.Add(skew)) || now.Before(from.Add(-skew)) {
		return refuse(401, invalidClient, 700024,
			"Client assertion is not within its valid time range. Current time: %s, assertion valid from %s, expiry time of "+
				"assertion %s. Review the documentation at https://learn.microsoft.com/entra/identity-platform/certificate-credentials .",
			now.UTC().Format(form), from.UTC().Format(form), until.UTC().Format(form))
	}
	return nil
}

func (g *grant) proveCertificate(app Application, j *jwt) error {
	if !strings.EqualFold(j.claims.text("sub"), app.ClientID) {
		return refuse(401, invalidClient, 700023,
			"Client assertion subject claim '%s' must be the application '%s' that it is issued by.", j.claims.text("sub"), app.ClientID)
	}
	if !slices.ContainsFunc(j.claims.audiences(), g.isHere) {
		return refuse(401, invalidClient, 700023,
			"Client assertion audience claim does not match Realm issuer. Review the documentation at "+
				"https://learn.microsoft.com/entra/identity-platform/certificate-credentials .")
	}
	for _, c := range app.Certificates {
		if !j.header.names(c) {
			continue
		}
		if err := j.verify(c.PublicKey); err != nil {
			return refuse(401, invalidClient, 700027,
				"Client assertion failed signature validation. [Reason - The key was found, but use of the key to verify the "+
					"signature failed.]")
		}
		if now := time.Now(); now.After(c.NotAfter) || now.Before(c.NotBefore) {
			return refuse(401, invalidClient, 700027,
				"Client assertion failed signature validation. [Reason - The key used is expired., Thumbprint of key used by "+
					"client: '%X', valid until %s]", thumbprint(c), c.NotAfter.UTC().Format(time.RFC3339))
		}
		return nil
	}
	return refuse(401, invalidClient, 700027,
		"The certificate with identifier used to sign the client assertion is not registered on application. [Reason - The key was "+
			"not found., Thumbprint of key used by client: '%s']", j.header.identifier())
}

// isHere reports whether an assertion's audience is a token endpoint or the issuer of the tenant. The host can be any,
// because clients choose the host by which they reach this service.
func (g *grant) isHere(audience string) bool {
	audience = strings.ToLower(strings.TrimSuffix(audience, "/"))
	tenant := strings.ToLower(g.tenant)
	for _, path := range []string{"/" + tenant + "/oauth2/v2.0/token", "/" + tenant + "/oauth2/token", "/" + tenant + "/v2.0", "/" +
		tenant, "/adfs/oauth2/token", "/adfs"} {
		if strings.HasPrefix(audience, "https://") && strings.HasSuffix(audience, path) {
			return true
		}
	}
	return false
}

// names reports whether the header names the certificate as the signer.
func (h header) names(c *x509.Certificate) bool {
	sum256 := sha256.Sum256(c.Raw)
	switch {
	case h.Thumbprint256 != "":
		return bytes.Equal(decode(h.Thumbprint256), sum256[:])
	case h.Thumbprint != "":
		return bytes.Equal(decode(h.Thumbprint), thumbprint(c))
	case len(h.Chain) > 0:
		return bytes.Equal(decode(h.Chain[0]), c.Raw)
	}
	return false
}

// decode decodes base64 in either alphabet, with or without padding, because clients differ.
func decode(text string) []byte {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return data
}

func thumbprint(c *x509.Certificate) []byte {
	sum := sha1.Sum(c.Raw)
	return sum[:]
}

func (h header) identifier() string {
	if h.Thumbprint256 != "" {
		return h.Thumbprint256
	}
	return h.Thumbprint
}

const federationHelp = "Check your federated identity credential Subject, Audience and Issuer against the presented assertion. " +
	"https://learn.microsoft.com/entra/workload-id/workload-identity-federation"

func (g *grant) proveFederated(app Application, j *jwt) error {
	issuer, subject, audiences := j.claims.text("iss"), j.claims.text("sub"), j.claims.audiences()
	trusted, known := false, false
	for _, f := range app.Federated {
		if f.Issuer != issuer {
			continue
		}
		trusted = true
		if f.Subject != subject {
			continue
		}
		known = true
		if overlap(f.Audiences, audiences) {
			return g.proveIssuer(issuer, j)
		}
	}
	switch {
	case !trusted:
		return refuse(401, invalidClient, 700211, "No matching federated identity record found for presented assertion issuer '%s'. %s",
			issuer, federationHelp)
	case !known:
		return refuse(401, invalidClient, 700213, "No matching federated identity record found for presented assertion subject '%s'. %s",
			subject, federationHelp)
	}
	return refuse(401, invalidClient, 700212, "No matching federated identity record found for presented assertion audience '%s'. %s",
		strings.Join(audiences, ","), federationHelp)
}

func (g *grant) proveIssuer(issuer string, j *jwt) error {
	err := g.service.issuers.verify(g.request.Context(), issuer, j)
	if err == nil {
		return nil
	}
	g.service.Log.Info("federated token not verified", "issuer", issuer, "error", err)
	if _, down := errors.AsType[*unreachable](err); down {
		return refuse(400, invalidRequest, 50166, "Request to External OIDC endpoint failed: %v.", err)
	}
	return refuse(401, invalidClient, 700027, "Client assertion failed signature validation. [Reason - %v]", err)
}
