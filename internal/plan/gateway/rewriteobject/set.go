package rewriteobject

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure/network"
)

// Limits of a rewrite rule set.
const (
	mostHeaders    = 40
	mostConditions = 40
)

// The actions of headers.
const (
	setHeader    = "set"
	deleteHeader = "delete"
)

// variableForm matches the variables of conditions, and headerForm names of headers.
var (
	variableForm = regexp.MustCompile(`^(var|http_req|http_resp)_[A-Za-z0-9_-]+$`)
	headerForm   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// Set returns the rewrite rule set of an object. The error has all that is wrong, with the field, the value and what is allowed.
func (o Object) Set() (network.GatewayRewriteSet, error) {
	set := network.GatewayRewriteSet{Rules: []network.GatewayRewriteRule{}}
	var problems checks
	if len(o.Spec.RewriteRules) == 0 {
		problems.note("spec.rewriteRules", "is empty; want at least one rule")
	}
	seen := map[string]bool{}
	headers, conditions := 0, 0
	for i, r := range o.Spec.RewriteRules {
		at := fmt.Sprintf("spec.rewriteRules[%d]", i)
		switch name := strings.ToLower(r.Name); {
		case name == "":
			problems.note(at+".name", "is empty; want a name")
		case seen[name]:
			problems.note(at+".name", "%q is the name of another rule", r.Name)
		default:
			seen[name] = true
		}
		if r.RuleSequence < 0 {
			problems.note(at+".ruleSequence", "%d is negative", r.RuleSequence)
		}
		headers += len(r.Actions.RequestHeaders) + len(r.Actions.ResponseHeaders)
		conditions += len(r.Conditions)
		set.Rules = append(set.Rules, network.GatewayRewriteRule{Name: r.Name, Sequence: r.RuleSequence,
			Conditions: problems.conditions(at, r.Conditions), Actions: problems.actions(at+".actions", r.Actions)})
	}
	if headers > mostHeaders {
		problems.note("spec.rewriteRules", "have %d headers; an application gateway takes %d", headers, mostHeaders)
	}
	if conditions > mostConditions {
		problems.note("spec.rewriteRules", "have %d conditions; an application gateway takes %d", conditions, mostConditions)
	}
	if len(problems) > 0 {
		return network.GatewayRewriteSet{}, errors.Join(problems...)
	}
	// The sequence decides. Rules with the same one go in the order of the object, and the set has the same order each time.
	slices.SortStableFunc(set.Rules, func(a, b network.GatewayRewriteRule) int { return int(a.Sequence) - int(b.Sequence) })
	return set, nil
}

// checks collects what is wrong with an object.
type checks []error

func (c *checks) note(field, format string, args ...any) {
	*c = append(*c, fmt.Errorf("%s %s", field, fmt.Sprintf(format, args...)))
}

func (c *checks) conditions(at string, all []Condition) []network.GatewayRewriteCondition {
	var made []network.GatewayRewriteCondition
	for i, one := range all {
		field := fmt.Sprintf("%s.conditions[%d]", at, i)
		if !variableForm.MatchString(one.Variable) {
			c.note(field+".variable", "%q is no variable; allowed are var_NAME, http_req_NAME and http_resp_NAME", one.Variable)
		}
		if one.Pattern == "" {
			c.note(field+".pattern", "is empty; want a regular expression")
		}
		made = append(made, network.GatewayRewriteCondition{Variable: one.Variable, Pattern: one.Pattern, IgnoreCase: one.IgnoreCase,
			Negate: one.Negate})
	}
	return made
}

func (c *checks) actions(at string, a Actions) network.GatewayRewriteActions {
	made := network.GatewayRewriteActions{
		RequestHeaders:  c.headers(at+".requestHeaderConfigurations", a.RequestHeaders),
		ResponseHeaders: c.headers(at+".responseHeaderConfigurations", a.ResponseHeaders),
	}
	if a.URL != nil && *a.URL != (URLChange{}) {
		made.URL = &network.GatewayURLChange{Path: a.URL.ModifiedPath, Query: a.URL.ModifiedQueryString, Reroute: a.URL.Reroute}
	}
	return made
}

// headers returns the changes of headers. A header that is deleted has no value.
func (c *checks) headers(at string, all []Header) []network.GatewayHeader {
	var made []network.GatewayHeader
	for i, h := range all {
		field := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case !headerForm.MatchString(h.HeaderName):
			c.note(field+".headerName", "%q is no name of a header", h.HeaderName)
		case strings.EqualFold(h.HeaderName, "Connection") || strings.EqualFold(h.HeaderName, "Upgrade"):
			c.note(field+".headerName", "is %s, which an application gateway cannot change", h.HeaderName)
		}
		switch h.ActionType {
		case "", setHeader:
		case deleteHeader:
			h.HeaderValue = ""
		default:
			c.note(field+".actionType", "%q is not allowed; allowed are %s and %s", h.ActionType, setHeader, deleteHeader)
		}
		if strings.ContainsAny(h.HeaderValue, "\r\n\x00") {
			c.note(field+".headerValue", "%q has a line break", h.HeaderValue)
		}
		made = append(made, network.GatewayHeader{Name: h.HeaderName, Value: h.HeaderValue})
	}
	return made
}
