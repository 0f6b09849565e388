// Package identities reads an identities file: the applications and managed identities of a local Azure, their
// credentials and roles, and the issuers of federated tokens. Layer L4.
package identities

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/host/userfile"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/token"
)

// File is the content of an identities file.
type File struct {
	// Tenant is the id of the tenant, Guests are the ids of further tenants that know the applications.
	Tenant            string   `json:"tenant"`
	Guests            []string `json:"guests"`
	Applications      []Entry  `json:"applications"`
	ManagedIdentities []Entry  `json:"managedIdentities"`
	Issuers           []Issuer `json:"issuers"`
	// Users are users of the directory. They cannot log in: role requests and schedules show their names.
	Users []behaviour.User `json:"users"`
}

// Entry is an application or a managed identity.
type Entry struct {
	Name                 string                `json:"name"`
	ClientID             string                `json:"clientId"`
	ObjectID             string                `json:"objectId"`
	Secrets              []string              `json:"secrets"`
	Certificates         []string              `json:"certificates"` // PEM, or files with it
	FederatedCredentials []federatedCredential `json:"federatedCredentials"`
	RoleAssignments      []RoleAssignment      `json:"roleAssignments"`
	// System makes a managed identity the default of requests that name none.
	System bool `json:"system"`
	// ResourceID is the resource of a managed identity.
	ResourceID string `json:"resourceId"`

	certificates []*x509.Certificate
}

type federatedCredential struct {
	Issuer    string   `json:"issuer"`
	Subject   string   `json:"subject"`
	Audiences []string `json:"audiences"`
}

// RoleAssignment is a role of an [Entry].
type RoleAssignment struct {
	Role  string `json:"role"`  // name, GUID or id of a role definition
	Scope string `json:"scope"` // resource id; the subscription if empty
}

// Issuer tells how to check the tokens of an issuer.
type Issuer struct {
	Issuer    string          `json:"issuer"`
	Keys      json.RawMessage `json:"keys"`     // a JSON web key set
	KeysFile  string          `json:"keysFile"` // a file with a JSON web key set or PEM
	Discovery string          `json:"discovery"`
	CAFile    string          `json:"caFile"`
}

