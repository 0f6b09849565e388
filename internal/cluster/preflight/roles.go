package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/plan/rights"
)

// assigned is a role assignment of an identity.
type assigned struct {
	scope   azure.ID
	granted []rights.Permission
}

// roles checks that the identities have their roles if kaz does not assign them. Roles at resources that kaz makes cannot be there
// before the deployment, so their absence is a warning.
func (c *checker) roles(ctx context.Context) {
	if c.p.Definition.Cluster.Spec.Identity.Roles != "None" {
		return
	}
	needed, err := c.p.Roles()
	if err != nil {
		c.unread("roles", err)
		return
	}
	given := map[string]*holder{}
	for _, role := range needed {
		h := given[role.Field]
		if h == nil {
			h = c.holder(ctx, role)
			given[role.Field] = h
		}
		if h.object != "" {
			c.role(ctx, h, role)
		}
	}
}

// holder is an identity with what it has of roles in a subscription.
type holder struct {
	object string // the id of its principal, "" if it is not known
	has    map[string][]assigned
}

// holder reads the identity of a role.
func (c *checker) holder(ctx context.Context, role cluster.Role) *holder {
	h := &holder{has: map[string][]assigned{}}
	if role.Identity == "" {
		c.Warn("roles", "make an identity with these roles and set "+role.Field+", or set spec.identity.roles to Scoped",
			"spec.identity.roles is None, and %s is empty: the identity that kaz makes has no roles", role.Field)
		return h
	}
	doc, err := c.Azure.Get(ctx, role.Identity)
	if azure.IsNotFound(err) {
		return h // the check of existing resources says so
	}
	var identity struct {
		Properties struct {
			PrincipalID string `json:"principalId"`
		} `json:"properties"`
	}
	if err == nil {
		err = json.Unmarshal(doc, &identity)
	}
	if err != nil {
		c.unread("roles", err)
	}
	h.object = identity.Properties.PrincipalID
	return h
}

// role checks one role of an identity.
func (c *checker) role(ctx context.Context, h *holder, role cluster.Role) {
	subscription := role.Scope.Subscription()
	if _, read := h.has[subscription]; !read {
		all, err := assignments(ctx, c.Azure, azure.SubscriptionID(subscription), h.object)
		if err != nil {
			c.unread("roles", err)
			h.object = ""
			return
		}
		h.has[subscription] = all
	}
	var granted []rights.Permission
	for _, a := range h.has[subscription] {
		if role.Scope.Under(a.scope) || !strings.HasPrefix(a.scope.Key(), "/subscriptions/") {
			granted = append(granted, a.granted...) // also of management groups, which Azure lists where they apply
		}
	}
	missing := slices.DeleteFunc(slices.Clone(role.Actions), func(action string) bool { return rights.Allowed(granted, action) })
	missing = append(missing, slices.DeleteFunc(slices.Clone(role.DataActions), func(action string) bool {
		return rights.AllowedData(granted, action)
	})...)
	if len(missing) == 0 {
		return
	}
	remedy := fmt.Sprintf("az role assignment create --assignee-object-id %s --assignee-principal-type ServicePrincipal --role %q "+
		"--scope %s", h.object, role.Name, role.Scope)
	message := fmt.Sprintf("%s: identity %s may not do this at %s: %s", role.Field, role.Identity.Name(), role.Scope,
		strings.Join(missing, ", "))
	if c.scopeExists(ctx, role.Scope) {
		c.Add("roles", remedy, "%s", message)
		return
	}
	c.Warn("roles", "as soon as the deployment has made it: "+remedy, "%s, which does not exist yet; machines wait ten minutes for it",
		message)
}

// scopeExists reports whether a scope is there before the deployment. If it cannot be read, it counts as there.
func (c *checker) scopeExists(ctx context.Context, scope azure.ID) bool {
	if scope.Under(c.p.Names.Group()) && c.state.Group == nil {
		return false
	}
	_, err := c.Azure.Get(ctx, scope)
	return !azure.IsNotFound(err)
}

// assignments are the roles that a principal has in a subscription, also those of its groups.
func assignments(ctx context.Context, from azure.Reader, subscription azure.ID, principal string) ([]assigned, error) {
	docs, err := from.List(ctx, azure.Query{Scope: subscription, Type: "Microsoft.Authorization/roleAssignments",
		Filter: "assignedTo('" + principal + "')"})
	if err != nil {
		return nil, err
	}
	var all []assigned
	for _, doc := range docs {
		var a struct {
			Properties struct {
				Scope azure.ID `json:"scope"`
				Role  azure.ID `json:"roleDefinitionId"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(doc, &a); err != nil {
			return nil, err
		}
		doc, err := from.Get(ctx, a.Properties.Role)
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", a.Properties.Role.Name(), err)
		}
		var role struct {
			Properties struct {
				Permissions []rights.Permission `json:"permissions"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(doc, &role); err != nil {
			return nil, err
		}
		all = append(all, assigned{a.Properties.Scope, role.Properties.Permissions})
	}
	return all, nil
}
