package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// methods are those of requests that rules can match.
var methods = []string{"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"}

// Kind is a kind of [Rule] with what it does to a request.
type Kind struct{ Name, Does string }

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{
		{Error, "the request is refused with the status, the code and the message"},
		{Operation, "the request is accepted, and its operation fails"},
		{Lost, "the request is carried out, and the connection cut instead of a reply"},
		{Stale, "a read returns the document before its last change"},
		{Crash, "as lost; in tests the client's process crashes, too"},
		{Absent, "a read answers that nothing is there"},
		{Overlap, "as error, while another such request below the same parent has no answer"},
		{Drop, "a resource is created without what the request has at the path"},
		{Answer, "a read answers with the value at the path, or with nothing there"},
		{Unconditional, "the request is carried out as if it had no If-Match and no If-None-Match"},
	}
}

func kindNames() (names []string) {
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// kindList is the kinds as the part of a sentence.
func kindList() string { return list(kindNames()) }

func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Field is a member of a rule that users give as a text.
type Field struct {
	// Name is that of the flag, Usage its description.
	Name, Usage string
	// Kind of the value: "int", "float" or "string".
	Kind string
	// Choices are the only values, nil for any.
	Choices []string
	// Set puts a text into a rule. An empty text changes nothing. An error says what is allowed, and does not name the member.
	Set func(r *Rule, text string) error
}

// Fields are the members of rules, for forms and flags.
func Fields() []Field {
	return []Field{
		choice("fault", "what goes wrong: "+kindList(), kindNames(), func(r *Rule) *string { return &r.Fault }),
		choice("method", "method of requests: "+list(methods)+" (default all)", methods, func(r *Rule) *string { return &r.Method }),
		text("type", "type of resources, in full or by its last segments, such as loadBalancers (default all)",
			func(r *Rule) *string { return &r.Type }),
		text("name", "name of resources, with * and ? as in names of files (default all)", func(r *Rule) *string { return &r.Name }),
		text("action", "action of POST requests, such as restart (default all)", func(r *Rule) *string { return &r.Action }),
		number("status", "HTTP status of the error, 400 to 599 (default 500)", func(r *Rule) *int { return &r.Status }),
		text("code", "code of the error (default that of --status)", func(r *Rule) *string { return &r.Code }),
		text("message", "message of the error (default one that names the rule)", func(r *Rule) *string { return &r.Message }),
		number("retry-after", "Retry-After of the error in seconds (default 1 with --status 429, else none)",
			func(r *Rule) *int { return &r.RetryAfter }),
		number("seconds", "how long it applies, in seconds (default without limit)", func(r *Rule) *int { return &r.Seconds }),
		number("times", "how often it applies at most (default without limit)", func(r *Rule) *int { return &r.Times }),
		number("nth", "apply to this one of the matching requests only, 1 is the first (default each)",
			func(r *Rule) *int { return &r.Nth }),
		{"probability", "probability that it applies to a matching request, such as 0.1 (default 1)", "float", nil, setProbability},
		text("path", "with --fault drop or answer, the path in the body, such as properties.ipAddress",
			func(r *Rule) *string { return &r.Path }),
		{"value", "with --fault answer, the JSON at --path (default nothing is there)", "string", nil, setValue},
	}
}

func text(name, usage string, member func(*Rule) *string) Field {
	return Field{name, usage, "string", nil, func(r *Rule, given string) error {
		if given != "" {
			*member(r) = given
		}
		return nil
	}}
}

func choice(name, usage string, choices []string, member func(*Rule) *string) Field {
	f := text(name, usage, member)
	f.Choices = choices
	return f
}

func number(name, usage string, member func(*Rule) *int) Field {
	return Field{name, usage, "int", nil, func(r *Rule, given string) error {
		if given == "" {
			return nil
		}
		n, err := strconv.Atoi(given)
		if err != nil {
			return errors.New("want a whole number")
		}
		*member(r) = n
		return nil
	}}
}

func setProbability(r *Rule, given string) (err error) {
	if given == "" {
		return nil
	}
	if r.Probability, err = strconv.ParseFloat(given, 64); err != nil {
		return errors.New("want a number such as 0.1")
	}
	return nil
}

func setValue(r *Rule, given string) error {
	if given == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(given), &r.Value); err != nil {
		return fmt.Errorf("want JSON, such as 5 or '\"text\"': %w", err)
	}
	return nil
}
