package explain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/naming"
)

// Orphan is what Azure has of a Service that Kubernetes does not have. Drift repair removes it.
type Orphan struct {
	// Service is its namespace and name, as far as anything in Azure tells them.
	Service string `json:"service"`
	// UID is that of the Service as far as names in Azure have it, without dashes. It is
	// empty where other Services have what is left, or nothing names the Service.
	UID   types.UID `json:"uid,omitempty"`
	Parts []Part    `json:"parts,omitempty"`
}

// explainedOrphans are those orphans for which something is to be done.
func explainedOrphans(left []loadbalancer.Service, p plan.Plan, is, after state) []Orphan {
	var all []Orphan
	for _, s := range left {
		l := Orphan{Service: s.Key(), UID: s.UID}
		if s.UID != "" {
			l.Parts = partsOf(s.Service, nil, is, after)
		}
		if len(l.Parts) > 0 || slices.ContainsFunc(p.Steps, func(step plan.Step) bool { return slices.Contains(step.For, l.Service) }) {
			all = append(all, l)
		}
	}
	return all
}

// owner says which Service it was.
func (l Orphan) owner() string {
	switch namespace, name, _ := strings.Cut(l.Service, "/"); {
	case l.UID == "" && namespace == naming.UnknownNamespace:
		return "security rules that lead nowhere"
	case l.UID == "":
		return "Service " + l.Service
	case namespace == naming.UnknownNamespace:
		return "a Service with the base name " + name
	}
	return fmt.Sprintf("Service %s with the UID %s", l.Service, l.UID)
}

func (l Orphan) write(b *strings.Builder) {
	fmt.Fprintf(b, "Left without a Service in Kubernetes: %s; drift repair removes it from Azure\n", l.owner())
	writeParts(b, l.Parts)
	b.WriteByte('\n')
}
