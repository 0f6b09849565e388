package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
)

// TypeInfo is a resource type as the documentation lists it.
type TypeInfo struct {
	Name    string
	Family  string
	Verbs   []string
	Actions []string
	Views   []string
	// LatencyOf names the row of the latency table for its writes, "" for its own row.
	LatencyOf string
}

// Types are all resource types this Azure knows, by name.
func (e *Emulator) Types() []TypeInfo {
	infos := make([]TypeInfo, 0, len(e.Kinds))
	for _, k := range e.Kinds {
		infos = append(infos, info(k, e.Latency))
	}
	slices.SortFunc(infos, func(a, b TypeInfo) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return infos
}

func info(k *kind.Kind, latency latency.Model) TypeInfo {
	info := TypeInfo{Name: k.Name, Family: k.Style.Name, Verbs: []string{"GET", "LIST"}}
	if !k.ReadOnly {
		info.Verbs = []string{"PUT", "PATCH", "DELETE", "GET", "LIST"}
		if row := latency.Row(k, behaviour.Create); !strings.EqualFold(row.Type, k.Name) {
			info.LatencyOf = row.Type
		}
	}
	for name := range k.Actions {
		info.Actions = append(info.Actions, name)
	}
	for name := range k.Views {
		info.Views = append(info.Views, name)
	}
	slices.Sort(info.Actions)
	slices.Sort(info.Views)
	return info
}

// Coverage is the list of types as a table in Markdown.
func (e *Emulator) Coverage() string {
	var b strings.Builder
	b.WriteString("| type | verbs | actions | reads below it | latencies of |\n|---|---|---|---|---|\n")
	for _, t := range e.Types() {
		if t.Family == documentFamily {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", t.Name, strings.Join(t.Verbs, " "), strings.Join(t.Actions, ", "),
			strings.Join(t.Views, ", "), strings.ReplaceAll(t.LatencyOf, "*", `\*`))
	}
	return b.String()
}

// documentFamily is the family of the types that are documents and nothing else.
const documentFamily = "documents"

// Documents are the types that are documents and nothing else, as a list in Markdown with a line for each provider.
func (e *Emulator) Documents() string {
	var b strings.Builder
	provider := ""
	for _, t := range e.Types() {
		if t.Family != documentFamily {
			continue
		}
		namespace, name, _ := strings.Cut(t.Name, "/")
		if strings.EqualFold(namespace, provider) {
			fmt.Fprintf(&b, ", `%s`", name)
			continue
		}
		if provider != "" {
			b.WriteByte('\n')
		}
		provider = namespace
		fmt.Fprintf(&b, "* %s: `%s`", namespace, name)
	}
	return b.String()
}

// Routes are the requests that are to no resource of a type, as a list in Markdown.
func (e *Emulator) Routes() string {
	lines := make([]string, len(e.routes))
	for i, r := range e.routes {
		lines[i] = fmt.Sprintf("* `%s %s`\n", r.Method, r.Pattern)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// LatencyTable is the table of latencies in Markdown, with a mark at figures that
// were taken from a similar type or verb.
func LatencyTable() (string, error) {
	table, err := catalog.ReadLatencies()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| type | verb | reply, median / p90 (s) | then, median / p90 (s) | |\n|---|---|---|---|---|\n")
	for _, row := range table.All() {
		mark := ""
		if row.Nearest {
			mark = "nearest"
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f / %.1f | %.1f / %.1f | %s |\n", row.Type, row.Verb,
			row.Reply.Median.Seconds(), row.Reply.P90.Seconds(), row.Operation.Median.Seconds(), row.Operation.P90.Seconds(), mark)
	}
	return b.String(), nil
}
