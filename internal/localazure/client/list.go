package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kaz/internal/azure"
	"kaz/internal/key/spelling"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// pages reads all pages of a list.
func (c *Client) pages(ctx context.Context, path string) ([]map[string]any, error) {
	var all []map[string]any
	for link := path; link != ""; {
		var page struct {
			Value    []map[string]any `json:"value"`
			NextLink string           `json:"nextLink"`
		}
		if err := c.get(ctx, link, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Value...)
		link = page.NextLink
	}
	return all, nil
}

// List returns the resources of a type, or with an empty type all resources that are no child of another resource.
// A type is given in full or by its last segments: "loadBalancers", "virtualMachineScaleSets/virtualMachines".
func (c *Client) List(ctx context.Context, kind string) (Resources, error) {
	types, err := knownTypes()
	if err != nil {
		return nil, err
	}
	if kind != "" {
		full, err := findType(types, kind)
		if err != nil {
			return nil, err
		}
		return c.listType(ctx, full)
	}
	var all Resources
	for _, t := range types {
		if strings.Count(t, "/") > 1 {
			continue
		}
		found, err := c.listType(ctx, t)
		if _, isResponse := errors.AsType[*responseError](err); isResponse {
			continue // the type cannot be listed in a subscription
		}
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(found, func(doc map[string]any) bool { return !isCreated(doc) || !isOf(doc, t) })...)
	}
	return all, nil
}

// isCreated reports whether a request created the resource. Built-in resources, such as role definitions, always exist.
func isCreated(doc map[string]any) bool {
	text, _ := doc["id"].(string)
	id := azure.ID(text)
	return id.Group() != "" || id.Is("Microsoft.Authorization/roleAssignments")
}

// isOf reports whether a resource is of a type. Lists of some types have resources of others, such as groups in which a role may be had.
func isOf(doc map[string]any, full string) bool {
	text, _ := doc["id"].(string)
	return strings.EqualFold(full, groupType) || azure.ID(text).Is(full)
}

// listType lists the resources of a type in the subscription. It lists a child type in each parent.
func (c *Client) listType(ctx context.Context, full string) (Resources, error) {
	subscription := string(azure.SubscriptionID(c.info.Subscription))
	if strings.EqualFold(full, groupType) {
		return c.pages(ctx, subscription+"/resourceGroups")
	}
	if strings.Count(full, "/") == 1 {
		return c.pages(ctx, subscription+"/providers/"+full)
	}
	cut := strings.LastIndexByte(full, '/')
	parents, err := c.listType(ctx, full[:cut])
	if err != nil {
		return nil, err
	}
	var all Resources
	for _, p := range parents {
		id, _ := p["id"].(string)
		found, err := c.pages(ctx, id+full[cut:])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// FullType returns the full name of a type that is given in full or by its last segments.
func FullType(name string) (string, error) {
	types, err := knownTypes()
	if err != nil {
		return "", err
	}
	return findType(types, name)
}

const groupType = "Microsoft.Resources/resourceGroups"

// knownTypes returns the resource types of the local Azure.
func knownTypes() ([]string, error) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range e.Types() {
		names = append(names, t.Name)
	}
	return names, nil
}

// findType returns the full name of a type that is given in full or by its last segments. Case does not matter.
func findType(types []string, name string) (string, error) {
	var found []string
	for _, t := range types {
		if strings.EqualFold(t, name) {
			return t, nil
		}
		if strings.HasSuffix(strings.ToLower(t), "/"+strings.ToLower(name)) {
			found = append(found, t)
		}
	}
	// The type with the fewest segments is preferred: it is no child of another one.
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("type %q is unknown%s", name, hint(name, types))
	case len(found) > 1 && strings.Count(found[0], "/") == strings.Count(found[1], "/"):
		return "", fmt.Errorf("type %q is ambiguous; choose %s", name, strings.Join(found, " or "))
	}
	return found[0], nil
}

// hint names types that are spelled alike, or says how types are named.
func hint(name string, types []string) string {
	const shortest, most = 3, 3
	segments := strings.Count(name, "/") + 1
	var known, alike []string
	for _, t := range types {
		parts := strings.Split(t, "/")
		known = append(known, strings.Join(parts[max(0, len(parts)-segments):], "/"))
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if meant := spelling.Hint(name, known, spelling.Loose(name)); len(name) > shortest && meant != "" {
		return meant
	}
	for _, t := range known {
		if len(name) >= shortest && strings.Contains(strings.ToLower(t), strings.ToLower(name)) {
			alike = append(alike, t)
		}
	}
	slices.SortStableFunc(alike, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	if len(alike) == 0 {
		return ": want one such as loadBalancers, or Microsoft.Network/loadBalancers"
	}
	return "; did you mean " + strings.Join(alike[:min(most, len(alike))], " or ") + "?"
}

// Show returns the resource with an id, a name, or a TYPE/NAME.
func (c *Client) Show(ctx context.Context, name string) (map[string]any, error) {
	if strings.HasPrefix(name, "/") {
		id, err := azure.ParseID(strings.TrimSuffix(name, "/"))
		if err != nil {
			return nil, err
		}
		var doc map[string]any
		return doc, c.get(ctx, string(id), &doc)
	}
	kind := ""
	if cut := strings.LastIndexByte(name, '/'); cut >= 0 {
		kind, name = name[:cut], name[cut+1:]
	}
	all, err := c.List(ctx, kind)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, doc := range all {
		if text, _ := doc["name"].(string); strings.EqualFold(text, name) {
			id, _ := doc["id"].(string)
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return nil, fmt.Errorf("no resource has the name %q; kaz local azure list shows all", name)
	case 1:
		var doc map[string]any
		return doc, c.get(ctx, ids[0], &doc)
	}
	return nil, fmt.Errorf("several resources have the name %q: %s", name, strings.Join(ids, ", "))
}

// Resources is a list of documents.
type Resources []map[string]any

// Write prints the resources as a table.
func (rs Resources) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(t, "TYPE\tNAME\tGROUP\tLOCATION\tSTATE"); err != nil {
		return err
	}
	for _, doc := range rs {
		text, _ := doc["id"].(string)
		id := azure.ID(text)
		location, _ := doc["location"].(string)
		properties, _ := doc["properties"].(map[string]any)
		state, _ := properties["provisioningState"].(string)
		group := id.Group()
		if id.Is(groupType) {
			group = ""
		}
		_, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(id.Type(), "?"), namePath(id), dash(group), dash(location), dash(state))
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// namePath returns the name of a resource behind the names of its parents.
func namePath(id azure.ID) string {
	names := []string{id.Name()}
	for parent := id.Parent(); strings.Count(parent.Type(), "/") >= 1 && !parent.Is(groupType) && parent.Namespace() == id.Namespace() &&
		parent.Subscription() != "" && parent.Group() != ""; parent = parent.Parent() {
		names = append(names, parent.Name())
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
