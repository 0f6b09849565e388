package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func images(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: name, Image: image}, {Name: "beside", Image: "registry.example.com/beside:v1.0.0"},
	}}}
}

// TestImages checks that kube-proxy and CoreDNS get another tag from the same repository, and which images stay.
func TestImages(t *testing.T) {
	for _, test := range []struct{ dns, want string }{
		{"registry.k8s.io/coredns/coredns:v1.13.1", "registry.k8s.io/coredns/coredns:v1.14.2"},
		{"registry.example.com:5000/coredns:v1.11.3", "registry.example.com:5000/coredns:v1.14.2"},
		{"registry.k8s.io/coredns/coredns:v1.15.0", "registry.k8s.io/coredns/coredns:v1.15.0"}, // a newer one of the user
		{"registry.example.com/coredns:mine", "registry.example.com/coredns:mine"},
		{"registry.example.com/coredns:v1.11.3@sha256:00", "registry.example.com/coredns:v1.11.3@sha256:00"},
	} {
		client := fake.NewClientset(
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "kube-system"},
				Spec: appsv1.DeploymentSpec{Template: images("coredns", test.dns)}},
			&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy", Namespace: "kube-system"},
				Spec: appsv1.DaemonSetSpec{Template: images("kube-proxy", "registry.k8s.io/kube-proxy:v1.35.4")}},
		)
		c := &Cluster{Client: client}
		if err := c.SetProxy(t.Context(), "1.36.3"); err != nil {
			t.Fatal(err)
		}
		if err := c.SetDNS(t.Context(), "v1.14.2", func(tag string) bool { return tag == "v1.15.0" }); err != nil {
			t.Fatal(err)
		}
		dns, err := client.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
		if err != nil || dns.Spec.Template.Spec.Containers[0].Image != test.want ||
			dns.Spec.Template.Spec.Containers[1].Image != "registry.example.com/beside:v1.0.0" {
			t.Errorf("%s: %v %v", test.dns, err, dns.Spec.Template.Spec.Containers)
		}
		proxy, err := client.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
		if err != nil || proxy.Spec.Template.Spec.Containers[0].Image != "registry.k8s.io/kube-proxy:v1.36.3" {
			t.Errorf("%v %v", err, proxy)
		}
	}
	if err := (&Cluster{Client: fake.NewClientset()}).SetDNS(t.Context(), "v1.14.2", nil); err != nil {
		t.Errorf("a cluster without CoreDNS: %v", err)
	}
}
