package key

import (
	"slices"
	"strings"
)

// Unsupported is a key that users of Azure write and that kaz does not serve yet.
type Unsupported struct {
	Name, Doc string
	// idle reports whether a value asks for nothing.
	idle func(string) bool
}

func isFalse(text string) bool { v, _ := parseSwitch(text); return !v }
func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
func never(string) bool        { return false }

// unsupported is what a Service may ask for in vain. Keys that mean something only
// beside one of these (a subnet beside "internal", the details of a private link)
// have no row of their own.
var unsupported = []Unsupported{
	{service + "azure-pls-create", "A private link service in front of the Service.", isFalse},
}

// UnsupportedEntries are the keys of Services that kaz knows and does not serve
// yet, for the reference.
func UnsupportedEntries() []Unsupported { return slices.Clone(unsupported) }

// FirstUnsupported is the first key of an unserved feature that the annotations
// ask for, in the order of the reference.
func FirstUnsupported(annotations map[string]string) (name, value string, asked bool) {
	for _, u := range unsupported {
		if value, ok := annotations[u.Name]; ok && !u.idle(value) {
			return u.Name, value, true
		}
	}
	return "", "", false
}
