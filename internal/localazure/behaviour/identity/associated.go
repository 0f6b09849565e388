package identity

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// associatedVersions are the only api-versions that list what has an identity.
var associatedVersions = []string{"2022-01-31-preview", "2021-09-30-preview"}

// listAssociated lists the resources that have the identity, by name.
func listAssociated(c *behaviour.Call) (any, error) {
	if version := c.Query.Get("api-version"); !slices.Contains(associatedVersions, version) {
		return nil, behaviour.UnknownVersion(typeName+"/listAssociatedResources", version, "", associatedVersions)
	}
	keep, err := associatedFilter(c.Query.Get("$filter"))
	if err != nil {
		return nil, err
	}
	found := []behaviour.Object{}
	for group := range behaviour.Everywhere(c, "Microsoft.Resources/resourceGroups") {
		for id, doc := range c.Heads(group) {
			if item := associated(id); hasIdentity(doc, c.ID) && keep(item) && c.Allowed(c.Caller.Principal, id.Type()+"/read", id) {
				found = append(found, item)
			}
		}
	}
	return associatedPage(c, found)
}

// associatedPage sorts resources by name, and returns those that $top and $skip ask for.
func associatedPage(c *behaviour.Call, found []behaviour.Object) (any, error) {
	order := cmp.Or(strings.ToLower(c.Query.Get("$orderby")), "name asc")
	slices.SortStableFunc(found, func(a, b behaviour.Object) int {
		return strings.Compare(behaviour.Text(a, "name"), behaviour.Text(b, "name"))
	})
	switch order {
	case "name asc", "name":
	case "name desc":
		slices.Reverse(found)
	default:
		return nil, behaviour.Invalid("BadRequest", "Invalid $orderby '%s': name asc and name desc are supported.", order)
	}
	top, err := number(c.Query, "$top", len(found))
	if err != nil {
		return nil, err
	}
	skip, err := number(c.Query, "$skip", 0)
	if err != nil {
		return nil, err
	}
	from := min(skip, len(found))
	return behaviour.Object{"totalCount": len(found), "value": found[from:min(from+top, len(found))]}, nil
}

// number reads a parameter that is a whole number of at least 0.
func number(query url.Values, name string, absent int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, behaviour.Invalid("BadRequest", "Invalid %s '%s': a whole number of at least 0 is allowed.", name, text)
	}
	return n, nil
}

// hasIdentity reports whether a resource has an identity.
func hasIdentity(doc behaviour.Object, identity azure.ID) bool {
	for id := range behaviour.Sub(doc, "identity.userAssignedIdentities") {
		if identity.Equal(azure.ID(id)) {
			return true
		}
	}
	return false
}

func associated(id azure.ID) behaviour.Object {
	return behaviour.Object{"id": string(id), "name": id.Name(), "type": strings.ToLower(id.Type()),
		"resourceGroup": strings.ToLower(id.Group()), "subscriptionId": id.Subscription(),
		"subscriptionDisplayName": behaviour.SubscriptionName}
}

var (
	containsText = regexp.MustCompile(`(?i)^contains\(\s*(\w+)\s*,\s*'([^']*)'\s*\)$`)
	equalsText   = regexp.MustCompile(`(?i)^(\w+)\s+eq\s+'([^']*)'$`)
)

// associatedFilter understands one comparison.
func associatedFilter(filter string) (func(behaviour.Object) bool, error) {
	if filter == "" {
		return func(behaviour.Object) bool { return true }, nil
	}
	if m := containsText.FindStringSubmatch(filter); m != nil {
		return func(o behaviour.Object) bool {
			return strings.Contains(strings.ToLower(behaviour.Text(o, m[1])), strings.ToLower(m[2]))
		}, nil
	}
	if m := equalsText.FindStringSubmatch(filter); m != nil {
		return func(o behaviour.Object) bool { return strings.EqualFold(behaviour.Text(o, m[1]), m[2]) }, nil
	}
	return nil, behaviour.Invalid("BadRequest",
		"Invalid $filter '%s': contains(FIELD, 'TEXT') and FIELD eq 'TEXT' of name, type, resourceGroup and subscriptionId are supported.",
		filter)
}
