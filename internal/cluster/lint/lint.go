// Package lint checks generated templates against the limits of Azure Resource Manager, and artefacts for secrets, before
// anything is sent. Layer L1: pure.
package lint

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"kaz/internal/azure"
	"kaz/internal/cluster/limit"
	"kaz/internal/template/expression"
)

// The limits of Azure Resource Manager.
const (
	MostParameters  = 256
	MostResources   = 800
	MostOutputs     = 64
	MostExpression  = 24576
	MostTemplate    = 4 << 20
	MostResource    = 1 << 20
	MostCustomData  = 87380 // characters of base64, which is 65,535 bytes
	MostDeployments = 800
	MostNested      = 5
)

type object = map[string]any

// Template returns what Azure would refuse in a template, with its nested templates.
func Template(name string, t object) []string {
	l := &linter{}
	l.template(name, t, 0)
	return l.found
}

type linter struct{ found []string }

func (l *linter) add(format string, args ...any) {
	l.found = append(l.found, fmt.Sprintf(format, args...))
}

func (l *linter) limit(where, what string, n, most int) {
	if n > most {
		l.add("%s: has %d %s, want at most %d", where, n, what, most)
	}
}

func size(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(text)
}

func (l *linter) template(where string, t object, depth int) {
	if depth > MostNested {
		l.add("%s: is nested more than %d deep", where, MostNested)
		return
	}
	l.limit(where, "bytes", size(t), MostTemplate)
	parameters, _ := t["parameters"].(object)
	outputs, _ := t["outputs"].(object)
	resources, _ := t["resources"].([]any)
	l.limit(where, "parameters", len(parameters), MostParameters)
	l.limit(where, "outputs", len(outputs), MostOutputs)
	l.limit(where, "resources", len(resources), MostResources)
	for _, item := range resources {
		r, _ := item.(object)
		at := fmt.Sprintf("%s: %v %v", where, r["type"], r["name"])
		if strings.EqualFold(fmt.Sprint(r["type"]), "Microsoft.Resources/deployments") {
			if n := len(fmt.Sprint(r["name"])); n > 64 {
				l.limit(at, "characters in its name", n, 64)
			}
			properties, _ := r["properties"].(object)
			if inner, ok := properties["template"].(object); ok {
				l.template(at, inner, depth+1)
			}
			continue
		}
		l.resource(at, r)
	}
}

func (l *linter) resource(where string, r object) {
	l.limit(where, "bytes", size(r), MostResource)
	l.name(where, fmt.Sprint(r["type"]), fmt.Sprint(r["name"]))
	l.tags(where, r)
	l.machine(where, r)
	expression.Visit(r, func(path string, _ expression.Expression, err error) {
		if err != nil {
			l.add("%s: %s: %v", where, path, err)
		}
	})
	walk(r, "", func(path, text string) {
		switch {
		case isExpression(text):
			l.limit(where+": "+path, "characters in an expression", len(text), MostExpression)
		case strings.HasSuffix(path, ".customData"):
			l.limit(where+": "+path, "characters", len(text), MostCustomData)
		}
	})
}

// isExpression reports whether only Azure knows a text.
func isExpression(text string) bool {
	return strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "[[")
}

func (l *linter) tags(where string, r object) {
	tags, ok := r["tags"].(object)
	if !ok {
		return
	}
	fullType := fmt.Sprint(r["type"])
	l.limit(where, "tags", len(tags), limit.MostTags(fullType))
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if want := limit.TagName(fullType, key); want != "" && !isExpression(key) {
			l.add("%s: the tag %q is not valid: want %s", where, key, want)
		}
		if value := fmt.Sprint(tags[key]); !isExpression(value) {
			l.limit(where+": tag "+key, "characters in its value", utf8.RuneCountInString(value), azure.LongestTagValue)
		}
		if other, had := seen[strings.ToLower(key)]; had {
			l.add("%s: the tags %s and %s differ in letter case only: want one of both", where, other, key)
		}
		seen[strings.ToLower(key)] = key
	}
}

// machine checks the user of a machine or of a scale set's machines, and the keys.
func (l *linter) machine(where string, r object) {
	properties, _ := r["properties"].(object)
	if profile, ok := properties["virtualMachineProfile"].(object); ok {
		properties = profile
	}
	profile, ok := properties["osProfile"].(object)
	if !ok {
		return
	}
	if user, _ := profile["adminUsername"].(string); limit.AdminUser(user) != "" {
		l.add("%s: adminUsername: %q: want %s", where, user, limit.AdminUser(user))
	}
	linux, _ := profile["linuxConfiguration"].(object)
	ssh, _ := linux["ssh"].(object)
	keys, _ := ssh["publicKeys"].([]any)
	for i, item := range keys {
		key, _ := item.(object)
		if text, _ := key["keyData"].(string); !isExpression(text) && limit.SSHKey(text) != "" {
			l.add("%s: ssh.publicKeys[%d]: %.40q: want %s", where, i, text, limit.SSHKey(text))
		}
	}
}

func walk(v any, path string, visit func(path, text string)) {
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], path+"."+key, visit)
		}
	case []any:
		for i, item := range v {
			walk(item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case string:
		visit(path, v)
	}
}

// name is a rule for names of a type.
type name struct {
	pattern *regexp.Regexp
	says    string
}

