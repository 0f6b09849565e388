package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/token"
)

// assignRoles gives the identities of the file their roles. An assignment that a
// loaded state has already is left alone.
func (a *Azure) assignRoles(ids identities) error {
	var problems []error
	for _, list := range [][]identityEntry{ids.Applications, ids.ManagedIdentities} {
		for _, e := range list {
			for _, r := range e.RoleAssignments {
				if err := a.assignRole(e, r); err != nil {
					problems = append(problems, fmt.Errorf("--identities: role %q of %s: %w", r.Role, e.label(), err))
				}
			}
		}
	}
	return errors.Join(problems...)
}

func (e identityEntry) label() string {
	if e.Name != "" {
		return e.Name
	}
	return e.ClientID
}

func (a *Azure) assignRole(e identityEntry, r roleAssignment) error {
	role, err := a.roleID(r.Role)
	if err != nil {
		return err
	}
	scope := azure.ID(strings.TrimSuffix(r.Scope, "/"))
	if r.Scope == "" {
		scope = azure.SubscriptionID(a.info.Subscription)
	}
	// The same assignment has the same name at every start.
	name := token.GUIDFor(strings.ToLower(e.ObjectID + " " + string(role) + " " + string(scope)))
	id := scope.Resource("Microsoft.Authorization/roleAssignments", name)
	body := behaviour.Object{"properties": behaviour.Object{
		"roleDefinitionId": string(role), "principalId": e.ObjectID, "principalType": "ServicePrincipal",
	}}
	err = a.emulator.Do(func(w behaviour.World) error {
		if _, there := w.Get(id); there {
			return nil
		}
		return w.Apply(id, body)
	})
	if refused, ok := errors.AsType[*behaviour.Error](err); !ok || refused.Status != http.StatusNotFound {
		return err
	}
	// Azure assigns no role in a group before there is the group. But the file is
	// written before there is anything, so its assignment is there first.
	behaviour.Set(body, "properties.scope", string(scope))
	return a.emulator.Do(func(w behaviour.World) error {
		w.Put(id, body)
		return nil
	})
}

// roleID finds a role definition by its name, its GUID or its id.
func (a *Azure) roleID(role string) (azure.ID, error) {
	const definitions = "Microsoft.Authorization/roleDefinitions"
	subscription := azure.SubscriptionID(a.info.Subscription)
	if strings.HasPrefix(role, "/") {
		return azure.ParseID(role)
	}
	if guidForm.MatchString(role) {
		return subscription.Resource(definitions, role), nil
	}
	known, err := a.roleDefinitions(subscription)
	if err != nil {
		return "", err
	}
	for _, r := range known {
		if strings.EqualFold(r.Properties.RoleName, role) {
			return r.ID, nil
		}
	}
	names := []string{"a GUID", "an id"}
	for _, r := range known {
		names = append(names, r.Properties.RoleName)
	}
	slices.Sort(names[2:])
	return "", fmt.Errorf("no role definition has this name; want %s", strings.Join(names, ", "))
}

type roleDefinition struct {
	ID         azure.ID `json:"id"`
	Properties struct {
		RoleName string `json:"roleName"`
	} `json:"properties"`
}

// roleDefinitions asks for them as a client would, since most are made up when they
// are read.
func (a *Azure) roleDefinitions(scope azure.ID) ([]roleDefinition, error) {
	t, err := a.tokens.Issue(a.owner, "", a.info.ARM, token.ManagedLifetime)
	if err != nil {
		return nil, err
	}
	r := &http.Request{Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{
		Scheme: "https", Host: "localhost", Path: string(scope) + "/providers/Microsoft.Authorization/roleDefinitions",
		RawQuery: "api-version=2022-04-01",
	}}
	r.Header.Set("Authorization", "Bearer "+t.Text)
	resp, err := a.emulator.Transport().RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Value []roleDefinition `json:"value"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read role definitions: %s %d", resp.Status, resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("read role definitions: %w", err)
	}
	return list.Value, nil
}
