package arm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// fault is what an error body says, from the outermost error inwards.
type fault struct {
	codes    []string
	messages []string
	targets  []string
}

// parseFault reads every form in which Azure's providers write errors. The usual form is the object
// {"code","message","target","details"}, bare or wrapped in "error" or "odata.error". A body that cannot be read
// gives an empty fault.
func parseFault(body []byte) fault {
	var tree any
	if json.Unmarshal(body, &tree) != nil {
		return fault{}
	}
	var f fault
	f.add(tree, 0)
	return f
}

func (f *fault) add(tree any, depth int) {
	const deepest = 8
	if depth > deepest {
		return
	}
	if list, ok := tree.([]any); ok {
		for _, x := range list {
			f.add(x, depth+1)
		}
		return
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return
	}
	f.codes = appendText(f.codes, member(object, "code"))
	f.messages = appendText(f.messages, messageText(member(object, "message")))
	f.targets = appendText(f.targets, member(object, "target"))
	for _, inner := range []string{"error", "odata.error", "details", "innererror"} {
		f.add(member(object, inner), depth+1)
	}
}

// messageText is the text of a message, which OData wraps in {"lang","value"}.
func messageText(message any) any {
	if object, ok := message.(map[string]any); ok {
		return member(object, "value")
	}
	return message
}

func appendText(list []string, x any) []string {
	s, _ := x.(string)
	s = strings.TrimSpace(s)
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// member reads a member with a name that some providers capitalise.
func member(object map[string]any, name string) any {
	if x, ok := object[name]; ok {
		return x
	}
	for k, x := range object {
		if strings.EqualFold(k, name) {
			return x
		}
	}
	return nil
}

// failed is the error of a reply. The status is 200 for operations that failed
// after Azure had accepted them.
func (f fault) failed(c call, status int) *azure.Error {
	kind := azure.ClassifyText(status, f.codes, f.messages)
	return &azure.Error{
		Kind:    kind,
		Op:      c.op,
		ID:      c.id,
		Status:  status,
		Code:    f.code(kind),
		Message: f.message(status),
		Target:  f.target(c.id),
	}
}

// code is the innermost code that explains the kind, else the outermost.
func (f fault) code(kind azure.Kind) string {
	for _, code := range slices.Backward(f.codes) {
		if kind != azure.Internal && azure.Classify(0, code) == kind {
			return code
		}
	}
	if len(f.codes) > 0 {
		return f.codes[0]
	}
	return ""
}

func (f fault) message(status int) string {
	if len(f.messages) == 0 && status != 0 && status != http.StatusOK {
		return fmt.Sprintf("HTTP %d %s without an explanation", status, http.StatusText(status))
	}
	const most = 2000
	text := strings.Join(f.messages, "; ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

var idInText = regexp.MustCompile(`(?i)/subscriptions/[^\s'",;<>()\[\]{}?#]+`)

// target is what Azure says is at fault: the innermost target, or else the first id in its messages other than the
// requested resource.
func (f fault) target(asked azure.ID) string {
	if len(f.targets) > 0 {
		return f.targets[len(f.targets)-1]
	}
	for _, message := range f.messages {
		for _, found := range idInText.FindAllString(message, -1) {
			id := azure.ID(strings.TrimRight(found, ".:/"))
			if !id.Equal(asked) {
				return string(id)
			}
		}
	}
	return ""
}
