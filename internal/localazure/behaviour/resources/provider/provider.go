// Package provider has what the resource manager says of resource providers: the catalogue of their types, and the operations on these.
// Layer L2.
package provider

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
)

// listed is a resource type as the catalogue of providers lists it.
type listed struct {
	namespace, name string // "Microsoft.Compute", "virtualMachineScaleSets/virtualMachines"
	where           string // "regions", "global" or "none"
	zones, edge     bool
	capabilities    string
	preferred       string // default api-version, "" for none
	profiles        [][2]string
	versions        []string
}

//go:embed types.tsv
var typesTSV string

// listedTypes is the embedded catalogue, in the order of its lines. What is wrong in
// it is wrong in the program, so it panics; the tests read it.
var listedTypes = sync.OnceValue(func() []listed { return readListed(typesTSV) })

//go:embed documents.tsv
var documentsTSV string

// documentTypes are types that the answer about one provider has, and the list of all providers lacks.
var documentTypes = sync.OnceValue(func() []listed { return readListed(documentsTSV) })

func readListed(table string) []listed {
	var all []listed
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		all = append(all, parseListed(strings.TrimSpace(line)))
	}
	return all
}

func parseListed(line string) listed {
	const columns = 8
	f := strings.Split(line, "\t")
	if len(f) != columns {
		panic("types.tsv: want 8 columns in " + line)
	}
	t := listed{where: f[1], zones: f[2] == "zones", edge: f[3] == "edge", capabilities: capabilities(f[4]),
		versions: strings.Split(f[7], ",")}
	t.namespace, t.name, _ = strings.Cut(f[0], "/")
	if f[5] != "-" {
		t.preferred = f[5]
	}
	if f[6] != "-" {
		for profile := range strings.SplitSeq(f[6], ",") {
			name, version, _ := strings.Cut(profile, "=")
			t.profiles = append(t.profiles, [2]string{name, version})
		}
	}
	return t
}

func capabilities(letters string) string {
	words := map[rune]string{
		'G': "CrossResourceGroupResourceMove", 'S': "CrossSubscriptionResourceMove", 'I': "SystemAssignedResourceIdentity",
		'T': "SupportsTags", 'L': "SupportsLocation", 'E': "SupportsExtension", '-': "None",
	}
	var all []string
	for _, l := range letters {
		all = append(all, words[l])
	}
	return strings.Join(all, ", ")
}

// document is the type in a provider's list.
func (t listed) document() behaviour.Object {
	doc := behaviour.Object{"resourceType": t.name, "locations": t.locations(), "apiVersions": texts(t.versions),
		"capabilities": t.capabilities}
	if t.preferred != "" {
		doc["defaultApiVersion"] = t.preferred
	}
	if len(t.profiles) > 0 {
		profiles := make([]any, len(t.profiles))
		for i, p := range t.profiles {
			profiles[i] = behaviour.Object{"profileVersion": p[0], "apiVersion": p[1]}
		}
		doc["apiProfiles"] = profiles
	}
	if t.zones {
		doc["zoneMappings"] = zoneMappings()
	}
	if t.edge {
		doc["locationMappings"] = []any{behaviour.Object{"location": "West US", "type": "EdgeZone",
			"extendedLocations": []any{"losangeles"}}}
	}
	return doc
}

func (t listed) locations() []any {
	names := []any{}
	switch t.where {
	case "global":
		names = append(names, "global")
	case "regions":
		for _, r := range catalog.Regions() {
			names = append(names, r.Display)
		}
	}
	return names
}

// zoneMappings are the regions with zones.
func zoneMappings() []any {
	mappings := []any{}
	for _, r := range catalog.Regions() {
		if len(r.Zones) > 0 {
			mappings = append(mappings, behaviour.Object{"location": r.Display, "zones": texts(r.Zones)})
		}
	}
	return mappings
}

