package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/record"
)

// Change is what a deployment would do with a resource.
type Change struct {
	ID   azure.ID `json:"resourceId"`
	Type string   `json:"changeType"`
	// Delta are the fields that change.
	Delta []Delta `json:"delta,omitempty"`
}

// Delta is a field that changes.
type Delta struct {
	Path   string          `json:"path"`
	Type   string          `json:"propertyChangeType"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	Nested []Delta         `json:"children,omitempty"`
}

// String is a change as kaz explain writes it: + to create, - to delete, ~ to change, = up to date.
func (c Change) String() string {
	mark := map[string]string{"Create": "+", "Delete": "-", "Modify": "~", "NoChange": "=", "Ignore": "*", "Deploy": "!"}[c.Type]
	if mark == "" {
		mark = "?"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", mark, c.ID.Type(), c.ID.Name())
	writeDelta(&b, "", c.Delta)
	return b.String()
}

func writeDelta(b *strings.Builder, at string, all []Delta) {
	for _, d := range all {
		path := strings.TrimPrefix(at+"."+d.Path, ".")
		if len(d.Nested) > 0 {
			writeDelta(b, path, d.Nested)
			continue
		}
		fmt.Fprintf(b, "\n     %s: %s -> %s", path, short(d.Before), short(d.After))
	}
}

// short is a value for people; long values, such as boot files, are cut.
func short(v json.RawMessage) string {
	const most = 100
	if len(v) == 0 {
		return "(none)"
	}
	if len(v) > most {
		return string(v[:most]) + "..."
	}
	return string(v)
}

// WhatIf asks Azure what a deployment of the plan would change. Azure compares inside of a resource group. If the group does
// not exist, WhatIf answers that every resource is created.
func (d Deployer) WhatIf(ctx context.Context, p cluster.Plan) ([]Change, error) {
	w, err := d.prepare(ctx, p, false)
	if err != nil || w.empty() {
		return nil, err
	}
	if w.state.Group == nil {
		return w.created(), nil
	}
	w.template = w.plan.Template(w.existing.shown(w.leave))
	body, err := w.body(nil) // the secrets are no part of the comparison
	if err != nil {
		return nil, err
	}
	id := record.DeploymentID(p.Names.Group(), p.Names.Deployment())
	answer, err := azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "whatIf", Body: body})
	if err != nil {
		return nil, err
	}
	var result struct {
		Properties struct {
			Changes []Change `json:"changes"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return nil, fmt.Errorf("the answer of what-if: %w", err)
	}
	changes := result.Properties.Changes
	for _, one := range w.existing.retags {
		changes = slices.DeleteFunc(changes, func(c Change) bool { return c.ID.Equal(one.id) })
		changes = append(changes, one.change())
	}
	return changes, nil
}

// Validate lets Azure check the template of a plan, which also applies policies. Azure can only validate in a resource group
// that exists: without one Validate returns nil. The error is [ErrFixed] if a deployment cannot make the change.
func (d Deployer) Validate(ctx context.Context, p cluster.Plan, s record.State) error {
	w, err := left(s, p, false)
	if errors.Is(err, ErrFixed) {
		return err
	}
	if err != nil || w.empty() || w.state.Group == nil {
		return nil // the deployment says what is wrong
	}
	body, err := w.body(nil) // validation needs no secrets
	if err != nil {
		return err
	}
	id := record.DeploymentID(p.Names.Group(), p.Names.Deployment())
	_, err = azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "validate", Body: body})
	return err
}
