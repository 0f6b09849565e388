package local

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/plane/token"
)

// identities is an identities file: who can log in, how, and with which roles.
type identities struct {
	// Tenant is the tenant's id; Guests are others in which the applications are known.
	Tenant            string           `json:"tenant"`
	Guests            []string         `json:"guests"`
	Applications      []identityEntry  `json:"applications"`
	ManagedIdentities []identityEntry  `json:"managedIdentities"`
	Issuers           []identityIssuer `json:"issuers"`
}

// identityEntry is an application or a managed identity.
type identityEntry struct {
	Name                 string                `json:"name"`
	ClientID             string                `json:"clientId"`
	ObjectID             string                `json:"objectId"`
	Secrets              []string              `json:"secrets"`
	Certificates         []string              `json:"certificates"` // PEM, or files with it
	FederatedCredentials []federatedCredential `json:"federatedCredentials"`
	RoleAssignments      []roleAssignment      `json:"roleAssignments"`
	// System makes a managed identity the one that is meant when none is named.
	System bool `json:"system"`
	// ResourceID is that of a managed identity.
	ResourceID string `json:"resourceId"`

	certificates []*x509.Certificate
}

type federatedCredential struct {
	Issuer    string   `json:"issuer"`
	Subject   string   `json:"subject"`
	Audiences []string `json:"audiences"`
}

type roleAssignment struct {
	Role  string `json:"role"`  // name, GUID or id of a role definition
	Scope string `json:"scope"` // id; the subscription when empty
}

// identityIssuer says how to check the tokens of an issuer.
type identityIssuer struct {
	Issuer    string          `json:"issuer"`
	Keys      json.RawMessage `json:"keys"`     // a JSON web key set
	KeysFile  string          `json:"keysFile"` // one in a file, or PEM
	Discovery string          `json:"discovery"`
	CAFile    string          `json:"caFile"`
}

// readIdentities reads an identities file and reports everything that is wrong
// with it. Without a file there are only the identities that are made at the start.
func readIdentities(file string) (identities, []token.Issuer, error) {
	var ids identities
	if file == "" {
		return ids, nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return ids, nil, fmt.Errorf("--identities: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &ids); err != nil {
		return ids, nil, fmt.Errorf("--identities %s: %w", file, err)
	}
	r := identityReader{dir: filepath.Dir(file), seen: map[string]string{}}
	r.tenants(ids)
	for i := range ids.Applications {
		r.entry(fmt.Sprintf("applications[%d]", i), &ids.Applications[i], false)
	}
	for i := range ids.ManagedIdentities {
		r.entry(fmt.Sprintf("managedIdentities[%d]", i), &ids.ManagedIdentities[i], true)
	}
	issuers := r.issuers(ids.Issuers)
	for i, p := range r.problems {
		r.problems[i] = fmt.Errorf("--identities %s: %w", file, p)
	}
	return ids, issuers, errors.Join(r.problems...)
}

// identityReader collects what is wrong with an identities file.
type identityReader struct {
	dir      string            // relative files are in it
	seen     map[string]string // what an id was used for
	problems []error
}

func (r *identityReader) note(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *identityReader) guid(place, id string) {
	if !guidForm.MatchString(id) {
		r.note("%s: %q is not a GUID", place, id)
		return
	}
	key := strings.ToLower(id)
	if other := r.seen[key]; other != "" {
		r.note("%s: %s is used in %s already", place, id, other)
	}
	r.seen[key] = place
}

func (r *identityReader) tenants(ids identities) {
	if ids.Tenant != "" {
		r.guid("tenant", ids.Tenant)
	}
	for i, g := range ids.Guests {
		r.guid(fmt.Sprintf("guests[%d]", i), g)
	}
}

func (r *identityReader) entry(place string, e *identityEntry, managed bool) {
	r.guid(place+".clientId", e.ClientID)
	if e.ObjectID == "" {
		e.ObjectID = token.GUIDFor("object of " + e.ClientID)
	} else {
		r.guid(place+".objectId", e.ObjectID)
	}
	switch {
	case managed && len(e.Secrets)+len(e.Certificates) > 0:
		r.note("%s: a managed identity has no secrets and no certificates", place)
	case !managed && (e.System || e.ResourceID != ""):
		r.note("%s: system and resourceId are for managed identities", place)
	case slices.Contains(e.Secrets, ""):
		r.note("%s: a secret is empty", place)
	}
	if e.ResourceID != "" {
		if _, err := azure.ParseID(e.ResourceID); err != nil {
			r.note("%s.resourceId: %w", place, err)
		}
	}
	r.credentials(place, e)
	for i, a := range e.RoleAssignments {
		if a.Role == "" {
			r.note("%s.roleAssignments[%d]: role is required", place, i)
		}
		if _, err := azure.ParseID(a.Scope); err != nil && a.Scope != "" && a.Scope != "/" {
			r.note("%s.roleAssignments[%d].scope: %w", place, i, err)
		}
	}
}

func (r *identityReader) credentials(place string, e *identityEntry) {
	for i, c := range e.Certificates {
		r.certificate(fmt.Sprintf("%s.certificates[%d]", place, i), e, c)
	}
	for i, f := range e.FederatedCredentials {
		if f.Issuer == "" || f.Subject == "" {
			r.note("%s.federatedCredentials[%d]: issuer and subject are required", place, i)
		}
	}
}

func (r *identityReader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

func (r *identityReader) certificate(place string, e *identityEntry, text string) {
	data := []byte(text)
	if !strings.Contains(text, "-----BEGIN") {
		var err error
		if data, err = os.ReadFile(r.path(text)); err != nil {
			r.note("%s: %w", place, err)
			return
		}
	}
	found := false
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue // the key that is often kept with it
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			r.note("%s: %w", place, err)
			return
		}
		e.certificates = append(e.certificates, c)
		found = true
	}
	if !found {
		r.note("%s: there is no PEM certificate in it", place)
	}
}

