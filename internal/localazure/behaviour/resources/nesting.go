package resources

import (
	"cmp"
	"maps"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
)

// mostNested is how deep deployments may be nested.
const mostNested = 5

// nesting is a walk through a template and those nested in it, as far as they are known before the outer one runs.
type nesting struct {
	// made are the resources of the templates: those of the outer one, the deployments in it, and what these make.
	made []azure.ID
	// unknown says that what a nested deployment makes is not known.
	unknown bool
}

// check checks a template and the nested ones, and gets what they link to.
func (n *nesting) check(c *behaviour.Call, s *source, t *template.Template, depth int) error {
	if err := authorize(c, t); err != nil {
		return err
	}
	if err := checkTemplate(c, t); err != nil {
		return err
	}
	for _, r := range t.Resources {
		n.made = append(n.made, r.ID)
	}
	for _, r := range t.Resources {
		if !r.Nested() {
			continue
		}
		if err := n.checkNested(c, s, t, r, depth); err != nil {
			return err
		}
	}
	return nil
}

// checkNested checks a nested deployment.
func (n *nesting) checkNested(c *behaviour.Call, s *source, t *template.Template, r *template.Resource, depth int) error {
	if depth == mostNested {
		return behaviour.Gateway(400, "InvalidTemplate", "Deployment template validation failed: 'the deployments are nested more than %d "+
			"deep'.", mostNested)
	}
	body, err := t.Preview(r)
	if template.NeedsResources(err) {
		n.unknown = true
		return s.followAll(c, t.Links(r))
	}
	if err != nil {
		return invalidTemplate(err)
	}
	inner := nestedCall(c, s, r, body)
	if behaviour.Text(inner.Body, "properties.mode") == "" {
		return behaviour.Gateway(400, "InvalidTemplate", "Deployment template validation failed: 'The nested deployment '%s' has no mode. "+
			"Want Incremental'.", r.ID.Name())
	}
	if completes(inner.Body) {
		return behaviour.Gateway(400, "InvalidNestedDeploymentMode", "The nested deployment '%s' has the mode 'Complete'. Only "+
			"'Incremental' is supported for nested deployments.", r.ID.Name())
	}
	if err := cmp.Or(checkName(inner), checkMode(inner)); err != nil {
		return err
	}
	of, err := sourceOf(inner)
	if err != nil {
		return err
	}
	nested, err := bind(inner, of)
	if err != nil {
		return err
	}
	if err := n.check(inner, of, nested, depth+1); err != nil {
		return err
	}
	maps.Copy(s.linked, of.linked)
	return nil
}

// missingGroup refuses a deployment into a resource group that neither exists nor is made by the templates.
func (n *nesting) missingGroup(c *behaviour.Call) error {
	for _, id := range n.made {
		if id.Group() == "" || n.unknown {
			continue
		}
		group := azure.GroupID(id.Subscription(), id.Group())
		if _, there := c.Get(group); !there && !slices.ContainsFunc(n.made, group.Equal) {
			return behaviour.GroupNotFound(id.Group())
		}
	}
	return nil
}
