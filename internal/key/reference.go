package key

import (
	"fmt"
	"strings"
)

// Reference is docs/reference/annotations.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from internal/key by "go test ./internal/key -update". -->
# Annotations of Services

What the annotations of a Service of type LoadBalancer mean to the cloud-controller-manager. A value that is
not allowed is an event on the Service, which is then left as it is; other Services are not affected. Blanks
around a value do not matter, nor does the case of "true". PORT in a name is a port of the Service in decimal.

| annotation | what it does | allowed | default |
|---|---|---|---|
`)
	for _, e := range ServiceEntries() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, e.Doc, e.Allowed, inDefault(e.Default))
	}
	b.WriteString(`
## Not supported yet

These are known from other controllers. A Service that asks for one of them gets an event with the reason
"Unsupported" and is left as it is.

| annotation | what it asks for |
|---|---|
`)
	for _, u := range UnsupportedEntries() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", u.Name, u.Doc)
	}
	return b.String()
}

func inDefault(text string) string {
	switch text {
	case "", "[]":
		return "none"
	}
	return "`" + text + "`"
}
