package cloudconfig

import (
	"math"
	"time"

	"kaz/internal/azure/secret"
)

// key is one row of the table: everything about a key of azure.json.
type key struct {
	name    string
	doc     string
	initial string   // default, as written in the file
	shown   string   // default in words, if it depends on another key
	allowed []string // empty if any text is allowed
	exact   bool     // allowed values are compared with case
	min     float64  // for numbers
	max     float64
	quoted  bool   // earlier versions also accepted "true" and "false"
	inert   string // why the key has no effect, or ""
	// ref returns the field of the Config that the key sets; its type determines the allowed values.
	// It is nil for an inert key, which accepts any value.
	ref func(*Config) any
}

// section is a section of the reference.
type section struct {
	title string
	keys  []key
}

func text(name string, field func(*Config) *string, doc string) key {
	return key{name: name, doc: doc, ref: func(c *Config) any { return field(c) }}
}

func hidden(name string, field func(*Config) *secret.Text, doc string) key {
	return key{name: name, doc: doc, ref: func(c *Config) any { return field(c) }}
}

func boolean(name string, field func(*Config) *bool, doc string) key {
	return key{name: name, doc: doc, initial: "false", ref: func(c *Config) any { return field(c) }}
}

func integer(name string, field func(*Config) *int, doc string) key {
	return key{name: name, doc: doc, max: math.MaxInt32, ref: func(c *Config) any { return field(c) }}
}

func number(name string, field func(*Config) *float64, doc string) key {
	return key{name: name, doc: doc, max: math.MaxInt32, ref: func(c *Config) any { return field(c) }}
}

func seconds(name string, field func(*Config) *time.Duration, doc string) key {
	return key{name: name, doc: doc, max: math.MaxInt32, ref: func(c *Config) any { return field(c) }}
}

func object(name string, field func(*Config) any, doc string) key {
	return key{name: name, doc: doc, ref: field}
}

// inert returns a key that users set and that has no effect.
func inert(name, why string) key { return key{name: name, inert: why} }

// clientLimit returns the rate limit object of a client.
func clientLimit(name string) key {
	return key{
		name: name,
		doc:  "Rate limit of " + limitedTypes(name) + " instead of the general one; an object with the five keys above.",
		ref:  func(c *Config) any { return &clientRateLimit{config: c, name: name} },
	}
}

func (k key) or(initial string) key { k.initial = initial; return k }

func (k key) orElse(words string) key { k.shown = words; return k }

func (k key) oneOf(allowed ...string) key { k.allowed = allowed; return k }

func (k key) exactly(allowed ...string) key { k.allowed, k.exact = allowed, true; return k }

func (k key) between(low, high float64) key { k.min, k.max = low, high; return k }

func (k key) orQuoted() key { k.quoted = true; return k }

// kind returns the type of the key's values in words.
func (k key) kind() string {
	if k.ref == nil {
		return "anything"
	}
	return kindOf(k.ref(&Config{}))
}

func kindOf(ref any) string {
	switch ref.(type) {
	case *string, *secret.Text:
		return "text"
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *float64:
		return "a number"
	case *time.Duration:
		return "a whole number of seconds"
	case *map[string]string:
		return "an object of texts"
	case *[]string:
		return "a list of texts"
	case *[]LoadBalancer, *[]LabelRequirement:
		return "a list of objects"
	default:
		return "an object"
	}
}

func (k key) secret() bool {
	if k.ref == nil {
		return false
	}
	_, is := k.ref(&Config{}).(*secret.Text)
	return is
}

// allKeys returns the keys of all sections.
func allKeys() []key {
	var all []key
	for _, s := range sections() {
		all = append(all, s.keys...)
	}
	return all
}
