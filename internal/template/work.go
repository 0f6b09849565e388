package template

import (
	"reflect"
	"strings"
)

// Work is what is computed for one request, or for one operation. All templates together have one budget. A bound template is kept,
// because binding takes long: it is bound while other requests go on, and used when what it was bound to is still the same.
// It is not safe for use by several goroutines.
type Work struct {
	// Budget bounds what the templates compute together.
	Budget *Budget
	bound  map[string][]bound // by the key of the deployment
	drawn  map[string]string
}

// bound is the result of [Bind].
type bound struct {
	document Object
	to       Deployment
	template *Template
	err      error
}

// NewWork returns the work of one request.
func NewWork() *Work {
	return &Work{Budget: NewBudget(), bound: map[string][]bound{}, drawn: map[string]string{}}
}

// Once returns what draw returned when Once was called first with the name. A request that is carried out again gets the same.
func (w *Work) Once(name string, draw func() string) string {
	if _, ok := w.drawn[name]; !ok {
		w.drawn[name] = draw()
	}
	return w.drawn[name]
}

// Bind is the function [Bind], and keeps the result for Bound.
func (w *Work) Bind(document Object, d Deployment) (*Template, error) {
	d.Budget = w.Budget
	t, err := Bind(document, d)
	key := d.ID.Key()
	w.bound[key] = append(w.bound[key], bound{document, d, t, err})
	return t, err
}

// Bound returns the template that Bind has bound to the same deployment. It asks d.Azure from now on. The result known is false if there
// is none: if Bind was not called, or if the template, its parameters or their surroundings were others.
func (w *Work) Bound(document Object, d Deployment) (t *Template, known bool, err error) {
	for _, b := range w.bound[d.ID.Key()] {
		if !b.same(document, d) {
			continue
		}
		if b.err == nil {
			b.template.resume(d.Azure, w.Budget)
		}
		return b.template, true, b.err
	}
	return nil, false, nil
}

// same reports whether a template would be bound to the same again. The time may be another one: a request has one time.
func (b bound) same(document Object, d Deployment) bool {
	for _, pair := range [][2]any{
		{strings.ToLower(b.to.Location), strings.ToLower(d.Location)}, {b.to.Group, d.Group}, {b.to.Subscription, d.Subscription},
		{b.to.Tenant, d.Tenant}, {b.to.Deployer, d.Deployer}, {b.to.TemplateLink, d.TemplateLink}, {b.document, document},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			return false
		}
	}
	return reflect.DeepEqual(b.to.Parameters, d.Parameters) || b.template != nil && b.template.given(d.Parameters)
}

// given reports whether parameters are all parameters of the template with the values that they have.
func (t *Template) given(parameters Object) bool {
	if len(parameters) != len(t.Parameters) {
		return false
	}
	for name, value := range t.Parameters {
		if p, ok := parameters[name].(Object); !ok || len(p) != 1 || !reflect.DeepEqual(p["value"], value) {
			return false
		}
	}
	return true
}

// PreviewAll computes all bodies that can be computed before any resource exists, so that Body has them.
func (t *Template) PreviewAll() {
	for _, r := range t.Resources {
		_, _ = t.Preview(r) // an error is that of the resource, when it is made
	}
}

// resume lets a template compute on. What it computed for resources that exist does not count again.
func (t *Template) resume(azure Azure, budget *Budget) {
	t.scope.deployment.Azure, t.scope.deployment.Budget = azure, budget
	t.scope.steps, t.scope.size = t.steps, t.size
}
