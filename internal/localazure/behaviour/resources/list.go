package resources

import (
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/provider"
)

// nested are the sub-resources that the resource manager lists beside the others.
var nested = map[string][]string{
	"microsoft.compute/virtualmachines": {"Microsoft.Compute/virtualMachines/extensions"},
	"microsoft.network/privatednszones": {"Microsoft.Network/privateDnsZones/virtualNetworkLinks"},
}

func listInSubscription(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := provider.Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	items := []behaviour.Object{}
	for group := range c.List(scope, groupType) {
		items = append(items, tracked(c, group)...)
	}
	return resourcePage(c, string(scope)+"/resources", items)
}

func listInGroup(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := provider.Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	group := azure.GroupID(scope.Subscription(), c.Param["group"])
	if _, there := c.Get(group); !there {
		return behaviour.Reply{}, behaviour.GroupNotFound(c.Param["group"])
	}
	return resourcePage(c, string(group)+"/resources", tracked(c, group))
}

// tracked are the resources of a group that have a location and that the caller may read.
func tracked(c *behaviour.Call, group azure.ID) []behaviour.Object {
	var items []behaviour.Object
	for id, doc := range c.Heads(group) {
		if behaviour.Text(doc, "location") == "" || strings.HasPrefix(id.Type(), "Microsoft.Resources/") ||
			!c.Allowed(c.Caller.Principal, id.Type()+"/read", id) {
			continue
		}
		items = append(items, summary(c, doc))
		for _, fullType := range nested[strings.ToLower(id.Type())] {
			for _, child := range c.List(id, fullType) {
				items = append(items, summary(c, child))
			}
		}
	}
	return items
}

// summary is what the resource manager itself knows of a resource.
func summary(c *behaviour.Call, doc behaviour.Object) behaviour.Object {
	item := behaviour.Object{}
	for _, field := range []string{"id", "name", "type", "location", "tags", "sku", "kind", "identity", "zones", "managedBy", "plan",
		"systemData"} {
		if value := doc[field]; value != nil {
			item[field] = value
		}
	}
	id := azure.ID(behaviour.Text(doc, "id"))
	if item["type"] == nil {
		item["type"] = id.Type()
	}
	if strings.Count(id.Type(), "/") > 1 {
		item["name"] = id.Parent().Name() + "/" + id.Name()
	}
	if state := behaviour.Text(doc, "properties.provisioningState"); state != "" && c.Expands("provisioningState") {
		item["provisioningState"] = state
	}
	return item
}

// resourcePage replies with the items that the request's filter keeps, a page of
// $top items at a time.
func resourcePage(c *behaviour.Call, path string, items []behaviour.Object) (behaviour.Reply, error) {
	keep, err := resourceFilter(c.Query.Get("$filter"))
	if err != nil {
		return behaviour.Reply{}, err
	}
	kept := []any{}
	for _, item := range items {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	const largest = 1000
	size := largest
	if top, err := strconv.Atoi(c.Query.Get("$top")); err == nil && top > 0 {
		size = min(top, largest)
	}
	from, err := strconv.Atoi(c.Query.Get("$skiptoken"))
	if err != nil || from < 0 {
		from = 0
	}
	from = min(from, len(kept))
	to := min(from+size, len(kept))
	body := behaviour.Object{"value": kept[from:to]}
	if to < len(kept) {
		query := url.Values{}
		maps.Copy(query, c.Query)
		query.Set("$skiptoken", strconv.Itoa(to))
		body["nextLink"] = c.Host + path + "?" + query.Encode()
	}
	return ok(body)
}

var (
	orWord     = regexp.MustCompile(`(?i)\s+or\s+`)
	andWord    = regexp.MustCompile(`(?i)\s+and\s+`)
	comparison = regexp.MustCompile(`(?i)^([\w/]+)\s+(eq|ne)\s+'((?:[^']|'')*)'$`)
)

// resourceFilter understands comparisons, joined by and and by or.
func resourceFilter(filter string) (func(behaviour.Object) bool, error) {
	var alternatives [][]func(behaviour.Object) bool
	for _, alternative := range orWord.Split(strings.TrimSpace(filter), -1) {
		tests, tag := []func(behaviour.Object) bool{}, [2]string{}
		for _, term := range andWord.Split(alternative, -1) {
			term = strings.Trim(term, "() ")
			if term == "" {
				continue
			}
			m := comparison.FindStringSubmatch(term)
			if m == nil {
				return nil, behaviour.Gateway(400, "InvalidFilterInQueryString",
					"Invalid $filter '%s' specified in the query string: comparisons of resourceType, name, location, "+
						"resourceGroup, tagName and tagValue by eq and ne are supported.", filter)
			}
			value := strings.ReplaceAll(m[3], "''", "'")
			switch strings.ToLower(m[1]) {
			case "tagname":
				tag[0] = value
			case "tagvalue":
				tag[1] = value
			default:
				tests = append(tests, compare(m[1], strings.EqualFold(m[2], "eq"), value))
			}
		}
		alternatives = append(alternatives, append(tests, tagged(tag[0], tag[1])))
	}
	return func(o behaviour.Object) bool {
		for _, tests := range alternatives {
			all := true
			for _, test := range tests {
				all = all && test(o)
			}
			if all {
				return true
			}
		}
		return false
	}, nil
}

// tagged tests for a tag with the name and the value; "" is any.
func tagged(name, value string) func(behaviour.Object) bool {
	return func(o behaviour.Object) bool {
		if name == "" && value == "" {
			return true
		}
		for n, v := range behaviour.Sub(o, "tags") {
			if (name == "" || strings.EqualFold(n, name)) && (value == "" || v == value) {
				return true
			}
		}
		return false
	}
}

// compare tests a field of a resource.
func compare(field string, equal bool, value string) func(behaviour.Object) bool {
	return func(o behaviour.Object) bool {
		found := ""
		switch strings.ToLower(field) {
		case "resourcegroup":
			found = azure.ID(behaviour.Text(o, "id")).Group()
		case "resourcetype":
			found = behaviour.Text(o, "type")
		default:
			found = behaviour.Text(o, strings.ReplaceAll(field, "/", "."))
		}
		return strings.EqualFold(found, value) == equal
	}
}
