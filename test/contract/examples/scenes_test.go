package examples_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
)

// scene is what the request of an example needs beyond the resources that it names.
type scene struct {
	// texts are texts of the example that cannot be true, with others that can. Those of literals are no constants of the module.
	texts, literals map[string]string
	// query are parameters that the request forgets, and sent are members of its body, with their values or as the answer has them.
	query url.Values
	sent  []member
	// makes are resources in a certain state. They are made first.
	makes []step
	// mistakes are fields of the documented answer that the answer to this request cannot have, with the reason.
	mistakes map[string]string
	// steps are requests that come before that of the example.
	steps []step
}

type member struct{ path, value string }

type step struct{ method, path, body string }

const scenesFile = "testdata/scenes.txt"

// readScenes reads testdata/scenes.txt. A line at the left margin has the names of examples. The lines below it say what they need.
func readScenes(t *testing.T) map[string]*scene {
	t.Helper()
	text, err := os.ReadFile(scenesFile)
	if err != nil {
		t.Fatal(err)
	}
	all, at := map[string]*scene{}, []*scene(nil)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case line[0] != ' ':
			at = nil
			for _, name := range words {
				if all[name] == nil {
					all[name] = &scene{texts: map[string]string{}, literals: map[string]string{}, mistakes: map[string]string{}, query: url.Values{}}
				}
				at = append(at, all[name])
			}
		default:
			for _, s := range at {
				if !s.add(words) {
					t.Fatalf("%s: %q is not text OLD NEW, query NAME VALUE, sent MEMBER JSON, make PATH JSON, mistake FIELD REASON or METHOD PATH JSON", scenesFile, line)
				}
			}
		}
	}
	return all
}

func (s *scene) add(words []string) bool {
	const least, whole = 2, 3
	if len(words) < least {
		return false
	}
	one := step{words[0], words[1], strings.Join(words[2:], " ")}
	switch words[0] {
	case "text", "literal":
		if len(words) != whole {
			return false
		}
		if words[0] == "text" {
			s.texts[words[1]] = words[2]
		}
		s.literals[words[1]] = words[2]
	case "query":
		s.query.Set(words[1], one.body)
	case "sent":
		s.sent = append(s.sent, member{words[1], one.body})
	case "mistake":
		s.mistakes[words[1]] = one.body
	case "make":
		s.makes = append(s.makes, one)
	default:
		s.steps = append(s.steps, one)
	}
	return true
}

// spelled is a text of the example as it can be true here.
func (s *scene) spelled(text string, constant bool) string {
	switch {
	case s == nil:
	case constant && s.texts[text] != "":
		text = s.texts[text]
	case !constant && s.literals[text] != "":
		text = s.literals[text]
	}
	return spelled(text)
}

// mistakes are those of all examples, with their reasons.
func (a *known) mistakes() (all []string) {
	for rule, why := range mistakes {
		all = append(all, rule[strings.IndexByte(rule, ' ')+1:]+": "+why)
	}
	for _, s := range a.scenes {
		for rule, why := range s.mistakes {
			all = append(all, rule+": "+why)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ask adds the parameters that a request forgets.
func (s *scene) ask(r *http.Request) {
	if s == nil || len(s.query) == 0 {
		return
	}
	all := r.URL.Query()
	maps.Copy(all, s.query)
	r.URL.RawQuery = all.Encode()
}

// complete adds the members to the body that the request forgets: its documented answer has them, and only a client can set them.
func (s *scene) complete(c *call) error {
	if s == nil || len(s.sent) == 0 {
		return nil
	}
	body := c.body()
	if !body.IsValid() {
		body = c.option()
	}
	if !body.IsValid() || !body.CanAddr() {
		return fmt.Errorf("%s: %s has no body", scenesFile, c.Name)
	}
	document, answer := object(body.Interface()), object(c.answer.Interface())
	for _, m := range s.sent {
		value := at(answer, m.path)
		if m.value != "" {
			if err := json.Unmarshal([]byte(m.value), &value); err != nil {
				return fmt.Errorf("%s: %w", m.value, err)
			}
		}
		if value == nil || !set(document, m.path, value) {
			return fmt.Errorf("%s: the answer has no %s, or the request has no place for it", scenesFile, m.path)
		}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, body.Addr().Interface())
}

// option is the body that the options of the call may have, invalid for none.
func (c *call) option() reflect.Value {
	last := c.arguments[len(c.arguments)-1]
	if last.Kind() != reflect.Pointer {
		return reflect.Value{}
	}
	if last.IsNil() {
		last = reflect.New(last.Type().Elem())
		c.arguments[len(c.arguments)-1] = last
	}
	for _, field := range last.Elem().Fields() {
		if field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct {
			if field.IsNil() {
				field.Set(reflect.New(field.Type().Elem()))
			}
			return field.Elem()
		}
	}
	return reflect.Value{}
}

// corrects reports whether the scene changes the example itself.
func (s *scene) corrects() bool {
	return s != nil && len(s.texts)+len(s.literals)+len(s.query)+len(s.sent) > 0
}

// path is the path of a step: {target}, {parent} and {group} stand for the target of the example, what that is in, and its group.
func path(c *call, text string) string {
	group := azure.GroupID(c.target.id.Subscription(), c.target.id.Group())
	return strings.NewReplacer("{target}", string(c.target.id), "{parent}", string(c.target.id.Parent()), "{group}", string(group)).Replace(text)
}

// make makes the resources of a scene: the minimal ones, changed.
func (s *setup) make(c *call, own *scene) {
	for _, one := range own.makes {
		id := azure.ID(path(c, one.path))
		s.group(id)
		s.ensure(id.Parent())
		for _, minimal := range s.candidates(id, nil)[:1] {
			body := merged(minimal, s.object(path(c, one.body)))
			s.references(body, id)
			s.tried[id.Key()] = s.put(id, body)
			s.fixed[id.Key()] = s.tried[id.Key()]
		}
	}
}

// carryOut sends the requests of a scene.
func (s *setup) carryOut(c *call, own *scene) {
	s.Helper()
	for _, one := range own.steps {
		id := azure.ID(path(c, one.path))
		target := id
		if s.kinds.Of(id.Type()) == nil { // an action
			target = id[:strings.LastIndexByte(string(id), '/')]
		}
		status, reply, err := send(s.Context(), s.azure, request{method: one.method, path: string(id), version: s.version(target),
			body: []byte(path(c, one.body))})
		if err != nil {
			s.Fatal(err)
		}
		if status >= 400 {
			s.refused = append(s.refused, one.method+" "+string(id)+": "+string(reply))
		}
	}
}

func (s *setup) object(text string) map[string]any {
	s.Helper()
	object := map[string]any{}
	if text == "" {
		return object
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		s.Fatalf("%s: %s: %v", scenesFile, text, err)
	}
	return object
}

// merged is a document with the changes of a JSON merge patch.
func merged(document, changes map[string]any) map[string]any {
	all := maps.Clone(document)
	for name, change := range changes {
		inner, deep := change.(map[string]any)
		old, has := all[name].(map[string]any)
		switch {
		case deep && has:
			all[name] = merged(old, inner)
		case change == nil:
			delete(all, name)
		default:
			all[name] = change
		}
	}
	return all
}
