// Package fault has the rules that make requests to the local Azure go wrong. Layer
// L2: behaviour.
package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/random"
)

// Kinds of [Rule].
const (
	Error     = "error"     // the request is refused with Status, Code and Message
	Operation = "operation" // the request is accepted and its operation fails
	Lost      = "lost"      // the request is done and the connection cut instead of a reply
	Stale     = "stale"     // a read returns the document before its last change
	Crash     = "crash"     // the request is done and the process is to crash, then as lost
	Absent    = "absent"    // a read answers that nothing is there: 404, or an empty list
	Overlap   = "overlap"   // as error, while another such request below the same parent has no answer
	Drop      = "drop"      // a resource is created without what the request has at Path
	Answer    = "answer"    // a read answers with Value at Path, or with nothing there if Value is absent
	// Unconditional carries out a request as if it had neither If-Match nor If-None-Match.
	Unconditional = "unconditional"
)

// Rule lets requests go wrong. Empty conditions match everything;
// of several rules the first that applies to a request decides.
type Rule struct {
	Method string `json:"method,omitempty"`
	Type   string `json:"type,omitempty"` // full type
	Name   string `json:"name,omitempty"` // of the resource; * and ? as in file names
	Action string `json:"action,omitempty"`

	// Nth is which of the matching requests it applies to, 1 the first; 0 is every one.
	Nth int `json:"nth,omitempty"`
	// Probability that it applies to a matching request; 0 is always.
	Probability float64 `json:"probability,omitempty"`
	// Times is how often it applies at most; 0 is without limit.
	Times int `json:"times,omitempty"`
	// Seconds is how long it applies after it was added; 0 is without limit.
	Seconds int `json:"seconds,omitempty"`

	Fault      string `json:"fault"`
	Path       string `json:"path,omitempty"` // in the body, with dots; it leads through lists
	Value      any    `json:"value,omitempty"`
	Status     int    `json:"status,omitempty"`
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
}

