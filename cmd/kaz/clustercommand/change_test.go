package clustercommand

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/client"
)

// apiServer answers for the nodes of a cluster of one member and two nodes of a pool, and returns a kubeconfig for it.
func apiServer(t *testing.T) string {
	t.Helper()
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	for _, name := range []string{"dev-cp-0", "dev-general000000", "dev-general000001"} {
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	pods.Items = append(pods.Items, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-dev-cp-0", Namespace: "kube-system",
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
		Spec:   corev1.PodSpec{NodeName: "dev-cp-0"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	answers := map[string]any{
		"/api/v1/namespaces/kube-system/pods": &corev1.PodList{},
		"/api/v1/nodes":                       nodes, "/api/v1/pods": pods, "/apis/storage.k8s.io/v1/volumeattachments": &storagev1.VolumeAttachmentList{},
		"/api/v1/namespaces/kube-system/configmaps/kubeadm-config": &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config", Namespace: "kube-system"},
			Data:       map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, has := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodGet: // as for an identity with the right to read only
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: r.URL.Path}
		case !has:
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: r.URL.Path}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "api.conf")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestClusterChanges shows the steps of changes, and what the commands refuse.
func TestClusterChanges(t *testing.T) {
	examples, err := filepath.Abs(exampleDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	startAzure(t)
	write := func(name string, replace ...string) {
		text, err := os.ReadFile(filepath.Join(examples, "dev.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer(append(replace, "spec: {replicas: 1, zones: []}", "spec: {replicas: 2, zones: []}")...).Replace(string(text))
		if err := os.WriteFile(name, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dev.yaml")
	write("upgraded.yaml", "1.36.3", "1.37.1")
	write("scaled.yaml", "spec: {replicas: 1, zones: []}", "spec: {replicas: 2, zones: [], autoscaling: {min: 1, max: 4}}")
	api := apiServer(t)
	for _, step := range []struct {
		args   string
		status int
		out    string
		errs   string
	}{
		{args: "deploy dev.yaml --local --kubeconfig admin.conf", out: "cluster dev is deployed"},
		{args: "scale dev general --count 1 --local --kubeconfig API --dry-run",
			out: "cordon nodes of pool general dev-general000000\ndrain node general dev-general000000\ndelete node general dev-general000000\n3 steps"},
		{args: "scale dev general --count 3 --local --kubeconfig API --dry-run", out: "grow pool general to 3\n1 steps"},
		{args: "scale dev other --count 3 --local --kubeconfig API", status: 1, errs: "cluster dev has no pool other: want one of general"},
		{args: "scale dev general --local --kubeconfig API", status: 1, errs: "--count -1: want 0 to 1000"},
		{args: "scale dev general --count 1 --local --kubeconfig none.conf", status: 1, errs: "kubeconfig of cluster dev"},
		{args: "scale dev general --count 1 --local --kubeconfig API --context other", status: 1,
			errs: `it has no context "other"; want one that kubectl config get-contexts shows`},
		{args: "scale dev general --count 1 --local --kubeconfig dev.yaml", status: 1, errs: "dev.yaml: it is no kubeconfig; want"},
		{args: "upgrade dev.yaml --local --kubeconfig API --dry-run", out: "apply the manifests of add-ons and extensions\n1 steps"},
		{args: "upgrade dev.yaml --local --kubeconfig API --through 1.37", status: 1, errs: "want a version such as 1.37.4"},
		{args: "upgrade upgraded.yaml --local --kubeconfig API", status: 1, errs: "the cluster could not be locked, so nothing was begun"},
		{args: "repair dev cp-x --local --kubeconfig API", status: 1, errs: `"cp-x" is no member`},
		{args: "deploy upgraded.yaml --local --dry-run", status: 3, errs: "kaz cluster upgrade can"},
		{args: "resume dev --local --dry-run", out: "no change of dev has begun"},
		{args: "doctor dev --local --kubeconfig API", status: 7,
			out: "dev-cp-0  running  ready  ready       -     -         -\nnodes of pools: 2 of 2 ready\n"},
		{args: "doctor dev --local --kubeconfig API", status: 7, out: "✘ etcd: its members cannot be read: no member of etcd runs\n  remedy: "},
		{args: "doctor dev --local --kubeconfig API -o json", status: 7, out: `"healthy": false`},
		{args: "doctor dev --local --kubeconfig API --fix", status: 1, errs: "the cluster could not be locked"},
		{args: "rotate dev --token --local --kubeconfig API", status: 1, errs: "secret dev-bootstrap-token of the key vault"},
		{args: "rotate dev --service-account --local --kubeconfig API", status: 1, errs: "secret dev-pki-sa of the key vault"},
		{args: "rotate dev --encryption --local --kubeconfig API", status: 1, errs: "secret dev-encryption of the key vault"},
		{args: "rotate dev --finish --local --kubeconfig API", status: 1, errs: "--finish is for --service-account, --encryption or"},
		{args: "rotate dev --service-account --at-once --local --kubeconfig API", status: 1, errs: "--at-once is for --service-account --finish"},
		{args: "rotate dev --service-account --token --local --kubeconfig API", status: 1, errs: "service-account token"},
		{args: "rotate dev --authorities --local --kubeconfig API", status: 1, errs: "secret dev-pki-ca of the key vault"},
		{args: "rotate dev --authorities --finish --local --kubeconfig API", status: 1, errs: "want kaz cluster rotate dev --authorities"},
		{args: "rotate dev --issue --local --kubeconfig API", status: 1, errs: "--issue is for --authorities: want both"},
		{args: "rotate dev --authorities --finish --at-once --local --kubeconfig API", status: 1, errs: "--at-once is for --service-account"},
		{args: "kubeconfig dev --local", status: 1, errs: "secret dev-pki-ca of the key vault"},
		{args: "deploy scaled.yaml --local", errs: "set the limits of the autoscaler of pool general"},
		{args: "scale dev general --count 3 --local --kubeconfig API", status: 1, errs: "pool general is autoscaled from 1 to 4 nodes: " +
			"set spec.autoscaling of the NodePool, and run kaz cluster deploy"},
	} {
		out, errs, status := runCluster(t, "", strings.Fields(strings.ReplaceAll(step.args, "API", api))...)
		if status != step.status || !strings.Contains(out, step.out) || !strings.Contains(errs, step.errs) {
			t.Fatalf("%s: status %d, output\n%s\nerrors\n%s", step.args, status, out, errs)
		}
	}
}

// startWithBlobs starts a local Azure whose blobs are reached, for a test in a directory of its own with the example dev.yaml.
func startWithBlobs(t *testing.T) {
	t.Helper()
	writeExamples(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := client.AnnounceDir()
	if err != nil {
		t.Fatal(err)
	}
	startAzureIn(t, dir, "127.0.0.1:0")
}

// TestRefusedUpgrades checks upgrades that are refused after the cluster is locked.
func TestRefusedUpgrades(t *testing.T) {
	startWithBlobs(t)
	text, err := os.ReadFile("dev.yaml")
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(string(text), "spec: {replicas: 2, zones: []}", "spec: {replicas: 2, zones: [1]}", 1)
	if err := os.WriteFile("moved.yaml", []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	api := apiServer(t)
	for _, step := range []struct {
		args, errs string
		status     int
	}{
		{args: "deploy dev.yaml --local --kubeconfig admin.conf"},
		{args: "upgrade new.yaml --local --kubeconfig API --etcd-timeout 1ms", status: 1, errs: "members of etcd: no member of etcd runs"},
		{args: "doctor dev --local --kubeconfig API --fix", status: 1, errs: "no member of etcd runs"},
		{args: "upgrade moved.yaml --local --kubeconfig API", status: 1, errs: "NodePool general: spec.zones: [] -> [1] (fixed)"},
	} {
		out, errs, status := runCluster(t, "", strings.Fields(strings.ReplaceAll(step.args, "API", api))...)
		if status != step.status || !strings.Contains(errs, step.errs) {
			t.Errorf("%s: status %d, output\n%s\nerrors\n%s", step.args, status, out, errs)
		}
	}
}

// TestResumeChange shows the steps of a change that has begun, and goes on with it from what Azure keeps.
func TestResumeChange(t *testing.T) {
	startWithBlobs(t)
	api := apiServer(t)
	if out, errs, status := runCluster(t, "", strings.Fields("deploy dev.yaml --local --kubeconfig admin.conf")...); status != 0 {
		t.Fatal(out, errs)
	}
	target := targetFlags{local: true}
	if _, err := target.find(t.Context(), "dev", "dev"); err != nil {
		t.Fatal(err)
	}
	e, err := target.engine(definition.Azure{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	place := record.Place{Subscription: "00000000-0000-0000-0000-000000000001", Group: "dev", Name: "dev"}
	p, found, err := e.Recorded(t.Context(), place.Names())
	if err != nil || !found {
		t.Fatal(found, err)
	}
	p.Definition.Pools[0].Spec.Replicas = 1
	text, err := json.Marshal(record.Change{Definition: p.Definition, Began: "2026-01-02T03:04:05Z"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"location": "westeurope", "properties": map[string]any{
		"mainTemplate": map[string]any{}, "metadata": map[string]any{"kaz": string(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	open := p.Names.Group().Resource(record.SpecType, p.Names.Deployment()).Child("versions", "change")
	if _, err := azure.Do(t.Context(), e.Azure, azure.Request{Verb: azure.Put, ID: open, Body: body}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args, out, errs string
		status          int
	}{
		{args: "status dev --local", out: "since 2026-01-02T03:04:05Z"},
		{args: "resume dev --local --kubeconfig API --dry-run", out: "drain node general dev-general000000\n"},
		{args: "resume dev --local --kubeconfig none.conf", status: 1, errs: "kubeconfig of cluster dev"},
		// The API server of this test changes nothing, so the change stops at its first step.
		{args: "resume dev --local --kubeconfig API", status: int(changeFailed), errs: "cordon nodes of pool general dev-general000000:"},
		{args: "deploy dev.yaml --local", status: 8, errs: "has begun and not ended"},
		{args: "abort dev --local", out: "is canceled"},
		{args: "resume dev --local --dry-run", out: "no change of dev has begun"},
	} {
		out, errs, status := runCluster(t, "", strings.Fields(strings.ReplaceAll(step.args, "API", api))...)
		if status != step.status || !strings.Contains(out, step.out) || !strings.Contains(errs, step.errs) {
			t.Errorf("%s: status %d, output\n%s\nerrors\n%s", step.args, status, out, errs)
		}
	}
}
