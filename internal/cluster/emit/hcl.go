package emit

import (
	"strings"
)

// hcl is the body of a block or an object, in the format of terraform fmt.
type hcl struct{ lines []hclLine }

// hclLine is an attribute, or a block if it has no value.
type hclLine struct{ name, value string }

func (h *hcl) set(name, value string) { h.lines = append(h.lines, hclLine{name, value}) }

// block adds a block with an indented body.
func (h *hcl) block(name, body string) {
	h.lines = append(h.lines, hclLine{name: name + " {\n" + indented(body) + "\n}"})
}

// text has the lines of the body. The signs of neighbours stand below each other, except before a value of several lines.
func (h *hcl) text() string {
	var w strings.Builder
	for i := 0; i < len(h.lines); i++ {
		widest, end := 0, i
		for ; end < len(h.lines) && h.lines[end].aligned(); end++ {
			widest = max(widest, len(h.lines[end].name))
		}
		for ; i < end; i++ {
			l := h.lines[i]
			w.WriteString(indented(l.name+strings.Repeat(" ", widest-len(l.name))+" = "+l.value) + "\n")
		}
		if i < len(h.lines) {
			w.WriteString(indented(h.lines[i].plain()) + "\n")
		}
	}
	return w.String()
}

func (l hclLine) aligned() bool { return l.value != "" && !strings.Contains(l.value, "\n") }

func (l hclLine) plain() string {
	if l.value == "" {
		return l.name
	}
	return l.name + " = " + l.value
}

// object is the body as an expression.
func (h *hcl) object() string {
	if len(h.lines) == 0 {
		return "{}"
	}
	return "{\n" + h.text() + "}"
}

// dedented is a text without the first two spaces of its lines.
func dedented(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n  ", "\n"), "\n")
}

func quote(s string) string { return `"` + s + `"` }

// hclText is a text as Terraform has it.
func hclText(s string) string {
	return quote(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "${", "$${", "%{", "%%{").Replace(s))
}

func hclTexts(all []string) []string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = hclText(s)
	}
	return texts
}

// hclList is a list with one item a line.
func hclList(items []string) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = item + ","
	}
	return enclosed("[", lines, "]")
}

func hclKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return hclText(key)
}

// snake makes the name of a variable of that of a parameter: pki_etcd_ca of pkiEtcdCA.
func snake(name string) string {
	var w strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' && i > 0 && name[i-1] >= 'a' {
			w.WriteByte('_')
		}
		w.WriteString(strings.ToLower(string(r)))
	}
	return w.String()
}
