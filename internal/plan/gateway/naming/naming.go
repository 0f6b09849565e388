// Package naming gives names to the children of an application gateway that belong to one cluster. Layer L1.
//
// A name begins with the prefix of its cluster. It ends with a hash of all that tells the child from others, so that
// two children never share a name, and a child keeps its name as long as it stays the same.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Prefix is what the names of a cluster's children begin with: "k8s-1a2b3c4d-".
type Prefix string

// Of returns the prefix of a cluster with an id of 1 to 8 letters and digits.
func Of(cluster string) Prefix { return Prefix("k8s-" + strings.ToLower(cluster) + "-") }

// Short returns the short id of a cluster for [Of]. An identity is any text that differs between clusters.
func Short(identity string) string { return hash(8, identity) }

// Has reports whether a name begins with the prefix. Azure ignores the case of names.
func (p Prefix) Has(name string) bool {
	return len(name) > len(p) && strings.EqualFold(name[:len(p)], string(p))
}

const (
	longest    = 80 // characters of a name that Azure accepts
	hashLength = 10
)

// Child returns the name of a child of a kind, such as "pool". The parts tell it from others of its kind.
func (p Prefix) Child(kind string, parts ...string) string {
	return string(p) + Local(longest-len(p), kind, parts...)
}

// Local returns a name without a prefix and with a greatest length, for what lies inside a child.
func Local(most int, kind string, parts ...string) string {
	readable := strings.Map(inName, kind+"-"+strings.Join(parts, "-"))
	if room := most - hashLength - 1; len(readable) > room {
		readable = readable[:room]
	}
	return strings.Trim(readable, "-") + "-" + hash(hashLength, parts...)
}

// inName returns a character as names have it.
func inName(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
		return r
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	}
	return '-'
}

// hash returns hexadecimal digits that differ for different lists of texts.
func hash(digits int, parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write([]byte(part + "\x00")) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// Content returns a hash of contents, for names that change with them.
func Content(parts ...[]byte) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = string(part)
	}
	return hash(2*hashLength, texts...)
}
