package workload

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// TestSetDiscovery checks that machines that join get other authorities, and wait for their signature. The same ones are not written again.
func TestSetDiscovery(t *testing.T) {
	client := fake.NewClientset(configMap("kube-public", "cluster-info", map[string]string{
		"kubeconfig":            "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster: {server: 'https://api', certificate-authority-data: b2xk}\n",
		"jws-kubeconfig-abcdef": "signed", "other": "stays",
	}))
	c := Trust{&Cluster{Client: client}}
	if err := c.SetDiscovery(t.Context(), []byte("old")); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "update" }) {
		t.Error("the same authorities are written again")
	}
	if err := c.SetDiscovery(t.Context(), []byte("old and new")); err != nil {
		t.Fatal(err)
	}
	m, err := client.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	want := base64.StdEncoding.EncodeToString([]byte("old and new"))
	if err != nil || !strings.Contains(m.Data["kubeconfig"], "certificate-authority-data: "+want) || m.Data["other"] != "stays" ||
		!strings.Contains(m.Data["kubeconfig"], "server: https://api") || m.Data["jws-kubeconfig-abcdef"] != "" {
		t.Errorf("%v %v", err, m.Data)
	}
	for _, damaged := range []string{"", "clusters: 3"} {
		c := Trust{&Cluster{Client: fake.NewClientset(configMap("kube-public", "cluster-info", map[string]string{"kubeconfig": damaged}))}}
		if err := c.SetDiscovery(t.Context(), []byte("new")); err == nil || !strings.Contains(err.Error(), "kube-public/cluster-info") {
			t.Errorf("%q: got %v", damaged, err)
		}
	}
}

// TestSetClients checks that API servers of extensions no longer accept clients of other authorities.
func TestSetClients(t *testing.T) {
	client := fake.NewClientset(configMap("kube-system", "extension-apiserver-authentication",
		map[string]string{"client-ca-file": "old and new", "requestheader-client-ca-file": "both", "requestheader-allowed-names": "[]"}))
	if err := (Trust{&Cluster{Client: client}}).SetClients(t.Context(), []byte("new"), []byte("front")); err != nil {
		t.Fatal(err)
	}
	m, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil || m.Data["client-ca-file"] != "new" || m.Data["requestheader-client-ca-file"] != "front" ||
		m.Data["requestheader-allowed-names"] != "[]" {
		t.Errorf("%v %v", err, m.Data)
	}
	if err := (Trust{&Cluster{Client: fake.NewClientset()}}).SetClients(t.Context(), nil, nil); err != nil {
		t.Errorf("before the API server has made it: %v", err)
	}
}

// TestAwaitRoots checks that a wait for the authorities of pods ends when all namespaces have them, and names those that do not get them.
func TestAwaitRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(configMap("kube-system", "kube-root-ca.crt", map[string]string{"ca.crt": "new"}),
			configMap("team", "kube-root-ca.crt", map[string]string{"ca.crt": "old"}), configMap("team", "other", nil),
			configMap("going", "kube-root-ca.crt", map[string]string{"ca.crt": "old"}), &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: "going"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}})
		c, right := Trust{&Cluster{Client: client}}, func(roots []byte) bool { return bytes.Equal(roots, []byte("new")) }
		if err := c.AwaitRoots(t.Context(), time.Minute, right); err == nil || !strings.Contains(err.Error(), "in the namespaces team") {
			t.Errorf("got %v", err)
		}
		later := time.AfterFunc(10*time.Second, func() {
			_, err := client.CoreV1().ConfigMaps("team").Update(t.Context(), configMap("team", "kube-root-ca.crt", map[string]string{"ca.crt": "new"}),
				metav1.UpdateOptions{})
			if err != nil {
				t.Error(err)
			}
		})
		defer later.Stop()
		began := time.Now()
		if err := c.AwaitRoots(t.Context(), time.Minute, right); err != nil || time.Since(began) < 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		wrong, err := Trust{&Cluster{Client: fake.NewClientset()}}.WithoutRoots(t.Context(), right)
		if err != nil || !slices.Equal(wrong, []string{"kube-system"}) {
			t.Errorf("before anything is published: %v %v", wrong, err)
		}
	})
}

// podSince is a pod of a controller on a node. It reads the authorities of its namespace unless it has no volume.
func podSince(name, node, controller string, since time.Time, volume bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", CreationTimestamp: metav1.NewTime(since)},
		Spec: corev1.PodSpec{NodeName: node}}
	if controller != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: controller, Name: "a", Controller: new(true)}}
	}
	if volume {
		p.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}}}}}
	}
	return p
}

// TestRestartPods checks which pods count as older than the authorities of their namespace, and that those are evicted which a controller makes
// again. A disruption budget is heeded and named.
func TestRestartPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		published := time.Now()
		before, after := published.Add(-time.Minute), published.Add(time.Minute)
		roots := configMap("kube-system", "kube-root-ca.crt", nil)
		roots.CreationTimestamp = metav1.NewTime(before.Add(-time.Hour))
		written := metav1.NewTime(published)
		roots.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &written}}
		ended := podSince("ended", "cp-0", "Job", before, true)
		ended.Status.Phase = corev1.PodSucceeded
		objects := []runtime.Object{roots, ended, podSince("proxy", "cp-0", "DaemonSet", before, true),
			podSince("controller", "cp-0", "ReplicaSet", before, true), podSince("new", "cp-0", "ReplicaSet", after, true),
			podSince("mirror", "cp-0", "Node", before, false), podSince("bare", "cp-0", "", before, true),
			podSince("elsewhere", "cp-1", "ReplicaSet", before, true), podSince("waits", "", "ReplicaSet", before, true)}
		client := fake.NewSimpleClientset(objects...)
		var evicted []string
		blocked := 3
		client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			name := a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name
			if name == "controller" && blocked > 0 {
				blocked--
				return true, nil, apierrors.NewTooManyRequests("the disruption budget needs it", 1)
			}
			evicted = append(evicted, name)
			return true, nil, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "kube-system", name)
		})
		c := Trust{&Cluster{Client: client}}
		count, err := c.PodsBeforeRoots(t.Context())
		if err != nil || count["cp-0"] != 2 || count["cp-1"] != 1 || len(count) != 2 {
			t.Fatalf("%v %v", count, err)
		}
		if err := c.RestartPods(t.Context(), "cp-0", time.Minute); err != nil {
			t.Fatal(err)
		}
		slices.Sort(evicted)
		if !slices.Equal(evicted, []string{"controller", "proxy"}) {
			t.Errorf("evicted %v", evicted)
		}
		if err := client.Tracker().Add(podSince("controller", "cp-0", "ReplicaSet", before, true)); err != nil {
			t.Fatal(err)
		}
		blocked = 1000
		err = c.RestartPods(t.Context(), "cp-0", time.Minute)
		if b, ok := errors.AsType[*BlockedError](err); !ok || !strings.Contains(b.Error(), "kube-system/controller: a disruption budget allows") {
			t.Errorf("got %v", err)
		}
	})
}
