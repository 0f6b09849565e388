package fault

import (
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/core/random"
)

// TestSeconds checks that a rule ends after its time.
func TestSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := NewRules(random.New(1))
		if _, err := rules.Add(Rule{Fault: Error, Seconds: 60}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after   time.Duration
			applies bool
		}{{0, true}, {59 * time.Second, true}, {time.Second, false}, {time.Hour, false}} {
			<-time.After(step.after)
			if rule, _ := rules.Pick(Request{Method: "GET"}); (rule != nil) != step.applies {
				t.Errorf("after another %s: %v", step.after, rule)
			}
		}
		if all := rules.All(); all[0].Matched != 2 || all[0].Left(time.Now()) != 0 {
			t.Errorf("rules %+v", all)
		}
	})
	if err := NewRules(random.New(1)).Set([]Rule{{Fault: Error, Seconds: -1}}); err == nil {
		t.Error("a negative time is accepted")
	}
}

// TestFields checks that each member of a rule can be given as a text.
func TestFields(t *testing.T) {
	var rule Rule
	values := map[string]string{"fault": Answer, "method": "GET", "type": "t", "name": "n", "action": "a", "status": "429", "code": "c",
		"message": "m", "retry-after": "1", "seconds": "2", "times": "3", "nth": "4", "probability": "0.5", "path": "p", "value": `[1]`}
	for _, f := range Fields() {
		before := rule
		if err := f.Set(&rule, ""); err != nil {
			t.Errorf("%s: an empty text: %v", f.Name, err)
		}
		if values[f.Name] == "" {
			t.Errorf("%s is not in this test", f.Name)
		}
		if err := f.Set(&rule, values[f.Name]); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Kind != "string" && f.Set(&before, "x") == nil {
			t.Errorf("%s accepts x", f.Name)
		}
	}
	if list, _ := rule.Value.([]any); rule.Status != 429 || rule.Seconds != 2 || rule.Probability != 0.5 || len(list) != 1 {
		t.Errorf("rule %+v", rule)
	}
	if err := rule.check(); err != nil {
		t.Error(err)
	}
}
