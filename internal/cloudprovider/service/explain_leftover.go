package service

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// Leftover is what Azure has of a Service that Kubernetes does not have, and that drift
// repair takes away.
type Leftover struct {
	// Service is its namespace and name, as far as anything in Azure tells them.
	Service string `json:"service"`
	// UID is that of the Service as far as names in Azure have it, without dashes. It is
	// empty where other Services have what is left, or nothing tells whose it was.
	UID   types.UID `json:"uid,omitempty"`
	Parts []Part    `json:"parts,omitempty"`
}

// explainedLeftovers are those leftovers for which something is to be done.
func explainedLeftovers(left []loadbalancer.Service, p plan.Plan, is world, next foresight) ([]Leftover, error) {
	var all []Leftover
	for _, s := range left {
		l := Leftover{Service: s.Key(), UID: s.UID}
		if s.UID != "" {
			var err error
			if l.Parts, err = (owned{service: s.Service}).parts(is, next.shall); err != nil {
				return nil, err
			}
		}
		if len(l.Parts) > 0 || slices.ContainsFunc(p.Steps, func(step plan.Step) bool { return slices.Contains(step.For, l.Service) }) {
			all = append(all, l)
		}
	}
	return all, nil
}

// who says whose it was.
func (l Leftover) who() string {
	switch namespace, name, _ := strings.Cut(l.Service, "/"); {
	case l.UID == "" && namespace == loadbalancer.Nobody:
		return "security rules that lead nowhere"
	case l.UID == "":
		return "Service " + l.Service
	case namespace == loadbalancer.Nobody:
		return "a Service with the base name " + name
	}
	return fmt.Sprintf("Service %s with the UID %s", l.Service, l.UID)
}

func (l Leftover) write(b *strings.Builder) {
	fmt.Fprintf(b, "Left without a Service in Kubernetes: %s; it is taken out of Azure by drift repair\n", l.who())
	writeParts(b, l.Parts)
	b.WriteByte('\n')
}
