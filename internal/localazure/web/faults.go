package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
)

// mostRules is how many fault rules the page adds.
const mostRules = 100

// faultsPage is the fault rules.
type faultsPage struct {
	Rules   []faultRow
	Fields  []formField
	Presets []preset
	Kinds   []faultKind
	Problem string // of the rule that was sent
}

type faultKind struct{ Name, Does string }

// faultRow is a rule as a row of the table.
type faultRow struct {
	core.CountedFault
	Matches string // the requests that it is for
	Does    string
	Limits  string
	Over    bool // its time has passed
}

// formField is a member of a rule in the form, with what was sent.
type formField struct {
	core.FaultField
	Value string
}

// preset is a rule for a usual case.
type preset struct {
	Name   string
	Values map[string]string // by the names of the members
}

func presets() []preset {
	return []preset{
		{"429 for a minute", map[string]string{"fault": "error", "status": "429", "retry-after": "5", "seconds": "60"}},
		{"The next write fails", map[string]string{"fault": "error", "method": "PUT", "status": "500", "times": "1"}},
		{"The next operation fails", map[string]string{"fault": "operation", "method": "PUT", "times": "1"}},
		{"Every tenth reply is lost", map[string]string{"fault": "lost", "probability": "0.1", "seconds": "60"}},
		{"No capacity for machines", map[string]string{"fault": "operation", "type": "virtualMachineScaleSets", "code": "AllocationFailed",
			"seconds": "60"}},
	}
}

func (s *Site) showFaults(w http.ResponseWriter, r *http.Request) {
	s.faultsWith(w, r, http.StatusOK, nil, "")
}

// faultsWith shows the rules, and the rule that was sent with the problem that it has.
func (s *Site) faultsWith(w http.ResponseWriter, r *http.Request, status int, sent map[string]string, problem string) {
	s.show(w, r, status, frame{View: "faults", Title: "Faults"}, func() (any, int) {
		page, again := faultsPage{Problem: problem, Presets: presets()}, 0
		for _, k := range core.FaultKinds() {
			page.Kinds = append(page.Kinds, faultKind{k.Name, k.Does})
		}
		for _, rule := range s.Azure.Faults.All() {
			row := describe(rule, time.Now())
			if rule.Seconds > 0 && !row.Over {
				again = 1000 // the time that is left
			}
			page.Rules = append(page.Rules, row)
		}
		for _, f := range core.FaultFields() {
			f.Usage = strings.ReplaceAll(f.Usage, "--", "")
			page.Fields = append(page.Fields, formField{f, sent[f.Name]})
		}
		return page, again
	})
}

// describe makes the row of a rule.
func describe(rule core.CountedFault, now time.Time) faultRow {
	row := faultRow{CountedFault: rule}
	words := []string{strings.ToUpper(rule.Method), strings.TrimPrefix(rule.Type, "Microsoft."), rule.Action, rule.Name}
	row.Matches = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	if row.Matches == "" {
		row.Matches = "every request"
	}
	does := []string{rule.Fault}
	if rule.Status != 0 {
		does = append(does, strconv.Itoa(rule.Status))
	}
	row.Does = strings.Join(append(does, rule.Code, rule.Path), " ")
	var limits []string
	if rule.Nth > 0 {
		limits = append(limits, "only match "+strconv.Itoa(rule.Nth))
	}
	if rule.Times > 0 {
		limits = append(limits, "at most "+plural(rule.Times, "time"))
	}
	if rule.Probability > 0 {
		limits = append(limits, "probability "+strconv.FormatFloat(rule.Probability, 'g', -1, 64))
	}
	if rule.Seconds > 0 {
		left := rule.Left(now)
		row.Over = left == 0
		limits = append(limits, left.Round(time.Second).String()+" left")
	}
	row.Limits = strings.Join(limits, ", ")
	return row
}

// addFault adds the rule of a form.
func (s *Site) addFault(w http.ResponseWriter, r *http.Request) {
	if !s.mayWrite(w, r) {
		return
	}
	sent := map[string]string{}
	var rule core.Fault
	for _, f := range core.FaultFields() {
		sent[f.Name] = strings.TrimSpace(r.PostForm.Get(f.Name))
		if err := f.Set(&rule, sent[f.Name]); err != nil {
			s.faultsWith(w, r, http.StatusBadRequest, sent, fmt.Sprintf("%s %q: %v", f.Name, sent[f.Name], err))
			return
		}
	}
	err := s.add(rule)
	if err != nil {
		s.faultsWith(w, r, http.StatusBadRequest, sent, err.Error())
		return
	}
	http.Redirect(w, r, Path+"faults", http.StatusSeeOther)
}

func (s *Site) add(rule core.Fault) (err error) {
	if rule.Type != "" {
		if rule.Type, err = client.FullType(rule.Type); err != nil {
			return err
		}
	}
	if len(s.Azure.Faults.All()) >= mostRules {
		return fmt.Errorf("there are %d fault rules; remove one first", mostRules)
	}
	_, err = s.Azure.Faults.Add(rule)
	return err
}

// removeFault removes the rule with the number of a form.
func (s *Site) removeFault(w http.ResponseWriter, r *http.Request) {
	if !s.mayWrite(w, r) {
		return
	}
	id, err := strconv.Atoi(r.PostForm.Get("id"))
	if err != nil || !s.Azure.Faults.Remove(id) {
		s.faultsWith(w, r, http.StatusNotFound, nil, "There is no fault rule with this number any more.")
		return
	}
	http.Redirect(w, r, Path+"faults", http.StatusSeeOther)
}

// mayWrite reads the form of a request that changes something, or refuses the request.
func (s *Site) mayWrite(w http.ResponseWriter, r *http.Request) bool {
	if !s.Write {
		s.fail(w, r, http.StatusForbidden, "This page only shows. Start kaz with --web-write to change something here.")
		return false
	}
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, http.StatusBadRequest, "The form cannot be read.")
		return false
	}
	return true
}