var names = sync.OnceValue(func() map[string]name {
	network := name{regexp.MustCompile(`^[A-Za-z0-9]([-\w.]{0,78}\w)?$`), "1 to 80 letters, digits, '-', '_' and '.'"}
	return map[string]name{
		"Microsoft.Storage/storageAccounts": rule(`^[a-z0-9]{3,24}$`, "3 to 24 small letters and digits"),
		"Microsoft.KeyVault/vaults": rule(`^[A-Za-z](-?[A-Za-z0-9]){2,23}$`,
			"3 to 24 letters, digits and single '-'"),
		"Microsoft.KeyVault/vaults/secrets": rule(`^[-A-Za-z0-9]{1,127}$`, "1 to 127 letters, digits and '-'"),
		"Microsoft.ManagedIdentity/userAssignedIdentities": rule(`^[A-Za-z0-9][-\w]{2,127}$`,
			"3 to 128 letters, digits, '-' and '_'"),
		"Microsoft.Compute/virtualMachines": rule(`^[A-Za-z0-9]([-A-Za-z0-9]{0,62}[A-Za-z0-9])?$`,
			"1 to 64 letters, digits and '-'"),
		"Microsoft.Compute/virtualMachineScaleSets": rule(`^[A-Za-z0-9]([-A-Za-z0-9]{0,56}[A-Za-z0-9])?$`,
			"1 to 58 letters, digits and '-'"),
		"Microsoft.Compute/disks": rule(`^\w[-\w]{0,79}$`, "1 to 80 letters, digits, '-' and '_'"),
		"Microsoft.Storage/storageAccounts/blobServices/containers": rule(`^[a-z0-9](-?[a-z0-9]){2,62}$`,
			"3 to 63 small letters, digits and single '-'"),
		"Microsoft.Network/virtualNetworks":       network,
		"Microsoft.Network/networkSecurityGroups": network,
		"Microsoft.Network/loadBalancers":         network,
		"Microsoft.Network/publicIPAddresses":     network,
		"Microsoft.Network/natGateways":           network,
		"Microsoft.Network/networkInterfaces":     network,
		"Microsoft.Network/routeTables":           network,
	}
})

func rule(pattern, says string) name { return name{regexp.MustCompile(pattern), says} }

func (l *linter) name(where, fullType, text string) {
	last := text[strings.LastIndexByte(text, '/')+1:]
	if allowed, has := names()[fullType]; has && !allowed.pattern.MatchString(last) {
		l.add("%s: the name %q is not valid: want %s", where, last, allowed.says)
	}
}

// Secrets returns the names of the artefacts that contain a secret. It finds a secret as plain text, and in base64,
// hexadecimal or percent encoding. It also looks into the compressed or encoded parts of an artefact.
func Secrets(artefacts map[string][]byte, secrets map[string][]byte) []string {
	encodings := make(map[string][][]byte, len(secrets))
	for name, secret := range secrets {
		encodings[name] = forms(secret)
	}
	names := slices.Sorted(maps.Keys(secrets))
	var found []string
	for _, file := range slices.Sorted(maps.Keys(artefacts)) {
		texts := decoded(artefacts[file], 0)
		for _, name := range names {
			if containsAny(texts, encodings[name]) {
				found = append(found, fmt.Sprintf("%s contains the secret %s", file, name))
			}
		}
	}
	return found
}

func containsAny(texts, forms [][]byte) bool {
	return slices.ContainsFunc(texts, func(text []byte) bool {
		return slices.ContainsFunc(forms, func(form []byte) bool { return bytes.Contains(text, form) })
	})
}

// deepest is how often encodings are undone.
const deepest = 4

// decoded returns a text, and what is in its compressed or encoded parts.
func decoded(text []byte, depth int) [][]byte {
	all := [][]byte{text}
	if depth == deepest {
		return all
	}
	if plain, err := gunzip(text); err == nil {
		all = append(all, decoded(plain, depth+1)...)
	}
	for _, part := range encodedParts(text) {
		if plain, err := base64.StdEncoding.DecodeString(string(part)); err == nil {
			all = append(all, decoded(plain, depth+1)...)
		}
	}
	return all
}

// shortestEncoded is the shortest run of characters that may be base64.
const shortestEncoded = 24

// encodedParts returns the runs of characters of base64, with their padding. A regular expression took a third of the time of a
// deployment in tests.
func encodedParts(text []byte) (all [][]byte) {
	for from := 0; from < len(text); from++ {
		to := from
		for to < len(text) && isBase64[text[to]] {
			to++
		}
		if to-from >= shortestEncoded {
			end := to
			for end < len(text) && end < to+2 && text[end] == '=' {
				end++
			}
			all = append(all, text[from:end])
		}
		from = to
	}
	return all
}

var isBase64 = func() (is [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		is[c] = true
	}
	return is
}()

// forms are the encodings of a secret. Base64 shifts with what stands before it, so it has three forms without its ends.
func forms(secret []byte) [][]byte {
	all := [][]byte{secret, []byte(hex.EncodeToString(secret))}
	escaped := url.QueryEscape(string(secret))
	all = append(all, []byte(escaped), []byte(strings.ReplaceAll(escaped, "+", "%20"))) // as in forms, and as in paths and data URLs
	if escaped, err := json.Marshal(string(secret)); err == nil {
		all = append(all, escaped[1:len(escaped)-1])
	}
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		if len(text) > 12 {
			all = append(all, []byte(text[4:len(text)-4]))
		}
	}
	return all
}

func gunzip(text []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, 16<<20))
}
