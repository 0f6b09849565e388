package azure

import (
	"fmt"
	"strings"
)

// ID is the identifier of an Azure resource, resource group or subscription, in
// the spelling in which it was first seen:
//
//	/subscriptions/S/resourceGroups/G/providers/Microsoft.Network/loadBalancers/L/probes/P
//
// Azure compares ids without regard to case; use [ID.Equal] and, for map keys,
// [ID.Key]. Ids from outside go through [ParseID]; an ID built by the methods
// below from a parsed one is well formed.
type ID string

const (
	subscriptions  = "subscriptions"
	resourceGroups = "resourceGroups"
	providers      = "providers"
)

// ParseID checks that s follows the ARM id grammar. An id has a subscription, optionally a resource group, and any
// number of sections /providers/NAMESPACE/TYPE/NAME[/TYPE/NAME]... A second section is an extension resource, such as
// a role assignment. Tenant-level ids start with /providers.
func ParseID(s string) (ID, error) {
	if !strings.HasPrefix(s, "/") {
		return "", badID(s, "does not start with /")
	}
	for seg := range strings.SplitSeq(s[1:], "/") {
		if seg == "" {
			return "", badID(s, "has an empty segment")
		}
		if i := strings.IndexFunc(seg, forbiddenInID); i >= 0 {
			return "", badID(s, fmt.Sprintf("has the character %q", []rune(seg[i:])[0]))
		}
	}
	p := split(s)
	switch {
	case p.rest != "":
		return "", badID(s, fmt.Sprintf("has %q where /subscriptions/..., /resourceGroups/... or /providers/... is expected", p.rest))
	case p.odd:
		return "", badID(s, "ends in a keyword or a type without a name")
	case p.scope != "":
		if _, err := ParseID(p.scope); err != nil {
			return "", err
		}
	}
	return ID(s), nil
}

func badID(s, why string) error {
	const most = 300
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Errorf("%q is not an Azure resource id: it %s", s, why)
}

func forbiddenInID(r rune) bool {
	return r < ' ' || r == 0x7f || r == '?' || r == '#' || r == '%' || r == '\\' || r == '\uFFFD'
}

// parts is an id cut at its keywords. The sections are substrings of the id.
type parts struct {
	subscription, group string
	namespace           string // of the last providers section
	typed               string // "type/name/type/name" of the last providers section
	scope               string // what precedes the last providers section
	rest                string // what does not follow the grammar
	odd                 bool   // a type, or a keyword, without its name
}

func split(s string) parts {
	var p parts
	at := 0
	next := func() (string, bool) {
		if at >= len(s) {
			return "", false
		}
		start := at + 1
		end := strings.IndexByte(s[start:], '/')
		if end < 0 {
			end = len(s)
		} else {
			end += start
		}
		at = end
		return s[start:end], true
	}
	keyword := func(word string, into *string) {
		before := at
		if w, ok := next(); !ok || !strings.EqualFold(w, word) {
			at = before
			return
		}
		name, ok := next()
		*into, p.odd = name, !ok
	}
	keyword(subscriptions, &p.subscription)
	if p.subscription != "" {
		keyword(resourceGroups, &p.group)
	}
	if at >= len(s) {
		p.odd = p.odd || s == ""
		return p
	}
	if w, _ := next(); !strings.EqualFold(w, providers) {
		p.rest = w
		return p
	}
	start := at
	at = len(s)
	// The last "/providers/" wins: what stands before it is the scope of an extension.
	if i := lastProviders(s, start); i >= 0 {
		start = i
	}
	p.scope = s[:start-len("/"+providers)]
	section := strings.TrimPrefix(s[start:], "/")
	ns, typed, ok := strings.Cut(section, "/")
	p.namespace, p.typed = ns, typed
	p.odd = p.odd || !ok || strings.Count(typed, "/")%2 == 0
	return p
}

// lastProviders returns the index just behind the last "/providers" keyword that
// starts a section after from, or -1.
func lastProviders(s string, from int) int {
	const word = "/" + providers + "/"
	for i := len(s) - len(word); i > from; i-- {
		if s[i] == '/' && strings.EqualFold(s[i:i+len(word)], word) {
			return i + len(word) - 1
		}
	}
	return -1
}

