package checks

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/model"
)

// members refuses a body with a member that the official model of the type does not have. A member that the resource shows
// is accepted: clients send back what they read. A member of a later API version is refused by the providers that do.
func (t Checks) members(r *message.Request, c *behaviour.Call) error {
	findings := r.Kind.Model.Findings(r.Method, r.Kind.Name, r.Version, r.Body)
	var shown behaviour.Object
	for _, f := range findings {
		if f.Problem == model.NewerMember && refusesNewer(r.Kind.Name) {
			return unknownMember(r.Kind.Name, f)
		}
		if f.Problem != model.UnknownMember || strings.HasPrefix(f.Member(), "$") { // the local Azure's own notes
			continue
		}
		if isTaken(r, f) {
			continue
		}
		if shown == nil && c.Old != nil {
			shown = document.View(*c, r.Kind, c.Old)
		}
		if !model.Has(shown, f.Path) {
			return unknownMember(r.Kind.Name, f)
		}
	}
	return nil
}

// values refuses a body without a required member, or with a value that an enumeration does not have. It comes after the
// checks of the type, which know what Azure says in most cases. What the type drops needs no members.
func (t Checks) values(r *message.Request, c *behaviour.Call) error {
	for _, f := range r.Kind.Model.Findings(r.Method, r.Kind.Name, r.Version, r.Body) {
		if f.Problem == model.Missing && !model.Has(c.Doc, f.Path) && model.Has(c.Doc, f.Path[:len(f.Path)-1]) {
			return unreadable(r.Kind.Name, fmt.Sprintf("Required property '%s' not found in JSON. Path '%s'.", f.Member(), f.Where()))
		}
		if f.Problem == model.UnknownValue && (f.Value != "" || !isTaken(r, f)) {
			return unreadable(r.Kind.Name, fmt.Sprintf("Error converting value \"%v\" to type '%s'. Path '%s'. Allowed values are: %s.",
				f.Value, f.Structure, f.Where(), strings.Join(f.Allowed, ", ")))
		}
	}
	return nil
}

// takenMember is a member of a structure in bodies of types with names that begin with of in lower case. An empty structure or member
// stands for all. Before is the first api-version that lacks the member, "" for none.
type takenMember struct{ of, structure, member, before string }

// taken are members that the models lack, and that Azure's own command line or Azure's quickstart templates send.
var taken = []takenMember{
	// A whole resource instead of its id: az network lb address-pool create --vnet.
	{"microsoft.network/", "SubResource", "", ""},
	// Keys of vaults are read leniently: a quickstart has the time of the expiry beside the attributes.
	{"microsoft.keyvault/vaults/keys", "", "", ""},
	// What a GET of these services shows.
	{"microsoft.storage/storageaccounts/queueservices", "QueueServiceProperties", "sku", ""},
	{"microsoft.storage/storageaccounts/tableservices", "TableServiceProperties", "sku", ""},
	// Members that old api-versions have, and that the models, which begin later, have not.
	{"microsoft.storage/storageaccounts", "AccountPropertiesCreateParameters", "accountType", "2016-01-01"},
	{"microsoft.containerregistry/registries", "NetworkRuleSet", "virtualNetworkRules", "2021-09-01"},
	{"microsoft.compute/availabilitysets", "AvailabilitySetProperties", "managed", "2017-03-30"},
}

// envelope are members of all resources that Azure ignores where a type has them not: its own operator for Kubernetes sends the name,
// and the location of a child, which has no meaning, is in templates.
var envelope = []string{"id", "name", "type", "location"}

// isTaken reports whether Azure ignores a member that the model lacks.
func isTaken(r *message.Request, f model.Finding) bool {
	of := strings.ToLower(r.Kind.Name)
	if len(f.Path) == 1 && slices.Contains(envelope, strings.ToLower(f.Path[0])) {
		return true
	}
	return slices.ContainsFunc(taken, func(t takenMember) bool {
		return strings.HasPrefix(of, t.of) && (t.structure == "" || t.structure == f.Structure) &&
			(t.member == "" || t.member == f.Member()) && (t.before == "" || r.Version < t.before)
	})
}

// newer says which providers refuse a member that the API version of the request does not have, by the beginning of the type in
// lower case. The first match counts. What the others do is not known: they accept it. The sources are in
// docs/reference/unproven.md.
var newer = []struct {
	of      string
	refused bool
}{
	{"microsoft.network/dnszones", false},
	{"microsoft.network/privatednszones", false},
	{"microsoft.network/", true},
	{"microsoft.compute/", true},
}

func refusesNewer(of string) bool {
	lower := strings.ToLower(of)
	for _, n := range newer {
		if strings.HasPrefix(lower, n.of) {
			return n.refused
		}
	}
	return false
}

func unknownMember(of string, f model.Finding) error {
	return unreadable(of, fmt.Sprintf("Could not find member '%s' on object of type '%s'. Path '%s'.", f.Member(), f.Structure, f.Where()))
}

// refusals are the errors of the providers for a body that they cannot read, by the beginning of the type in lower case. The
// first match counts. Their sources are in docs/reference/unproven.md.
var refusals = []struct {
	of   string
	make func(what string) *behaviour.Error
}{
	{"microsoft.network/dnszones", gatewayRefusal},
	{"microsoft.network/privatednszones", gatewayRefusal},
	{"microsoft.network/", func(what string) *behaviour.Error {
		return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request.").With("InvalidJson", "%s", what)
	}},
	{"microsoft.compute/", func(what string) *behaviour.Error { return behaviour.Invalid("BadRequest", "%s", what) }},
	{"microsoft.storage/storageaccounts/managementpolicies", func(what string) *behaviour.Error {
		return behaviour.Invalid("InvalidManagementPolicy",
			"Management Policy is not valid. Error details: %s For more information, see - https://aka.ms/managementpolicies", what)
	}},
	{"", gatewayRefusal},
}

func gatewayRefusal(what string) *behaviour.Error {
	return behaviour.Gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%s'", what)
}

func unreadable(of, what string) error {
	lower := strings.ToLower(of)
	for _, r := range refusals {
		if strings.HasPrefix(lower, r.of) {
			return r.make(what)
		}
	}
	return gatewayRefusal(what)
}
