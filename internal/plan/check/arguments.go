package check

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Arguments are the values of the flags of a program, by the name of the flag.
type Arguments map[string][]string

// ArgumentsOf returns the arguments of the components in pods, by program. Of several pods with a program, the newest one counts. Nil
// are those of a program that has no pod.
func ArgumentsOf(pods []v1.Pod) map[string]Arguments {
	pods = slices.SortedStableFunc(slices.Values(pods), func(a, b v1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	all := map[string]Arguments{}
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			if name := imageOf(c.Image).Program; isComponent(name) {
				all[name] = argumentsOf(c)
			}
		}
	}
	return all
}

// argumentsOf reads --name=value and --name value, with one or two hyphens. A flag without a value is true. Variables of the container
// with literal values are replaced.
func argumentsOf(c v1.Container) Arguments {
	values := []string{}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			values = append(values, "$("+e.Name+")", e.Value)
		}
	}
	expand := strings.NewReplacer(values...)
	words := slices.Concat(c.Command, c.Args)
	all := Arguments{}
	for i, word := range words {
		flag, ok := strings.CutPrefix(word, "-")
		if !ok {
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		if !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			value, given = words[i+1], true
		}
		if !given {
			value = "true"
		}
		all[name] = append(all[name], expand.Replace(value))
	}
	return all
}

// Last returns the value of a flag that is given once, "" for one that is not given.
func (a Arguments) Last(flag string) string {
	if all := a[flag]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// List returns the values of a flag that takes lists separated by commas.
func (a Arguments) List(flag string) (all []string) {
	for _, value := range a[flag] {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}