// SubscriptionID is the id of a subscription.
func SubscriptionID(subscription string) ID {
	return ID("/" + subscriptions + "/" + subscription)
}

// GroupID is the id of a resource group.
func GroupID(subscription, group string) ID {
	return ID("/" + subscriptions + "/" + subscription + "/" + resourceGroups + "/" + group)
}

// Resource is the id of the resource called name of the type fullType, such as
// "Microsoft.Network/loadBalancers", in the scope id.
func (id ID) Resource(fullType, name string) ID {
	return id + ID("/"+providers+"/"+fullType+"/"+name)
}

// Child is the id of a sub-resource: id.Child("probes", "p").
func (id ID) Child(kind, name string) ID { return id + ID("/"+kind+"/"+name) }

// Key is the id in the form in which equal ids are the same string.
func (id ID) Key() string { return strings.ToLower(string(id)) }

// Equal compares as Azure does, without regard to case.
func (id ID) Equal(other ID) bool { return strings.EqualFold(string(id), string(other)) }

// Subscription is the subscription's name, "" for a tenant-level id.
func (id ID) Subscription() string { return split(string(id)).subscription }

// Group is the resource group's name, "" outside of groups.
func (id ID) Group() string { return split(string(id)).group }

// Type is the full type, such as "Microsoft.Network/loadBalancers/probes", in the
// spelling of the id. Resource groups and subscriptions have the types of
// Microsoft.Resources.
func (id ID) Type() string {
	p := split(string(id))
	if p.namespace == "" {
		if p.group != "" {
			return "Microsoft.Resources/resourceGroups"
		}
		return "Microsoft.Resources/subscriptions"
	}
	var b strings.Builder
	b.WriteString(p.namespace)
	isType := true
	for seg := range strings.SplitSeq(p.typed, "/") {
		if isType {
			b.WriteByte('/')
			b.WriteString(seg)
		}
		isType = !isType
	}
	return b.String()
}

// Is reports whether the id is of the full type, without regard to case.
func (id ID) Is(fullType string) bool { return strings.EqualFold(id.Type(), fullType) }

// Namespace is the resource provider, such as "Microsoft.Network".
func (id ID) Namespace() string {
	if ns := split(string(id)).namespace; ns != "" {
		return ns
	}
	return "Microsoft.Resources"
}

// Name is the last name of the id.
func (id ID) Name() string { return string(id[strings.LastIndexByte(string(id), '/')+1:]) }

// NameOf is the name that follows the type segment kind in the last providers
// section ("virtualMachineScaleSets" of an instance's NIC), or "".
func (id ID) NameOf(kind string) string {
	isType, found := true, false
	for seg := range strings.SplitSeq(split(string(id)).typed, "/") {
		if found {
			return seg
		}
		found = isType && strings.EqualFold(seg, kind)
		isType = !isType
	}
	return ""
}

// Parent is the resource that holds a sub-resource, the scope that holds a
// resource, the subscription of a group, and "" of a subscription.
func (id ID) Parent() ID {
	p := split(string(id))
	switch {
	case strings.Count(p.typed, "/") > 1:
		return cutSegments(id, 2)
	case p.namespace != "":
		return ID(p.scope)
	case p.group != "":
		return SubscriptionID(p.subscription)
	}
	return ""
}

// Under reports whether id is ancestor itself or lies below it.
func (id ID) Under(ancestor ID) bool {
	return len(id) >= len(ancestor) &&
		strings.EqualFold(string(id[:len(ancestor)]), string(ancestor)) &&
		(len(id) == len(ancestor) || id[len(ancestor)] == '/')
}

// TopLevel is the resource that a sub-resource belongs to at last: the load
// balancer of a probe. Other ids are returned as they are.
func (id ID) TopLevel() ID {
	if n := strings.Count(split(string(id)).typed, "/"); n > 1 {
		return cutSegments(id, n-1)
	}
	return id
}

func cutSegments(id ID, n int) ID {
	for range n {
		id = id[:strings.LastIndexByte(string(id), '/')]
	}
	return id
}
