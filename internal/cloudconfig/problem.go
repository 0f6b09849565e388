package cloudconfig

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Problem is one thing in a configuration that must be put right.
type Problem struct {
	Key     string // as the reference spells it; empty when the whole document is meant
	Value   string // what was found, as JSON; [redacted] for a secret, empty when nothing was there
	Message string // what is wrong and what is allowed
	Source  string // where it stood, when more than one place was read
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

// Problems is every problem that was found, in the order of the reference.
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

// err keeps a nil list from becoming an error that is not nil.
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

// Warning is something that was accepted but that its author should know.
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

// shorten keeps a message readable when somebody pasted a file into a value.
func shorten(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
