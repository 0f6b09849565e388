package cloudconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure/secret"
)

// reading is a configuration while it is read, with problems and warnings.
type reading struct {
	config   Config
	source   string
	warnings []Warning
	problems Problems
}

func newReading() *reading { return &reading{config: unread()} }

func (r *reading) warn(key, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{Key: key, Message: fmt.Sprintf(format, args...), Source: r.source})
}

// read decodes a document into the configuration. Keys that the document lacks keep their values.
func (r *reading) read(source string, data []byte) {
	r.source = source
	object, repeated, err := document(data)
	if err != nil {
		r.problems = append(r.problems, Problem{Message: err.Error(), Source: source})
		return
	}
	for _, name := range repeated {
		r.warn(name, "is set more than once; the last value is used")
	}
	byName := map[string]key{}
	for _, k := range allKeys() {
		byName[strings.ToLower(k.name)] = k
	}
	seen := map[string]string{}
	// If spellings differ only in case, the last one in byte order wins: earlier implementations sort
	// the keys before they match them.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		k, known := byName[strings.ToLower(name)]
		if !known {
			r.unknown(name, "", allNames(byName))
			continue
		}
		if other, twice := seen[k.name]; twice {
			r.warn(k.name, "is set as %s and as %s; %s is used", other, name, name)
		}
		seen[k.name] = name
		r.readKey(k, object[name])
	}
}

func (r *reading) readKey(k key, value any) {
	if value == nil {
		return
	}
	if k.inert != "" {
		r.warn(k.name, "has no effect: %s", strings.ReplaceAll(k.inert, "`", ""))
		return
	}
	if quoted, ok := value.(string); ok && k.quoted {
		if quoted == "" {
			return
		}
		if b, err := strconv.ParseBool(quoted); err == nil {
			r.warn(k.name, "%q is read as %t; write it without quotes", quoted, b)
			value = b
		}
	}
	r.decode(k.name, value, k.ref(&r.config))
}

// member is a key of an object inside the configuration. A nil ref: read and
// ignored.
type member struct {
	name string
	ref  any
}

// clientRateLimit is the place of a per-client rate limit.
type clientRateLimit struct {
	config *Config
	name   string
}

// decode puts a value where ref points, or notes why it cannot.
func (r *reading) decode(path string, value, ref any) {
	if value == nil {
		return
	}
	var fits bool
	switch ref := ref.(type) {
	case *string:
		*ref, fits = asText(value, *ref)
	case *secret.Text:
		var text string
		if text, fits = asText(value, ""); fits {
			*ref = secret.New(text)
		}
	case *bool:
		var b bool
		if b, fits = value.(bool); fits {
			*ref = b
		}
	case *int:
		*ref, fits = asInt(value, *ref)
	case *float64:
		*ref, fits = asFloat(value, *ref)
	case *time.Duration:
		var n int
		if n, fits = asInt(value, 0); fits {
			*ref = time.Duration(n) * time.Second
		}
	default:
		fits = r.decodeNested(path, value, ref)
	}
	if !fits {
		shown := describe(value)
		if _, hides := ref.(*secret.Text); hides {
			shown = secret.Redacted
		}
		r.problems = append(r.problems, Problem{Key: path, Value: shown, Message: "wanted " + kindOf(ref), Source: r.source})
	}
}

func (r *reading) decodeNested(path string, value, ref any) bool {
	switch ref := ref.(type) {
	case *map[string]string:
		return r.decodeTexts(path, value, ref)
	case *[]string:
		return decodeList(r, path, value, ref)
	case *[]LabelRequirement:
		return decodeList(r, path, value, ref)
	case *[]LoadBalancer:
		return decodeList(r, path, value, ref)
	case **LabelSelector:
		return decodeOptional(r, path, value, ref)
	case **AuxiliaryTokenProvider:
		return decodeOptional(r, path, value, ref)
	case *clientRateLimit:
		limit := ref.config.ClientRateLimits[ref.name]
		if !r.decodeObject(path, value, limit.members()) {
			return false
		}
		if ref.config.ClientRateLimits == nil {
			ref.config.ClientRateLimits = map[string]RateLimit{}
		}
		ref.config.ClientRateLimits[ref.name] = limit
		return true
	case interface{ members() []member }:
		return r.decodeObject(path, value, ref.members())
	}
	return false
}