// Read reads an identities file and reports all its problems. It returns a zero File for an empty name.
func Read(file string) (File, []token.Issuer, error) {
	var ids File
	if file == "" {
		return ids, nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return ids, nil, fmt.Errorf("--identities: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &ids); err != nil {
		return ids, nil, fmt.Errorf("--identities %s: %w", file, userfile.Explain(err))
	}
	r := reader{dir: filepath.Dir(file), seen: map[string]string{}}
	r.tenants(ids)
	for i := range ids.Applications {
		r.entry(fmt.Sprintf("applications[%d]", i), &ids.Applications[i], false)
	}
	for i := range ids.ManagedIdentities {
		r.entry(fmt.Sprintf("managedIdentities[%d]", i), &ids.ManagedIdentities[i], true)
	}
	for i, u := range ids.Users {
		field := fmt.Sprintf("users[%d]", i)
		r.guid(field+".objectId", u.ObjectID)
		if u.Name == "" {
			r.note("%s.name is missing: it is the name that is shown", field)
		}
	}
	issuers := r.issuers(ids.Issuers)
	for i, p := range r.problems {
		r.problems[i] = fmt.Errorf("--identities %s: %w", file, p)
	}
	return ids, issuers, errors.Join(r.problems...)
}

// reader collects the problems of an identities file.
type reader struct {
	dir      string            // base of relative file names
	seen     map[string]string // id to the field that uses it
	problems []error
}

// guid is the form of a GUID.
var guid = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsGUID reports whether a text is a GUID.
func IsGUID(text string) bool { return guid.MatchString(text) }

func (r *reader) note(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *reader) guid(field, id string) {
	if !IsGUID(id) {
		r.note("%s: %q is not a GUID", field, id)
		return
	}
	key := strings.ToLower(id)
	if other := r.seen[key]; other != "" {
		r.note("%s: %s is used in %s already", field, id, other)
	}
	r.seen[key] = field
}

func (r *reader) tenants(ids File) {
	if ids.Tenant != "" {
		r.guid("tenant", ids.Tenant)
	}
	for i, g := range ids.Guests {
		r.guid(fmt.Sprintf("guests[%d]", i), g)
	}
}

func (r *reader) entry(field string, e *Entry, managed bool) {
	r.guid(field+".clientId", e.ClientID)
	if e.ObjectID == "" {
		e.ObjectID = token.GUIDFor("object of " + e.ClientID)
	} else {
		r.guid(field+".objectId", e.ObjectID)
	}
	switch {
	case managed && len(e.Secrets)+len(e.Certificates) > 0:
		r.note("%s: a managed identity has no secrets and no certificates", field)
	case !managed && (e.System || e.ResourceID != ""):
		r.note("%s: system and resourceId are for managed identities", field)
	case slices.Contains(e.Secrets, ""):
		r.note("%s: a secret is empty", field)
	}
	if e.ResourceID != "" {
		if _, err := azure.ParseID(e.ResourceID); err != nil {
			r.note("%s.resourceId: %w", field, err)
		}
	}
	r.credentials(field, e)
	for i, a := range e.RoleAssignments {
		if a.Role == "" {
			r.note("%s.roleAssignments[%d]: role is required", field, i)
		}
		if _, err := azure.ParseID(a.Scope); err != nil && a.Scope != "" && a.Scope != "/" {
			r.note("%s.roleAssignments[%d].scope: %w", field, i, err)
		}
	}
}

func (r *reader) credentials(field string, e *Entry) {
	for i, c := range e.Certificates {
		r.certificate(fmt.Sprintf("%s.certificates[%d]", field, i), e, c)
	}
	for i, f := range e.FederatedCredentials {
		if f.Issuer == "" || f.Subject == "" {
			r.note("%s.federatedCredentials[%d]: issuer and subject are required", field, i)
		}
	}
}

func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

func (r *reader) certificate(field string, e *Entry, text string) {
	data := []byte(text)
	if !strings.Contains(text, "-----BEGIN") {
		var err error
		if data, err = os.ReadFile(r.path(text)); err != nil {
			r.note("%s: %w", field, err)
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
			continue // files often hold the private key too
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			r.note("%s: %w", field, err)
			return
		}
		e.certificates = append(e.certificates, c)
		found = true
	}
	if !found {
		r.note("%s: there is no PEM certificate in it", field)
	}
}

func (r *reader) issuers(list []Issuer) []token.Issuer {
	var issuers []token.Issuer
	for i, entry := range list {
		field := fmt.Sprintf("issuers[%d]", i)
		if entry.Issuer == "" {
			r.note("%s: issuer is required", field)
		}
		if other := r.seen["issuer "+entry.Issuer]; other != "" {
			r.note("%s: issuer %s is in %s already", field, entry.Issuer, other)
		}
		r.seen["issuer "+entry.Issuer] = field
		issuer := token.Issuer{URL: entry.Issuer, Discovery: entry.Discovery}
		r.keys(field, entry, &issuer)
		issuers = append(issuers, issuer)
	}
	return issuers
}

func (r *reader) keys(field string, entry Issuer, issuer *token.Issuer) {
	data := []byte(entry.Keys)
	if entry.KeysFile != "" {
		field += ".keysFile"
		text, err := os.ReadFile(r.path(entry.KeysFile))
		if err != nil {
			r.note("%s: %w", field, err)
			return
		}
		data = text
	}
	if len(data) > 0 {
		keys, err := token.ParseKeys(data)
		if err != nil {
			r.note("%s: %w", field, err)
		}
		issuer.Keys = keys
	}
	if entry.CAFile == "" {
		return
	}
	text, err := os.ReadFile(r.path(entry.CAFile))
	if err != nil {
		r.note("%s.caFile: %w", field, err)
		return
	}
	issuer.Roots = x509.NewCertPool()
	if !issuer.Roots.AppendCertsFromPEM(text) {
		r.note("%s.caFile: there is no PEM certificate in %s", field, entry.CAFile)
	}
}

// TenantID returns the id of the tenant, which has a default.
func (f File) TenantID() string { return cmp.Or(f.Tenant, core.DefaultTenant) }

// System returns the managed identity of the file for requests that name none, false if there is no such entry.
func (f File) System() (token.Application, bool) {
	for _, e := range f.ManagedIdentities {
		if e.System {
			return e.application(true), true
		}
	}
	return token.Application{}, false
}

// All returns every application and managed identity of the file.
func (f File) All() []token.Application {
	var all []token.Application
	for _, e := range f.Applications {
		all = append(all, e.application(false))
	}
	for _, e := range f.ManagedIdentities {
		all = append(all, e.application(true))
	}
	return all
}

// Label returns the name of the entry, or its client id.
func (e Entry) Label() string { return cmp.Or(e.Name, e.ClientID) }

func (e Entry) application(managed bool) token.Application {
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

// exchangeAudience is the default audience of federated tokens.
const exchangeAudience = "api://AzureADTokenExchange"
