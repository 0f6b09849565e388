package shadow

import (
	"context"
	"strings"

	"kaz/internal/cloudprovider/service/explain"
	plan "kaz/internal/plan/shadow"
)

// Services decides what the service controller would change, as kaz explain service --all does.
func Services(inspect func(context.Context) (explain.Explanation, error)) Source {
	return Source{"Services", func(ctx context.Context) ([]plan.Verdict, error) {
		e, err := inspect(ctx)
		if err != nil {
			return nil, err
		}
		return serviceVerdicts(e), nil
	}}
}

// serviceVerdicts gives each step to one verdict: to that of its Service, or of all its Services together.
func serviceVerdicts(e explain.Explanation) []plan.Verdict {
	var all []plan.Verdict
	index := map[string]int{}
	at := func(object string) *plan.Verdict {
		i, ok := index[object]
		if !ok {
			i = len(all)
			index[object] = i
			all = append(all, plan.Verdict{Object: object})
		}
		return &all[i]
	}
	for _, s := range e.Services {
		v := at(s.Service)
		v.Writes = append(v.Writes, s.Kubernetes...)
		if s.State != explain.Refused {
			continue
		}
		for _, p := range s.Problems {
			if !p.Warning {
				v.Refused = p.Message
			}
		}
	}
	for _, step := range e.Steps {
		object := strings.Join(step.For, " and ")
		if object == "" {
			object = "what Services share, or have left"
		}
		v := at(object)
		v.Writes = append(v.Writes, step.Text)
	}
	return all
}
