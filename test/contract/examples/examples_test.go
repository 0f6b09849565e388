package examples_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

var verbose = flag.String("examples", "", "log the misses of the examples whose names begin with it")

// verdict is what became of an example.
type verdict struct {
	*call
	misses  []miss
	refused []string
}

// TestExamples sends the documented examples to the local Azure, each to a new one, and compares the answers with the documented ones.
func TestExamples(t *testing.T) {
	kinds := build(t).Kinds
	all := newKnown(kinds)
	calls, unread := make([][]*call, len(modules)), make([]int, len(modules))
	for i, m := range modules {
		calls[i], unread[i] = read(t, m.create, m.function)
		for _, c := range calls[i] {
			all.note(c)
		}
	}
	smallest := minimal(t)
	for i, m := range modules {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			var verdicts []verdict
			for _, c := range calls[i] {
				if c.target.kind != nil {
					verdicts = append(verdicts, judge(t, all, smallest, c))
				}
			}
			report(t, verdicts)
			passed := 0
			for _, v := range verdicts {
				if len(v.misses) == 0 {
					passed++
				}
			}
			t.Logf("%s: %d of %d pass, %.1f %%; %d of other types, %d unread", m.name, passed, len(verdicts),
				100*float64(passed)/float64(max(len(verdicts), 1)), len(calls[i])-len(verdicts), unread[i])
			if passed < m.passed || len(verdicts) < m.all {
				t.Errorf("%d of %d pass, want at least %d of %d", passed, len(verdicts), m.passed, m.all)
			}
		})
	}
}

// types are the types of every local Azure here. Reading their tables takes longer than an example.
var types = sync.OnceValue(providers.All)

func build(t *testing.T) *core.Emulator {
	t.Helper()
	e, err := core.New(core.Options{Providers: types(), Download: download})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// download answers an empty template to whatever examples link to.
func download(context.Context, string) ([]byte, error) {
	return []byte(`{"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "contentVersion": "1.0.0.0",
		"resources": []}`), nil
}

// judge sends an example and compares the answer.
func judge(t *testing.T, all *known, smallest map[string]json.RawMessage, c *call) (v verdict) {
	t.Helper()
	v.call = c
	synctest.Test(t, func(t *testing.T) {
		e := build(t)
		s := &setup{TB: t, known: all, azure: e, minimal: smallest, tried: map[string]bool{},
			made: map[string]bool{}, counts: map[string]int{}, numbers: map[string]int{}}
		s.prepare(c)
		v.refused = s.refused
		result, err := c.do(t.Context(), func(r *http.Request) (*http.Response, error) { return e.Transport().RoundTrip(r) })
		if err != nil {
			v.misses = []miss{{c.target.kind.Name + " " + c.Client + "." + c.Method, "error: " + firstLines(err)}}
			return
		}
		if c.answer.IsValid() {
			compared := comparison{readOnly: c.module.ReadOnly}
			sent := c.body()
			if s.made[c.target.id.Key()] && c.sent.method == http.MethodGet {
				sent, compared.made = c.answer, true
			}
			compared.compare(c.Client+"."+c.Method, c.answer, result.FieldByName(c.Field), sent)
			v.misses = compared.misses
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

var idText = regexp.MustCompile(`(?i)/subscriptions/[^ "']+`)

// report logs the causes of misses, the most frequent first.
func report(t *testing.T, verdicts []verdict) {
	t.Helper()
	causes := map[string][]string{}
	for _, v := range verdicts {
		for _, m := range v.misses {
			cause := m.rule + ": " + m.why
			if len(v.misses) == 1 {
				cause = "alone " + cause
			}
			causes[cause] = append(causes[cause], v.Name)
		}
		if *verbose != "" && strings.HasPrefix(v.Name, *verbose) {
			t.Logf("%s %s %s\n%v\n%s", v.Name, v.sent.method, v.sent.path, v.misses, strings.Join(v.refused, "\n"))
		}
	}
	for _, v := range verdicts {
		if len(v.misses) == 0 {
			continue
		}
		for _, r := range v.refused {
			cause := "setup " + idText.ReplaceAllString(strings.Join(strings.Fields(r), " "), "ID")
			causes[cause] = append(causes[cause], v.Name)
		}
	}
	names := slices.SortedFunc(maps.Keys(causes), func(a, b string) int {
		return len(causes[b]) - len(causes[a])
	})
	var text strings.Builder
	for _, cause := range names {
		fmt.Fprintf(&text, "%4d %.300s (%s)\n", len(causes[cause]), cause, slices.Compact(causes[cause])[0])
	}
	t.Log(text.String())

}
