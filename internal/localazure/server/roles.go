package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/identities"
	"kaz/internal/localazure/plane/token"
)

// roleAssigner creates role assignments in an emulator.
type roleAssigner struct {
	emulator     *core.Emulator
	subscription azure.ID
	token        string // has all rights
}

// assignRoles creates the role assignments of an identities file that the loaded state does not have.
func (a *Server) assignRoles(ids identities.File) error {
	t, err := a.tokens.Issue(a.owner, "", a.info.ARM, token.ManagedLifetime)
	if err != nil {
		return err
	}
	assigner := roleAssigner{emulator: a.emulator, subscription: azure.SubscriptionID(a.info.Subscription), token: t.Text}
	var problems []error
	for _, e := range slices.Concat(ids.Applications, ids.ManagedIdentities) {
		for _, r := range e.RoleAssignments {
			if err := assigner.assign(e, r); err != nil {
				problems = append(problems, fmt.Errorf("--identities: role %q of %s: %w", r.Role, e.Label(), err))
			}
		}
	}
	return errors.Join(problems...)
}

func (a roleAssigner) assign(e identities.Entry, r identities.RoleAssignment) error {
	role, err := a.find(r.Role)
	if err != nil {
		return err
	}
	scope := azure.ID(strings.TrimSuffix(r.Scope, "/"))
	if r.Scope == "" {
		scope = a.subscription
	}
	// The name of an assignment depends only on its content: each start finds it again.
	name := token.GUIDFor(strings.ToLower(e.ObjectID + " " + string(role) + " " + string(scope)))
	id := scope.Resource("Microsoft.Authorization/roleAssignments", name)
	body := behaviour.Object{"properties": behaviour.Object{
		"roleDefinitionId": string(role), "principalId": e.ObjectID, "principalType": "ServicePrincipal",
	}}
	err = a.emulator.Do(func(w behaviour.World) error {
		if _, exists := w.Get(id); exists {
			return nil
		}
		return w.Apply(behaviour.Itself(), id, body)
	})
	if refused, ok := errors.AsType[*behaviour.Error](err); !ok || refused.Status != http.StatusNotFound {
		return err
	}
	// Azure refuses an assignment in a resource group that does not exist. The identities file describes groups that
	// are created later, so its assignment is stored without that check.
	behaviour.Set(body, "properties.scope", string(scope))
	return a.emulator.Do(func(w behaviour.World) error {
		w.Put(id, body)
		return nil
	})
}

// find returns the role definition with a name, GUID or id.
func (a roleAssigner) find(role string) (azure.ID, error) {
	const definitions = "Microsoft.Authorization/roleDefinitions"
	if strings.HasPrefix(role, "/") {
		return azure.ParseID(role)
	}
	if identities.IsGUID(role) {
		return a.subscription.Resource(definitions, role), nil
	}
	known, err := a.definitions()
	if err != nil {
		return "", err
	}
	var names []string
	for _, r := range known {
		if strings.EqualFold(r.Properties.RoleName, role) {
			return r.ID, nil
		}
		names = append(names, r.Properties.RoleName)
	}
	slices.Sort(names)
	return "", fmt.Errorf("no role definition has this name; want a GUID, an id, or one of %s", strings.Join(names, ", "))
}

type roleDefinition struct {
	ID         azure.ID `json:"id"`
	Properties struct {
		RoleName string `json:"roleName"`
	} `json:"properties"`
}

// definitions lists the role definitions in the subscription with a request, because the emulator derives most of them
// when they are read.
func (a roleAssigner) definitions() ([]roleDefinition, error) {
	r := &http.Request{Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{
		Scheme: "https", Host: "localhost", Path: string(a.subscription) + "/providers/Microsoft.Authorization/roleDefinitions",
		RawQuery: "api-version=2022-04-01",
	}}
	r.Header.Set("Authorization", "Bearer "+a.token)
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
