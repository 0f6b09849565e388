package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

// notAgain are the types of which the same PUT changes something, as on Azure.
var notAgain = map[string]string{
	"microsoft.keyvault/vaults/secrets":    "each PUT makes a version, and a GET does not have the value",
	"microsoft.resources/deployments":      "each PUT is a deployment of its own, and a GET does not have the template",
	"microsoft.resources/deploymentstacks": "as deployments",
}

// notShown are the types of which a GET lacks what a PUT needs.
var notShown = map[string]string{"microsoft.containerregistry/registries/webhooks": "the address is a secret"}

// notTemplates are the types of examples that are no resource of a template at a resource group.
var notTemplates = map[string]string{
	"microsoft.resources/resourcegroups": "they are resources of subscriptions",
	"microsoft.authorization/locks":      "a lock forbids the what-if, too",
}

// ofAWrite are the members that say when or in which form a resource was written.
var ofAWrite = []string{"etag", "systemData", "updatedOn", "lastUpdatedTime"}

const answered = "what a GET answers"

// again are the faults of what an example made: the same request again and a request with what a GET answers change it, or a what-if of
// a template with the body of the example has a change. Examples that make no resource are not tried.
func again(ctx context.Context, e *core.Emulator, c *call) (faults []string, tried bool) {
	isResource := c.sent.method == http.MethodPut && strings.EqualFold(c.sent.path, string(c.target.id))
	if !isResource || notAgain[strings.ToLower(c.target.kind.Name)] != "" {
		return nil, false
	}
	get := request{method: http.MethodGet, path: c.sent.path, version: c.sent.version}
	status, shown, err := send(ctx, e, get)
	if status != http.StatusOK || err != nil {
		return nil, false
	}
	for what, body := range map[string][]byte{"the same body": c.sent.body, answered: shown} {
		if what == answered && notShown[strings.ToLower(c.target.kind.Name)] != "" {
			continue
		}
		put := request{method: http.MethodPut, path: c.sent.path, version: c.sent.version, body: body}
		if status, reply, err := send(ctx, e, put); status >= http.StatusMultipleChoices || err != nil {
			faults = append(faults, fmt.Sprintf("%s: %d %s", what, status, reply))
			continue
		}
		_, now, _ := send(ctx, e, get)
		if diff := cmp.Diff(settled(decoded(shown)), settled(decoded(now))); diff != "" {
			faults = append(faults, what+" changes it:\n"+diff)
		}
	}
	return append(faults, foreseen(ctx, e, c)...), true
}

// foreseen are the changes that a what-if of a template with the body of an example has, after it was sent.
func foreseen(ctx context.Context, e *core.Emulator, c *call) (changes []string) {
	id := c.target.id
	scope, typed, _ := strings.Cut(string(id), "/providers/")
	if id.Group() == "" || notTemplates[strings.ToLower(id.Type())] != "" || strings.Contains(typed, "/providers/") {
		return nil
	}
	var names []string
	for i, segment := range strings.Split(typed, "/") {
		if i > 0 && i%2 == 0 {
			names = append(names, segment)
		}
	}
	resource := map[string]any{"type": id.Type(), "apiVersion": c.sent.version, "name": strings.Join(names, "/")}
	if body, ok := decoded(c.sent.body).(map[string]any); ok {
		for _, own := range []string{"id", "type", "name"} {
			delete(body, own)
		}
		maps.Copy(resource, body)
	}
	template := map[string]any{"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0", "resources": []any{resource}}
	body, _ := json.Marshal(map[string]any{"properties": map[string]any{"mode": "Incremental", "template": template}})
	path := string(azure.ID(scope).Resource("Microsoft.Resources/deployments", "again")) + "/whatIf"
	reply, err := whatIf(ctx, e, request{method: http.MethodPost, path: path, version: "2024-03-01", body: body})
	if err != nil {
		return []string{"what-if: " + err.Error()}
	}
	if reply.Status != "Succeeded" {
		return []string{fmt.Sprintf("what-if: %s %s", reply.Status, reply.Error)}
	}
	for _, change := range reply.Properties.Changes {
		if change.ChangeType != "NoChange" && change.ChangeType != "Ignore" {
			changes = append(changes, fmt.Sprintf("what-if: %s of %s: %s", change.ChangeType, change.ResourceID, change.Delta))
		}
	}
	return changes
}

// foresight is the end of a what-if.
type foresight struct {
	Status     string
	Error      json.RawMessage
	Properties struct {
		Changes []struct {
			ChangeType, ResourceID string
			Delta                  json.RawMessage
		}
	}
}

func whatIf(ctx context.Context, e *core.Emulator, r request) (end foresight, err error) {
	status, text, headers, err := exchange(ctx, e, r)
	if err != nil || status != http.StatusAccepted {
		return end, fmt.Errorf("%d %s %w", status, text, err)
	}
	path, query, _ := strings.Cut(headers.Get("Location"), "?")
	_, version, _ := strings.Cut(query, "api-version=")
	version, _, _ = strings.Cut(version, "&")
	path = path[strings.Index(path, "/subscriptions/"):]
	if _, text, err = send(ctx, e, request{method: http.MethodGet, path: path, version: version}); err != nil {
		return end, err
	}
	return end, json.Unmarshal(text, &end)
}

func decoded(text []byte) (value any) {
	_ = json.Unmarshal(text, &value) // what is no JSON has no members
	return value
}

// settled is a resource without what a write changes by itself.
func settled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range ofAWrite {
			delete(v, name)
		}
		for _, x := range v {
			settled(x)
		}
	case []any:
		for _, x := range v {
			settled(x)
		}
	}
	return value
}
