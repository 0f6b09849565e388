package decision

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/reconcile"
)

// searchesAtMost bounds how often one orphan that is found leads to a search for more.
const searchesAtMost = 3

// Listing asks Kubernetes for all Services.
type Listing func(ctx context.Context) ([]*corev1.Service, error)

// WithOrphans adds what deleted Services have left in Azure to the Services.
func (in Target) WithOrphans(ctx context.Context, r azure.Reader, all Listing) (Target, error) {
	services := slices.Clip(in.Services)
	for range searchesAtMost {
		left, err := in.orphans(ctx, r, all, services)
		if err != nil {
			return in, err
		}
		same := len(services)+len(left) == len(in.Services)
		if in.Services = slices.Concat(services, left); same {
			break
		}
	}
	return in, nil
}

func (in Target) orphans(ctx context.Context, r azure.Reader, list Listing,
	services []loadbalancer.Service) ([]loadbalancer.Service, error) {
	// First Azure and then Kubernetes: what was made for a Service was made after it, so
	// the Service is in the list, or deleted.
	have, err := reconcile.Gather(ctx, r, in.Needs)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx)
	if err != nil {
		return nil, err
	}
	all = append(slices.DeleteFunc(all, func(s *corev1.Service) bool { return !mayHaveAny(s) }), in.Others...)
	for _, s := range services {
		all = append(all, s.Service)
	}
	left, err := leftover.Find(in.Config, have, all)
	// Security rules that lead nowhere may be of other controllers, and are compared with any
	// Service.
	if !in.Complete || len(services) > 0 {
		left = slices.DeleteFunc(left, IsRulesAlone)
	}
	return left, err
}

// IsRulesAlone reports whether what is left is security rules of which not even a base
// name is known.
func IsRulesAlone(s loadbalancer.Service) bool {
	return s.UID == "" && s.Namespace == naming.UnknownNamespace
}

// mayHaveAny reports whether anything of a Service can be in Azure, whichever controller serves
// it.
func mayHaveAny(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer || helpers.HasLBFinalizer(s)
}
