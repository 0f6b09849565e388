package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/cmd/kaz/cli"
	"kaz/internal/autoscale"
)

// explainNodeGroup runs the command and returns what it prints.
func explainNodeGroup(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := explainNodeGroupCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// TestExplainNodeGroupRefuses checks that a wrong command line is reported in one line, before any request.
func TestExplainNodeGroupRefuses(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "0 scale sets are given: want one, such as pool"},
		{[]string{"a", "b"}, "2 scale sets are given: want one, such as pool"},
		{[]string{"a", "-o", "xml"}, "--output xml: want text, wide, json, yaml, svg or picture"},
		{[]string{"a", "--provider", "127.0.0.1:8087"}, "--provider 127.0.0.1:8087: want http://HOST:PORT"},
		{[]string{"a", "--provider", "http://127.0.0.1:1", "--nodes", "1:2:a"},
			"--provider, and --nodes or --node-group-auto-discovery: want one of them"},
		{[]string{"a", "--nodes", "1:2"}, `--nodes "1:2": must be MIN:MAX:NAME, such as 1:10:pool`},
	} {
		out, err := explainNodeGroup(t, test.args...)
		if err == nil || err.Error() != test.want || out != "" {
			t.Errorf("%q: %v, want %s; printed %q", test.args, err, test.want, out)
		}
	}
}

// clusterWithProviders serves a Kubernetes API with pods of providers, by the names of the pods, and returns a kubeconfig.
func clusterWithProviders(t *testing.T, providers map[string]func(http.ResponseWriter)) string {
	t.Helper()
	const pods = "/api/v1/pods"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pods, func(w http.ResponseWriter, r *http.Request) {
		if selector := r.URL.Query().Get("labelSelector"); selector != "app=cluster-autoscaler-provider" {
			t.Errorf("selector %q", selector)
		}
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for name := range providers {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
			pod.Status.Phase = corev1.PodRunning
			pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9087}}}}
			list.Items = append(list.Items, pod)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	})
	for name, answer := range providers {
		mux.HandleFunc("GET /api/v1/namespaces/kube-system/pods/http:"+name+":9087/proxy"+autoscale.ViewPath+"pool",
			func(w http.ResponseWriter, _ *http.Request) { answer(w) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return writeJSON(t, t.TempDir(), "kubeconfig", map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c"}}},
	})
}

func answerView(t *testing.T, v autoscale.View) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
}

// TestExplainNodeGroup checks that the provider that cluster-autoscaler asked last answers, through the Kubernetes API. The
// exit status says whether something is pending.
func TestExplainNodeGroup(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	ago := func(seconds float64) *float64 { return &seconds }
	leader := autoscale.View{ScaleSet: "pool", Mode: "Uniform", Target: 3, LoopAge: ago(2), Waits: []string{"1 machines to be made"}}
	other := autoscale.View{ScaleSet: "pool", Mode: "Uniform", Target: 1}
	former := autoscale.View{ScaleSet: "pool", Mode: "Uniform", Target: 2, LoopAge: ago(900)}
	refused := func(w http.ResponseWriter) {
		http.Error(w, "the scale sets have not been read yet", http.StatusServiceUnavailable)
	}
	for name, c := range map[string]struct {
		providers map[string]func(http.ResponseWriter)
		want      string // in the output or the error
		status    error
	}{
		"of three, one is new": {map[string]func(http.ResponseWriter){
			"a": answerView(t, other), "b": answerView(t, leader), "c": answerView(t, former), "d": refused,
		}, "the provider in pod kube-system/b", pending},
		"nothing is pending": {map[string]func(http.ResponseWriter){"a": answerView(t, other)}, "nothing is pending", nil},
		"no node group": {map[string]func(http.ResponseWriter){"a": answerView(t, autoscale.View{ScaleSet: "pool", Ignored: "it lacks a tag"})},
			"no: it lacks a tag", failed},
		"not ready": {map[string]func(http.ResponseWriter){"a": refused},
			"the provider in pod kube-system/a: it answers: the scale sets have not been read yet", nil},
		"none": {nil, "no provider runs in the cluster: want --provider", nil},
	} {
		out, err := explainNodeGroup(t, "pool", "--kubeconfig", clusterWithProviders(t, c.providers), "--cloud-config", "unused")
		text := out
		if _, printed := errors.AsType[cli.ExitCode](err); err != nil && !printed {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) || c.status != nil && !errors.Is(err, c.status) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestExplainNodeGroupOfProcess checks that --provider asks a process, without a cluster.
func TestExplainNodeGroupOfProcess(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != autoscale.ViewPath+"pool" {
			http.Error(w, "there is no such scale set", http.StatusNotFound)
			return
		}
		answerView(t, autoscale.View{ScaleSet: "pool", Mode: "Flexible"})(w)
	}))
	t.Cleanup(server.Close)
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", none) // no cluster is needed
	out, err := explainNodeGroup(t, "pool", "--provider", server.URL)
	if err != nil || !strings.Contains(out, "seen by      the provider at "+server.URL) {
		t.Errorf("%v, %s", err, out)
	}
	if _, err := explainNodeGroup(t, "other", "--provider", server.URL); err == nil ||
		!strings.HasSuffix(err.Error(), "answers 404 Not Found: there is no such scale set") {
		t.Error(err)
	}
}