func texts(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// applications are the identities under which providers act in a subscription. The
// roles that they have there differ, and are left out.
var applications = map[string]string{
	"Microsoft.Authorization":     "1dcb1bc7-c721-498e-b2fa-bcddcea44171",
	"Microsoft.Compute":           "60e6cd67-9c8c-4951-9b3c-23c25a2169af",
	"Microsoft.ContainerRegistry": "6a0ec4d3-30cb-4a83-91c0-ae56bc0e3d26",
	"Microsoft.KeyVault":          "cfa8b339-82a2-471a-a3c9-0fc0be7a4093",
	"Microsoft.Network":           "2cf9eb86-36b5-49dc-86ae-9a63135dfa8c",
	"Microsoft.Resources":         "3b990c8b-9607-4c2a-8b04-1d41985facca",
	"Microsoft.Storage":           "a6aa9161-5291-40bb-8c5c-923b567bee3b",
}

// free are the providers that need no registration.
var free = []string{"Microsoft.Authorization", "Microsoft.Resources"}

// Document is the document of a provider, nil for an unknown namespace. Scope is "" or
// a subscription.
func Document(scope azure.ID, namespace string) behaviour.Object {
	return providerOf(scope, namespace, slices.Concat(listedTypes(), documentTypes()))
}

// providerOf is the document of a provider, with the types that are its own.
func providerOf(scope azure.ID, namespace string, among []listed) behaviour.Object {
	types := []any{}
	for _, t := range among {
		if strings.EqualFold(t.namespace, namespace) {
			namespace = t.namespace
			types = append(types, t.document())
		}
	}
	if len(types) == 0 {
		return nil
	}
	doc := behaviour.Object{"namespace": namespace, "resourceTypes": types}
	if app, ok := applications[namespace]; ok {
		doc["authorizations"] = []any{behaviour.Object{"applicationId": app}}
	}
	if scope == "" {
		return doc
	}
	doc["id"] = string(scope) + "/providers/" + namespace
	doc["registrationState"], doc["registrationPolicy"] = "Registered", "RegistrationRequired"
	if slices.Contains(free, namespace) {
		doc["registrationPolicy"] = "RegistrationFree"
	}
	return doc
}

func namespaces() []string {
	var all []string
	for _, t := range listedTypes() {
		if !slices.Contains(all, t.namespace) {
			all = append(all, t.namespace)
		}
	}
	return all
}

// Scope is the subscription of a route, "" for a route that names none.
func Scope(c *behaviour.Call) (azure.ID, error) {
	s, ok := c.Param["subscription"]
	if !ok {
		return "", nil
	}
	for _, known := range c.Subscriptions() {
		if strings.EqualFold(known, s) {
			return azure.SubscriptionID(known), nil
		}
	}
	return "", behaviour.Gateway(404, "SubscriptionNotFound", "The subscription '%s' could not be found.", s)
}

func listProviders(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	items := []any{}
	for _, namespace := range namespaces() {
		items = append(items, providerOf(scope, namespace, listedTypes()))
	}
	return answer(behaviour.Object{"value": items})
}

func getProvider(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	doc := Document(scope, c.Param["namespace"])
	if doc == nil {
		return behaviour.Reply{},
			behaviour.UnknownNamespace(c.Param["namespace"])
	}
	return answer(doc)
}

// listResourceTypes lists the types of a provider.
func listResourceTypes(c *behaviour.Call) (behaviour.Reply, error) {
	one, err := getProvider(c)
	doc, _ := one.Body.(behaviour.Object)
	return behaviour.Reply{Status: one.Status, Body: behaviour.Object{"value": doc["resourceTypes"]}}, err
}

// noPermissions lists the permissions that a provider has in a subscription, which are left out.
func noPermissions(c *behaviour.Call) (behaviour.Reply, error) {
	if _, err := getProvider(c); err != nil {
		return behaviour.Reply{}, err
	}
	return answer(behaviour.Object{"value": []any{}})
}

// Newest is the newest api-version of a type that the catalogue lists, "" for a type that it does not list.
func Newest(fullType string) string {
	for _, t := range slices.Concat(listedTypes(), documentTypes()) {
		if strings.EqualFold(t.namespace+"/"+t.name, fullType) {
			return t.versions[0]
		}
	}
	return ""
}

// fullList is how many api-versions the catalogue lists of a type at least if it lists all.
const fullList = 10

// Versions returns the api-versions of a type, the newest first, nil if the catalogue does not list all: Azure takes deployments of
// 2019-07-01 and 2019-10-01, which are not in it.
func Versions(fullType string) []string {
	for _, t := range listedTypes() {
		if t.namespace != "Microsoft.Resources" && strings.EqualFold(t.namespace+"/"+t.name, fullType) && len(t.versions) >= fullList {
			return t.versions
		}
	}
	return nil
}

func answer(body any) (behaviour.Reply, error) { return behaviour.Reply{Status: 200, Body: body}, nil }

// Routes are the requests about providers.
func Routes() []behaviour.Route {
	const (
		here = "/subscriptions/{subscription}"
		read = "Microsoft.Resources/subscriptions/providers/read"
	)
	return []behaviour.Route{
		{Method: "GET", Pattern: "/providers", Do: listProviders},
		{Method: "GET", Pattern: "/providers/{namespace}", Do: getProvider},
		{Method: "GET", Pattern: "/providers/{namespace}/operations", Do: listOperations},
		{Method: "GET", Pattern: "/providers/Microsoft.Authorization/providerOperations", Do: listProviderOperations},
		{Method: "GET", Pattern: "/providers/Microsoft.Authorization/providerOperations/{namespace}", Do: getProviderOperations},
		{Method: "GET", Pattern: here + "/providers", Do: listProviders, Permission: read},
		{Method: "GET", Pattern: here + "/providers/{namespace}", Do: getProvider, Permission: read},
		{Method: "GET", Pattern: here + "/providers/{namespace}/resourceTypes", Do: listResourceTypes, Permission: read},
		{Method: "GET", Pattern: here + "/providers/{namespace}/providerPermissions", Do: noPermissions, Permission: read},
		{Method: "POST", Pattern: here + "/providers/{namespace}/unregister", Do: getProvider,
			Permission: "Microsoft.Resources/subscriptions/providers/unregister/action"},
		{Method: "POST", Pattern: here + "/providers/{namespace}/register", Do: getProvider,
			Permission: "Microsoft.Resources/subscriptions/providers/register/action"},
	}
}
