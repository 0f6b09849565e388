package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/verify/cassette"
)

// compare returns the differences of status, error code and shape. Values are not compared.
func compare(e cassette.Exchange, got answer) (all []Difference) {
	if e.Status != got.status {
		all = append(all, Difference{What: "status", Recorded: fmt.Sprint(e.Status), Local: fmt.Sprint(got.status)})
	}
	recorded, local := code(e.Answer), code(got.body)
	if recorded != local {
		all = append(all, Difference{What: "code", Recorded: or(recorded, "none"), Local: or(local, "none")})
	}
	failed := func(status int) bool { return status >= http.StatusBadRequest }
	if failed(e.Status) || failed(got.status) {
		return all // the shape of errors is that of their provider, and says nothing more
	}
	missing, more := shapes(parse(e.Answer), parse(got.body))
	if missing != "" || more != "" {
		all = append(all, Difference{What: "shape", Recorded: or(missing, "nothing else"), Local: or(more, "nothing else")})
	}
	return all
}

func or(text, otherwise string) string { return cmp.Or(text, otherwise) }

// code is the code of an error, "" for none.
func code(body []byte) string {
	tree, _ := parse(body).(map[string]any)
	if e, ok := tree["error"].(map[string]any); ok {
		tree = e
	}
	text, _ := tree["code"].(string)
	return text
}

// outcome is how an operation ended: by its state, its error code, or its status.
func outcome(status int, body []byte) string {
	tree, _ := parse(body).(map[string]any)
	state, _ := tree["status"].(string)
	if state == "" {
		state = fmt.Sprint(status)
	}
	return strings.TrimSpace(state + " " + code(body))
}

// shapes returns the members that one document has and the other lacks, each with the kind of its value.
func shapes(recorded, local any) (missing, more string) {
	r, l := map[string]string{}, map[string]string{}
	members(recorded, "", r)
	members(local, "", l)
	return beyond(r, l), beyond(l, r)
}

// members notes the kind of each member by its path. Elements of a list count together.
func members(x any, path string, into map[string]string) {
	switch x := x.(type) {
	case map[string]any:
		into[path] = "object"
		for name, v := range x {
			members(v, path+"."+strings.ToLower(name), into)
		}
	case []any:
		into[path] = "list"
		for _, v := range x {
			members(v, path+"[]", into)
		}
	case string:
		into[path] = "text"
	case float64:
		into[path] = "number"
	case bool:
		into[path] = "truth value"
	}
}

// beyond lists the members of a that b has not, or has with another kind. Below a member that b lacks, nothing more is listed.
func beyond(a, b map[string]string) string {
	var lines []string
	lacking := "\x00" // no path begins so
	for _, path := range slices.Sorted(maps.Keys(a)) {
		if a[path] == b[path] || strings.HasPrefix(path, lacking+".") || strings.HasPrefix(path, lacking+"[]") {
			continue
		}
		lacking = path
		lines = append(lines, fmt.Sprintf("%s (%s)", strings.TrimPrefix(path, "."), a[path]))
	}
	const most = 20
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, ", ")
}

// Text prints a result for people, one difference after the other.
func (r Result) Text(w io.Writer) error {
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "%d %s", d.Interaction, d.Request)
		if d.Probe != "" {
			fmt.Fprintf(&b, " (%s)", d.Probe)
		}
		fmt.Fprintf(&b, "\n  %s: recorded %s; local %s\n", d.What, d.Recorded, d.Local)
	}
	for _, line := range r.Skipped {
		fmt.Fprintf(&b, "skipped %s\n", line)
	}
	fmt.Fprintf(&b, "compared: %d, folded: %d, skipped: %d, differences: %d\n", r.Compared, r.Folded, len(r.Skipped), len(r.Differences))
	_, err := io.WriteString(w, b.String())
	return err
}
