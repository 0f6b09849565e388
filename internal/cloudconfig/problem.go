package cloudconfig

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Problem is an error in a configuration.
type Problem struct {
	Key     string // as spelled in the reference; empty for the whole document
	Value   string // the value as JSON; [redacted] for a secret, empty if missing
	Message string // what is wrong and what is allowed
	Source  string // file or Secret, if several sources were read
}

func (p Problem) Error() string {
	var b strings.Builder
	if p.Source != "" {
		b.WriteString(p.Source + ": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value != "" {
			b.WriteString(" " + p.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all errors of a configuration, in the order of the reference.
type Problems []Problem

func (p Problems) Error() string {
	if len(p) == 1 {
		return "cloud config: " + p[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cloud config: %d problems:", len(p))
	for _, one := range p {
		b.WriteString("\n  - " + one.Error())
	}
	return b.String()
}

// err returns nil for an empty list, so that the error interface is nil too.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func (p Problems) names(key string) bool {
	for _, one := range p {
		if one.Key == key {
			return true
		}
	}
	return false
}

// Warning is a mistake that does not prevent the use of a configuration.
type Warning struct {
	Key     string
	Message string
	Source  string
}

func (w Warning) String() string {
	text := w.Message
	if w.Key != "" {
		text = w.Key + ": " + text
	}
	if w.Source != "" {
		text = w.Source + ": " + text
	}
	return text
}

// shorten cuts a long value, so that messages stay readable.
func shorten(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
