package service

import (
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/plan"
)

// told is what the owner of a Service has been told about it as it is.
type told struct {
	about    *corev1.Service
	problems map[plan.Problem]bool
}

// news are the problems that were not told yet of the Service as it is. One that
// goes away and comes back is news again, and so is one that a change of the
// Service did not cure.
func (t *told) news(s *corev1.Service, problems []plan.Problem) []plan.Problem {
	if t.about == nil || !sameWish(t.about, s) {
		t.problems = nil
	}
	var fresh []plan.Problem
	standing := make(map[plan.Problem]bool, len(problems))
	for _, p := range problems {
		if !t.problems[p] && !standing[p] {
			fresh = append(fresh, p)
		}
		standing[p] = true
	}
	t.about, t.problems = s, standing
	return fresh
}
