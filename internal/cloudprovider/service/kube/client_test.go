package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTheStatusIsComparedAsTheAPIServerSpellsIt(t *testing.T) {
	written := []corev1.LoadBalancerIngress{{IP: "20.0.0.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
	if !SameIngress(written, []corev1.LoadBalancerIngress{{IP: "20.0.0.1"}}) {
		t.Error("an address is another one after the API server filled in its mode")
	}
	if SameIngress(written, []corev1.LoadBalancerIngress{{IP: "20.0.0.2"}}) || SameIngress(written, nil) {
		t.Error("different addresses are the same")
	}
}
