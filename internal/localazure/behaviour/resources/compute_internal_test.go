package resources

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
)

const group = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg"

// oneGroup is a world with a group in it, in which long computations are for later, as in a request.
type oneGroup struct {
	behaviour.World
	work *template.Work
	tags behaviour.Object
}

func (*oneGroup) Known(string) bool { return true }

func (w *oneGroup) Work() *template.Work { return w.work }
func (w *oneGroup) Compute(f func(behaviour.Look)) error {
	return &behaviour.NotComputed{Compute: f}
}
func (w *oneGroup) Get(id azure.ID) (behaviour.Object, bool) {
	return behaviour.Object{"location": "eastus", "tags": w.tags}, id == group
}
func (w *oneGroup) Count(azure.ID, string) int                          { return 0 }
func (w *oneGroup) Now() time.Time                                      { return time.Unix(0, 0) }
func (w *oneGroup) GUID() string                                        { return "00000000-0000-0000-0000-000000000002" }
func (w *oneGroup) TenantOf(string) string                              { return "tenant" }
func (w *oneGroup) Allowed(*behaviour.Principal, string, azure.ID) bool { return true }
func (w *oneGroup) List(azure.ID, string) iter.Seq2[azure.ID, behaviour.Object] {
	return func(func(azure.ID, behaviour.Object) bool) {}
}

// spent reports whether anything was computed with a budget.
func (w *oneGroup) spent(since template.Budget) bool { return *w.work.Budget != since }

// heavy is a template at the limits of Azure: 800 resources, 256 parameters and 4 MB, of which a third are in a nested deployment with
// expressions of its own.
func heavy() behaviour.Object {
	parameters, tags := behaviour.Object{}, behaviour.Object{}
	for i := range 256 {
		parameters[fmt.Sprintf("p%d", i)] = behaviour.Object{"type": "string", "defaultValue": strings.Repeat("x", 4<<10)}
		tags[fmt.Sprintf("t%d", i)] = fmt.Sprintf("[length(parameters('p%d'))]", i)
	}
	identity := func(name string) behaviour.Object {
		return behaviour.Object{"type": "Microsoft.ManagedIdentity/userAssignedIdentities", "apiVersion": "2024-01-01", "location": "eastus",
			"name": "[concat('" + name + "', resourceGroup().tags.stage, copyIndex())]",
			"copy": behaviour.Object{"name": "l", "count": 799.0}}
	}
	const schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
	deep := behaviour.Object{"$schema": schema, "contentVersion": "1.0.0.0", "resources": []any{identity("deep"), behaviour.Object{"type": "Microsoft.Storage/storageAccounts",
		"apiVersion": "2024-01-01", "name": "tags", "properties": tags}}, "parameters": parameters}
	stage := behaviour.Object{"type": "object", "defaultValue": behaviour.Object{"name": "[resourceGroup().location]", "count": 3.0}}
	return behaviour.Object{"$schema": schema, "contentVersion": "1.0.0.0", "parameters": behaviour.Object{"stage": stage},
		"resources": []any{identity("flat"), behaviour.Object{"type": deploymentType, "apiVersion": "2024-01-01", "name": "n",
			"properties": behaviour.Object{"mode": "Incremental", "template": deep,
				"expressionEvaluationOptions": behaviour.Object{"scope": "inner"}}}}}
}

// While the transaction of a request is open, nothing of a template is computed: other requests do not wait for it. What was computed
// holds for what it was computed from.
func TestTemplatesAreComputedOutsideOfTransactions(t *testing.T) {
	w := &oneGroup{work: template.NewWork(), tags: behaviour.Object{"stage": "a"}}
	document := heavy()
	request := func() *behaviour.Call {
		return &behaviour.Call{World: w, ID: group + "/providers/" + deploymentType + "/d", Doc: behaviour.Object{},
			Body: behaviour.Object{"properties": behaviour.Object{"mode": "Incremental", "template": document}}}
	}
	compute := func(err error) {
		t.Helper()
		needs, ok := errors.AsType[*behaviour.NotComputed](err)
		if !ok {
			t.Fatalf("the error is %v, want that of a template that is not computed", err)
		}
		before := *w.work.Budget
		needs.Compute(func(f func(behaviour.World)) { f(w) })
		if !w.spent(before) {
			t.Fatal("nothing was computed")
		}
	}
	_, err := fillDeployment(request())
	compute(err)
	before := *w.work.Budget
	c := request()
	if _, err := fillDeployment(c); err != nil {
		t.Fatal(err)
	}
	stored := stored(behaviour.Clone(c.Doc))
	settled, err := bind(c, stored)
	if err != nil || len(settled.Resources) != 800 {
		t.Fatalf("%v, want a template with 800 resources", err)
	}
	for _, r := range settled.Resources {
		if _, err := settled.Body(r); err != nil {
			t.Fatal(err)
		}
	}
	if w.spent(before) {
		t.Error("a template was computed again in a transaction")
	}
	w.tags = behaviour.Object{"stage": "b"} // another request came in between
	_, err = fillDeployment(request())
	compute(err)
	before = *w.work.Budget
	if settled, err = bind(c, stored); err != nil || !strings.HasPrefix(settled.Resources[0].ID.Name(), "flatb") {
		t.Errorf("the template of the changed group: %v %v", err, settled)
	}
	if w.spent(before) {
		t.Error("a template was computed again in a transaction")
	}
}