func (r *reading) decodeTexts(path string, value any, ref *map[string]string) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	merged := maps.Clone(*ref)
	if merged == nil {
		merged = make(map[string]string, len(object))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var text string
		r.decode(path+"."+name, object[name], &text)
		merged[name] = text
	}
	*ref = merged
	return true
}

func decodeList[T any](r *reading, path string, value any, ref *[]T) bool {
	values, ok := value.([]any)
	if !ok {
		return false
	}
	list := make([]T, len(values))
	for i, element := range values {
		if start, ok := any(&list[i]).(interface{ start() }); ok {
			start.start()
		}
		r.decode(path+"["+strconv.Itoa(i)+"]", element, &list[i])
	}
	*ref = list
	return true
}

func decodeOptional[T any](r *reading, path string, value any, ref **T) bool {
	filled := new(T)
	if *ref != nil {
		*filled = **ref
	}
	inner, ok := any(filled).(interface{ members() []member })
	if !ok || !r.decodeObject(path, value, inner.members()) {
		return false
	}
	*ref = filled
	return true
}

func (r *reading) decodeObject(path string, value any, members []member) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		i := slices.IndexFunc(names, func(known string) bool { return strings.EqualFold(known, name) })
		if i < 0 {
			r.unknown(name, path+".", names)
			continue
		}
		if members[i].ref != nil {
			r.decode(path+"."+members[i].name, object[name], members[i].ref)
		}
	}
	return true
}

func (a *AuxiliaryTokenProvider) members() []member {
	return []member{
		{"subscriptionID", &a.SubscriptionID},
		{"resourceGroup", &a.ResourceGroup},
		{"vaultName", &a.VaultName},
		{"secretName", &a.SecretName},
	}
}

func (l *LoadBalancer) start() { l.AllowServicePlacement = true }

func (l *LoadBalancer) members() []member {
	return []member{
		{"name", &l.Name},
		{"primaryVMSet", &l.PrimaryVMSet},
		{"allowServicePlacement", &l.AllowServicePlacement},
		{"serviceLabelSelector", &l.ServiceLabelSelector},
		{"serviceNamespaceSelector", &l.ServiceNamespaceSelector},
		{"nodeSelector", &l.NodeSelector},
		// Status that programs keep in this shape; it does not come from a file.
		{"activeServices", nil},
		{"activeNodes", nil},
	}
}

func (s *LabelSelector) members() []member {
	return []member{{"matchLabels", &s.MatchLabels}, {"matchExpressions", &s.MatchExpressions}}
}

func (l *LabelRequirement) members() []member {
	return []member{{"key", &l.Key}, {"operator", &l.Operator}, {"values", &l.Values}}
}

// asText takes numbers and truth values too: unquoted in YAML, an id of digits
// is a number.
func asText(value any, otherwise string) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		return strconv.FormatBool(value), true
	}
	return otherwise, false
}

func asInt(value any, otherwise int) (int, bool) {
	f, ok := asFloat(value, 0)
	if !ok || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return otherwise, false
	}
	return int(f), true
}

func asFloat(value any, otherwise float64) (float64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return otherwise, false
	}
	f, err := n.Float64()
	if err != nil {
		return otherwise, false
	}
	return f, true
}

// describe shows a value in a message.
func describe(value any) string {
	switch value.(type) {
	case map[string]any:
		return "(an object)"
	case []any:
		return "(a list)"
	}
	shown, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("(%T)", value)
	}
	return shorten(string(shown))
}