func (r *identityReader) issuers(list []identityIssuer) []token.Issuer {
	var issuers []token.Issuer
	for i, entry := range list {
		place := fmt.Sprintf("issuers[%d]", i)
		if entry.Issuer == "" {
			r.note("%s: issuer is required", place)
		}
		if other := r.seen["issuer "+entry.Issuer]; other != "" {
			r.note("%s: issuer %s is in %s already", place, entry.Issuer, other)
		}
		r.seen["issuer "+entry.Issuer] = place
		issuer := token.Issuer{URL: entry.Issuer, Discovery: entry.Discovery}
		r.keys(place, entry, &issuer)
		issuers = append(issuers, issuer)
	}
	return issuers
}

func (r *identityReader) keys(place string, entry identityIssuer, issuer *token.Issuer) {
	data := []byte(entry.Keys)
	if entry.KeysFile != "" {
		place += ".keysFile"
		text, err := os.ReadFile(r.path(entry.KeysFile))
		if err != nil {
			r.note("%s: %w", place, err)
			return
		}
		data = text
	}
	if len(data) > 0 {
		keys, err := token.ParseKeys(data)
		if err != nil {
			r.note("%s: %w", place, err)
		}
		issuer.Keys = keys
	}
	if entry.CAFile == "" {
		return
	}
	text, err := os.ReadFile(r.path(entry.CAFile))
	if err != nil {
		r.note("%s.caFile: %w", place, err)
		return
	}
	issuer.Roots = x509.NewCertPool()
	if !issuer.Roots.AppendCertsFromPEM(text) {
		r.note("%s.caFile: there is no PEM certificate in %s", place, entry.CAFile)
	}
}

func (ids identities) tenant() string {
	if ids.Tenant == "" {
		return emulator.DefaultTenant
	}
	return ids.Tenant
}

// system is the managed identity of the file that is meant when none is named.
func (ids identities) system() (token.Application, bool) {
	for _, e := range ids.ManagedIdentities {
		if e.System {
			return e.application(true), true
		}
	}
	return token.Application{}, false
}

func (ids identities) applications() []token.Application {
	var all []token.Application
	for _, e := range ids.Applications {
		all = append(all, e.application(false))
	}
	for _, e := range ids.ManagedIdentities {
		all = append(all, e.application(true))
	}
	return all
}

func (e identityEntry) application(managed bool) token.Application {
	a := token.Application{
		Name: e.Name, ClientID: e.ClientID, ObjectID: e.ObjectID, Secrets: e.Secrets, Certificates: e.certificates,
		Managed: managed, ResourceID: azure.ID(e.ResourceID),
	}
	for _, f := range e.FederatedCredentials {
		if len(f.Audiences) == 0 {
			f.Audiences = []string{exchangeAudience}
		}
		a.Federated = append(a.Federated, token.Federated(f))
	}
	return a
}

// exchangeAudience is what federated tokens are for unless agreed otherwise.
const exchangeAudience = "api://AzureADTokenExchange"
