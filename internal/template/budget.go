package template

import (
	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
)

// Budget bounds what is computed for one request: for its template and for all templates nested in it. It is not safe for use by
// several goroutines.
type Budget struct{ steps, size int }

// templatesWorth is how many templates at their own limits a budget is worth.
const templatesWorth = 4

// NewBudget returns the budget of one request.
func NewBudget() *Budget {
	return &Budget{steps: templatesWorth * language.MostSteps, size: templatesWorth * language.MostSize}
}

func (b *Budget) spend(steps, size int) error {
	b.steps, b.size = b.steps-steps, b.size-size
	if b.steps < 0 || b.size < 0 {
		return language.ErrTooMuch
	}
	return nil
}

// resourceSteps is what binding a resource counts in addition to the functions that it calls.
const resourceSteps = 20

// limits are how many entries the sections of a template may have, as Azure documents them.
var limits = []struct {
	section string
	most    int
}{{"parameters", 256}, {"variables", 512}, {"outputs", 64}}

// mostResources is how many resources a template may have, with the copies of its loops.
const mostResources = 800

// checkDocument refuses a template of another schema, and one with a section that is too large.
func checkDocument(document Object) error {
	if err := checkSchema(document); err != nil {
		return err
	}
	if err := checkOutputs(object(document, "outputs")); err != nil {
		return err
	}
	for _, l := range limits {
		if n := len(object(document, l.section)); n > l.most {
			return tooMany(l.section, l.most, n)
		}
	}
	return nil
}

func tooMany(section string, most, n int) error {
	return fault.Invalid(section, "The number of template %s limit exceeded. Limit: '%d' and actual: '%d'. Please see "+
		"https://aka.ms/arm-template-limits for usage details", section, most, n)
}
