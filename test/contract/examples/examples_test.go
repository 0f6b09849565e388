package examples_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

var update = flag.Bool("update", false, "write testdata/results.txt anew")

var verbose = flag.String("examples", "^$", "log the misses of the examples whose names match the regular expression")

// verdict is what became of an example.
type verdict struct {
	*call
	misses  []miss
	refused []string
	got     any
	excused []string
	again   []string // what the same request again changes
	tried   bool     // whether it was sent again
}

// leastAgain is how many examples make a resource and are sent again.
const leastAgain = 490

// TestExamples sends the documented examples to the local Azure, each to a new one, and compares the answers with the documented ones.
// At least as many as in testdata/results.txt must pass. To write that file anew:
// go test ./examples -update, and then the command of TestReference in internal/localazure/providers.
func TestExamples(t *testing.T) {
	all := newKnown(build(t).Kinds)
	all.scenes = readScenes(t)
	calls, unread := make([][]*call, len(modules)), make([]int, len(modules))
	for i, m := range modules {
		calls[i], unread[i] = read(t, all.scenes, m.create, m.function)
		for _, c := range calls[i] {
			all.note(c)
		}
	}
	smallest, floors := minimal(t), readResults(t)
	got, needed := make([]result, len(modules)), make([][]string, len(modules))
	t.Run("modules", func(t *testing.T) {
		for i, m := range modules {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				got[i] = result{module: m.name, others: len(calls[i]), unread: unread[i]}
				var verdicts []verdict
				for _, c := range calls[i] {
					if c.target.kind == nil {
						continue
					}
					v := judge(t, all, smallest, c)
					verdicts, needed[i] = append(verdicts, v), append(needed[i], v.excused...)
					got[i].others--
					got[i].all++
					for _, fault := range v.again {
						t.Errorf("%s: %s %s: %.1500s", v.Name, v.sent.method, v.sent.path, fault)
					}
					if v.tried {
						got[i].again++
					}
					if len(v.misses) == 0 {
						got[i].passed++
					}
					if len(v.misses) == 0 && len(v.excused) > 0 {
						got[i].excused++
					}
					if len(v.misses) == 0 && all.scenes[c.Name].corrects() {
						got[i].corrected++
					}
				}
				report(t, verdicts)
				got[i].check(t, floors[m.name])
			})
		}
	})
	for _, mistake := range all.mistakes() {
		if !slices.Contains(slices.Concat(needed...), mistake) {
			t.Errorf("no example needs the mistake %s", mistake)
		}
	}
	sentAgain := 0
	for _, r := range got {
		sentAgain += r.again
	}
	if sentAgain < leastAgain {
		t.Errorf("%d examples were sent again, want at least %d", sentAgain, leastAgain)
	}
	if *update && !t.Failed() {
		writeResults(t, got)
	}
}

// types are the types of every local Azure here. Reading their tables takes longer than an example.
var types = sync.OnceValue(providers.All)

// users are those that examples name.
var users = []behaviour.User{{ObjectID: "a3bb8764-cb92-4276-9d2a-ca1e895e55ea", Name: "User Account", Email: "user@my-tenant.com"}}

func build(t *testing.T) *core.Emulator {
	t.Helper()
	e, err := core.New(core.Options{Providers: types(), Download: download, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// download answers to whatever examples link to: parameters without any, or a template.
func download(_ context.Context, url string) ([]byte, error) {
	if strings.Contains(url, "parameters") {
		return []byte(`{"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#",
			"contentVersion": "1.0.0.0", "parameters": {}}`), nil
	}
	return linkedTemplate, nil
}

//go:embed testdata/template.json
var linkedTemplate []byte

// judge sends an example and compares the answer.
func judge(t *testing.T, all *known, smallest map[string]json.RawMessage, c *call) (v verdict) {
	t.Helper()
	v.call = c
	synctest.Test(t, func(t *testing.T) {
		e := build(t)
		s := &setup{TB: t, known: all, azure: e, minimal: smallest, tried: map[string]bool{},
			wanted: map[string]netip.Addr{}, made: map[string]bool{}, fixed: map[string]bool{}, groups: map[string]bool{}, counts: map[string]int{}, numbers: map[string]int{}}
		s.prepare(c)
		v.refused = s.refused
		result, err := c.do(t.Context(), func(r *http.Request) (*http.Response, error) {
			all.scenes[c.Name].ask(r)
			return e.Transport().RoundTrip(r)
		})
		if err != nil {
			v.misses = []miss{{c.target.kind.Name + " " + c.Client + "." + c.Method, "error: " + firstLines(err)}}
			return
		}
		v.again, v.tried = again(t.Context(), e, c)
		if c.answer.IsValid() {
			compared := comparison{readOnly: c.module.ReadOnly, call: c.Client + "." + c.Method}
			if own := all.scenes[c.Name]; own != nil {
				compared.mistakes = own.mistakes
			}
			sent := c.body()
			if s.made[c.target.id.Key()] && c.sent.method == http.MethodGet {
				sent, compared.made = c.sentBefore(), true
			}
			compared.compare(c.Client+"."+c.Method, c.answer, result.FieldByName(c.Field), sent)
			v.excused = compared.excused
			v.misses, v.got = compared.misses, result.FieldByName(c.Field).Interface()
		}
	})
	return v
}

// firstLines is the part of an error that says what is wrong.
func firstLines(err error) string {
	text := err.Error()
	if _, body, ok := strings.Cut(text, "{"); ok {
		text = body
	}
	return strings.Join(strings.Fields(text), " ")
}

// shown is a value as JSON for the log.
func shown(v reflect.Value) []byte {
	if !v.IsValid() {
		return nil
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// report logs the causes of misses, the most frequent first.
func report(t *testing.T, verdicts []verdict) {
	t.Helper()
	logged, causes := regexp.MustCompile(*verbose), map[string][]string{}
	for _, v := range verdicts {
		for _, mistake := range v.excused {
			cause := "but for " + mistake
			causes[cause] = append(causes[cause], v.Name)
		}
		for _, m := range v.misses {
			cause := m.rule + ": " + m.why
			causes[cause] = append(causes[cause], v.Name)
		}
		if logged.MatchString(v.Name) {
			t.Logf("%s %s %s\n%v but for %q\n%s\nsent: %s\nwant: %s\ngot:  %s", v.Name, v.sent.method, v.sent.path, v.misses,
				v.excused, strings.Join(v.refused, "\n"), v.sent.body, shown(v.answer), shown(reflect.ValueOf(v.got)))
		}
	}
	names := slices.SortedFunc(maps.Keys(causes), func(a, b string) int {
		return len(causes[b]) - len(causes[a])
	})
	var text strings.Builder
	for _, cause := range names {
		fmt.Fprintf(&text, "%4d %.300s (%s)\n", len(causes[cause]), cause, slices.Compact(causes[cause])[0])
	}
	t.Log("\n" + text.String())
}
