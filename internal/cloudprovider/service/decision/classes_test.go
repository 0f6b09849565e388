package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/service/helpers"
)

func service(edits ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func finalized(s *corev1.Service) { s.Finalizers = []string{helpers.LoadBalancerCleanupFinalizer} }
func deleted(s *corev1.Service)   { s.DeletionTimestamp = new(metav1.Now()) }
func clusterIP(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }
func class(name string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.LoadBalancerClass = &name }
}

func TestWhatHasToBeDoneForAServiceNow(t *testing.T) {
	usual, ours := Classes{"", Class}, Classes{Class}
	for name, tc := range map[string]struct {
		classes Classes
		service *corev1.Service
		served  bool
		want    Step
	}{
		"new":                                     {usual, service(), false, Ensure},
		"in place":                                {usual, service(finalized), true, Ensure},
		"of our class":                            {usual, service(class(Class)), false, Ensure},
		"of another class":                        {usual, service(class("other/lb")), false, Ignore},
		"of another class, deleted":               {usual, service(class("other/lb"), finalized, deleted), false, Ignore},
		"without a class, where one is needed":    {ours, service(), false, Ignore},
		"of the class that is needed":             {ours, service(class(Class)), false, Ensure},
		"no load balancer":                        {usual, service(clusterIP), false, Ignore},
		"no load balancer any more":               {usual, service(clusterIP, finalized), false, Remove},
		"no load balancer any more, by others":    {ours, service(clusterIP, finalized), false, Ignore},
		"no load balancer any more, served by us": {ours, service(clusterIP), true, Remove},
		"deleted":                                 {usual, service(finalized, deleted), false, Remove},
		"deleted, and nothing was made":           {usual, service(deleted), false, Ignore},
		"deleted, without its finalizer":          {usual, service(deleted), true, Remove},
		"gone":                                    {usual, nil, true, Remove},
		"gone, and nothing was made":              {usual, nil, false, Ignore},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.classes.Next(tc.service, tc.served); got != tc.want {
				t.Errorf("step %d, want %d", got, tc.want)
			}
		})
	}
}
