package resources_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/behaviour"
)

// copies is a template of nested deployments: each makes a number of the next ones, and the last makes identities.
func copies(scope string, counts ...int) string {
	name := fmt.Sprintf("[concat('n%d-', string(copyIndex()))]", len(counts))
	loop := fmt.Sprintf(`,"copy":{"name":"l%d","count":%d}`, len(counts), counts[0])
	if len(counts) == 1 {
		return `{"resources":[` + identityIn(name, loop) + `]}`
	}
	inner := nested(name, loop, copies(scope, counts[1:]...))
	return `{"resources":[` + strings.Replace(inner, `"mode":"Incremental"`,
		`"mode":"Incremental","expressionEvaluationOptions":{"scope":"`+scope+`"}`, 1) + `]}`
}

// Copies of nested deployments are one work. Other requests are answered soon.
func TestNestedCopies(t *testing.T) {
	for _, scope := range []string{"inner", "outer"} {
		for _, do := range []string{"PUT " + deployment, "POST " + deployment + "/validate", "POST " + deployment + "/whatIf"} {
			t.Run(scope+" "+do[strings.LastIndexByte(do, '/')+1:], func(t *testing.T) {
				a := start(t)
				method, path, _ := strings.Cut(do, " ")
				began := time.Now()
				status, header, reply := a.Send(method, path, of(copies(scope, 800, 800, 800), ""))
				if location := header.Get("Location"); status == 202 && location != "" {
					status, _, reply = a.Send("GET", location, "")
				}
				// In the scope outer, copyIndex is that of the outer loop: the copies have one name.
				says := map[string]string{"inner": "computes too much", "outer": "multiple times"}[scope]
				if text := fmt.Sprint(reply); !strings.Contains(text, says) {
					t.Errorf("%d %.400s, want %s", status, text, says)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("refused after %v", took)
				}
				if got := a.Run(exchange{Do: "GET ~"}); behaviour.Text(got, "name") == "" {
					t.Errorf("the group: %v", got)
				}
			})
		}
	}
}

// A large deployment that Azure takes is within the budget.
func TestLargeDeployment(t *testing.T) {
	a := start(t)
	began := time.Now()
	ended(a, of(copies("inner", 3, 3, 20), ""), "Succeeded")
	t.Logf("180 nested identities: %v", time.Since(began))
	began = time.Now()
	ended(a, of(copies("inner", 800), ""), "Succeeded")
	t.Logf("800 identities: %v", time.Since(began))
}