// Parse reads a JSON document {"faults": [...]}.
func Parse(text []byte) ([]Rule, error) {
	var file struct {
		Faults []Rule `json:"faults"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("fault rules: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("fault rules: there is more after the end of the document")
	}
	for i := range file.Faults {
		if err := file.Faults[i].check(); err != nil {
			return nil, fmt.Errorf("fault rules: rule %d: %w", i+1, err)
		}
	}
	return file.Faults, nil
}

func (f *Rule) check() error {
	if !slices.Contains(kindNames(), f.Fault) {
		return fmt.Errorf("fault %q: want %s", f.Fault, kindList())
	}
	if err := f.checkPath(); err != nil {
		return err
	}
	if f.Method != "" && !slices.Contains(methods, strings.ToUpper(f.Method)) {
		return fmt.Errorf("method %q: want GET, HEAD, PUT, PATCH, POST or DELETE", f.Method)
	}
	if f.Probability < 0 || f.Probability > 1 {
		return fmt.Errorf("probability %v: want 0 to 1", f.Probability)
	}
	if f.Nth < 0 || f.Times < 0 || f.RetryAfter < 0 || f.Seconds < 0 {
		return errors.New("nth, times, seconds and retryAfter cannot be negative")
	}
	if _, err := path.Match(f.Name, ""); err != nil {
		return fmt.Errorf("name %q: %w", f.Name, err)
	}
	const least, most = 400, 599
	if f.Status != 0 && (f.Status < least || f.Status > most) {
		return fmt.Errorf("status %d: want %d to %d", f.Status, least, most)
	}
	return nil
}

// checkPath checks the members of faults that change a document.
func (f *Rule) checkPath() error {
	if (f.Path != "") != (f.Fault == Drop || f.Fault == Answer) {
		return fmt.Errorf("fault %q with path %q: the faults drop and answer, and no other ones, have a path", f.Fault, f.Path)
	}
	if f.Value != nil && f.Fault != Answer {
		return fmt.Errorf("fault %q with value %v: the fault answer, and no other one, has a value", f.Fault, f.Value)
	}
	return nil
}

// Refusal is the error that the client of a faulty request gets.
func (f *Rule) Refusal() *behaviour.Error {
	status := cmp.Or(f.Status, map[string]int{Overlap: http.StatusConflict}[f.Fault], http.StatusInternalServerError)
	code, message := f.Code, f.Message
	if code == "" {
		code = map[int]string{409: "Conflict", 412: "PreconditionFailed", 429: "TooManyRequests", 503: "ServiceUnavailable",
			504: "GatewayTimeout"}[status]
	}
	if code == "" {
		code = strings.ReplaceAll(http.StatusText(status), " ", "")
	}
	if message == "" {
		message = "A fault rule of the local Azure made this request fail."
	}
	e := behaviour.Refusal(status, code, "%s", message)
	e.RetryAfter = f.RetryAfter
	if status == http.StatusTooManyRequests && e.RetryAfter == 0 {
		e.RetryAfter = 1
	}
	return e
}

// Forget takes what is at the rule's path out of the body of a request.
func (f *Rule) Forget(body behaviour.Object) { put(body, strings.Split(f.Path, "."), nil) }

// Alter puts the rule's value at its path into the answer of a read: of a resource, or of each resource of a list.
func (f *Rule) Alter(text json.RawMessage, list bool) (json.RawMessage, error) {
	var body behaviour.Object
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, fmt.Errorf("fault %q: read the answer: %w", f.Fault, err)
	}
	path := strings.Split(f.Path, ".")
	if list {
		path = append([]string{"value"}, path...)
	}
	put(body, path, f.Value)
	return json.Marshal(body)
}

// put sets what is at a path; nil deletes it.
func put(x any, path []string, value any) {
	switch x := x.(type) {
	case []any:
		for _, element := range x {
			put(element, path, value)
		}
	case behaviour.Object:
		switch {
		case len(path) > 1:
			put(x[path[0]], path[1:], value)
		case value == nil:
			delete(x, path[0])
		default:
			x[path[0]] = value
		}
	}
}

// Request is what rules match of a request.
type Request struct {
	Method, Type, Action string
	// Name of the resource, "" for a list and for a request that is to no resource.
	Name string
	// Parent is the key of the resource's parent.
	Parent string
}

// Counted is a rule with its number, and with how often it has matched and applied.
type Counted struct {
	ID int `json:"id"`
	Rule
	Matched int `json:"matched"`
	Applied int `json:"applied"`

	added time.Time
}

// Left is how long a rule with a limited time applies from a time on, 0 when its time has passed.
func (c *Counted) Left(now time.Time) time.Duration {
	return max(0, c.added.Add(time.Duration(c.Seconds)*time.Second).Sub(now))
}

// over reports whether the time of a rule has passed.
func (c *Counted) over(now time.Time) bool { return c.Seconds > 0 && c.Left(now) == 0 }

// Rules are rules with how often each has matched and applied. They are safe for use by
// several goroutines.
type Rules struct {
	mu     sync.Mutex
	rules  []*Counted
	lastID int
	flying map[string]bool // parents with a request without an answer that an overlap rule matched
	random *random.Source
}

// NewRules returns an empty set. Probabilities draw from the source.
func NewRules(from *random.Source) *Rules { return &Rules{random: from, flying: map[string]bool{}} }

// Set replaces the rules.
func (f *Rules) Set(rules []Rule) error {
	for i := range rules {
		if err := rules[i].check(); err != nil {
			return fmt.Errorf("fault rules: rule %d: %w", i+1, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
	for _, r := range rules {
		f.append(r)
	}
	return nil
}

// append adds a valid rule. The caller holds the mutex.
func (f *Rules) append(r Rule) Counted {
	f.lastID++
	c := &Counted{ID: f.lastID, Rule: r, added: time.Now()}
	f.rules = append(f.rules, c)
	return *c
}

// Add adds a rule behind the others.
func (f *Rules) Add(r Rule) (Counted, error) {
	if err := r.check(); err != nil {
		return Counted{}, fmt.Errorf("fault rule: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.append(r), nil
}

// Remove removes the rule with a number, and reports whether there was one.
func (f *Rules) Remove(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.rules)
	f.rules = slices.DeleteFunc(f.rules, func(c *Counted) bool { return c.ID == id })
	return len(f.rules) < before
}

// All returns the rules in the order in which they are tried.
func (f *Rules) All() []Counted {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Counted, len(f.rules))
	for i, c := range f.rules {
		all[i] = *c
	}
	return all
}

// Stale reports whether a rule needs documents as they were before their last change.
func (f *Rules) Stale() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.rules, func(c *Counted) bool { return c.Fault == Stale })
}

// Pick returns the rule that applies to the request, nil for none. The caller calls answered
// when the request has its answer.
func (f *Rules) Pick(r Request) (rule *Rule, answered func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered = func() {}
	for _, rule := range f.rules {
		if !rule.matches(r) || rule.Seconds > 0 && rule.over(time.Now()) {
			continue
		}
		if rule.Fault == Overlap && !f.flying[r.Parent] {
			f.flying[r.Parent] = true
			answered = func() { f.land(r.Parent) }
			continue
		}
		rule.Matched++
		switch {
		case rule.Nth > 0 && rule.Matched != rule.Nth,
			rule.Times > 0 && rule.Applied >= rule.Times,
			rule.Probability > 0 && f.random.Float() >= rule.Probability:
			continue
		}
		rule.Applied++
		return &rule.Rule, answered
	}
	return nil, answered
}

func (f *Rules) land(parent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.flying, parent)
}

func (f *Rule) matches(r Request) bool {
	if f.Method != "" && !strings.EqualFold(f.Method, r.Method) {
		return false
	}
	if f.Action != "" && !strings.EqualFold(f.Action, r.Action) {
		return false
	}
	if f.Type != "" && !strings.EqualFold(f.Type, r.Type) {
		return false
	}
	if f.Name == "" {
		return true
	}
	if r.Name == "" {
		return false
	}
	ok, err := path.Match(strings.ToLower(f.Name), strings.ToLower(r.Name))
	return ok && err == nil
}
