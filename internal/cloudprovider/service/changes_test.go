package service

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
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

func TestWhichChangesOfAServiceMatter(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*corev1.Service)
		same bool
	}{
		"nothing": {func(*corev1.Service) {}, true},
		"status": {func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "20.0.0.1"}}
		}, true},
		"finalizer":  {finalized, true},
		"version":    {func(s *corev1.Service) { s.ResourceVersion = "7" }, true},
		"label":      {func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} }, false},
		"annotation": {func(s *corev1.Service) { s.Annotations = map[string]string{"a": "b"} }, false},
		"port":       {func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Port: 80}} }, false},
		"policy":     {func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }, false},
		"type":       {clusterIP, false},
		"deletion":   {deleted, false},
		"successor":  {func(s *corev1.Service) { s.UID = "2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameSpec(service(), service(tc.edit)); got != tc.same {
				t.Errorf("the same: %v, want %v", got, tc.same)
			}
		})
	}
}

func TestWhichChangesOfANodeMatter(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*corev1.Node)
		same bool
	}{
		"nothing": {func(*corev1.Node) {}, true},
		"not ready": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, true},
		"cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"excluded": {func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: "true"} }, false},
		"to be removed": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		}, false},
		"its machine": {func(n *corev1.Node) { n.Spec.ProviderID = "azure:///x" }, false},
		"its address": {func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.4"}}
		}, false},
		"another pool": {func(n *corev1.Node) { n.Labels = map[string]string{"pool": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			tc.edit(n)
			if got := sameNode(loadbalancer.Config{}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, n); got != tc.same {
				t.Errorf("the same: %v, want %v", got, tc.same)
			}
		})
	}
}

func TestAProblemIsReportedOnce(t *testing.T) {
	bad := plan.Problem{Object: "default/web", Reason: "InvalidAnnotation", Message: "bad"}
	worse := plan.Problem{Object: "default/web", Reason: "InvalidAnnotation", Message: "worse"}
	var h history
	check := func(what string, s *corev1.Service, found, want []plan.Problem) {
		t.Helper()
		h.try(s)
		if d := cmp.Diff(want, h.reported.New(found)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	s := service()
	check("found", s, []plan.Problem{bad, bad}, []plan.Problem{bad})
	check("found again", s, []plan.Problem{bad}, nil)
	check("another one", s, []plan.Problem{bad, worse}, []plan.Problem{worse})
	check("gone", s, nil, nil)
	check("back", s, []plan.Problem{bad}, []plan.Problem{bad})
	changed := service(func(s *corev1.Service) { s.Annotations = map[string]string{"a": "b"} })
	check("not cured by a change", changed, []plan.Problem{bad}, []plan.Problem{bad})
}

// Dashboards know these names from the framework's controller.
func TestMetricsHaveTheNamesThatUsersWatch(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.committed(3, reasons{nodes: true, since: time.Now()}, time.Now(), nil)
	m.committed(3, reasons{nodes: true, since: time.Now()}, time.Now(), errors.New("no"))
	m.committed(2, reasons{}, time.Now(), nil)
	m.committed(2, reasons{}, time.Now(), errors.New("no")) // not for the nodes
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() + float64(f.GetMetric()[0].GetHistogram().GetSampleCount())
	}
	want := map[string]float64{
		"service_controller_loadbalancer_sync_total":                  4,
		"service_controller_nodesync_error_total":                     1,
		"service_controller_nodesync_latency_seconds":                 1,
		"service_controller_update_loadbalancer_host_latency_seconds": 1,
		"kaz_service_commit_services":                                 4,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
