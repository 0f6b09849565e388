package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kaz/internal/azure"
	"kaz/internal/reconcile"
)

// recordingAzure is a client that records its requests.
type recordingAzure struct{ did []string }

func (a *recordingAzure) note(what string) (azure.Document, error) {
	a.did = append(a.did, what)
	return azure.Document(`{}`), nil
}
func (a *recordingAzure) Get(context.Context, azure.ID) (azure.Document, error) { return a.note("get") }
func (a *recordingAzure) List(context.Context, azure.Query) ([]azure.Document, error) {
	_, err := a.note("list")
	return nil, err
}
func (a *recordingAzure) Begin(_ context.Context, r azure.Request) (*azure.Operation, error) {
	doc, err := a.note(string(r.Verb))
	return azure.Done(doc), err
}
func (a *recordingAzure) Fresh() azure.Reader { return a }

// TestDryRunWritesNothingToAzure checks that a dry run reads through the client and writes nothing.
func TestDryRunWritesNothingToAzure(t *testing.T) {
	all := &recordingAzure{}
	if (&dryRun{}).client(all) != reconcile.Azure(all) {
		t.Error("without --dry-run the client is another one")
	}
	client := (&dryRun{on: true}).client(all)
	if _, err := client.Get(t.Context(), "/a"); err != nil {
		t.Error(err)
	}
	if _, err := client.Fresh().List(t.Context(), azure.Query{}); err != nil {
		t.Error(err)
	}
	_, put := azure.ByVerb(client).Put(t.Context(), azure.Write{ID: "/a"})
	_, patch := azure.ByVerb(client).Patch(t.Context(), azure.Write{ID: "/a"})
	_, post := azure.ByVerb(client).Post(t.Context(), "/a", "start", nil)
	for _, err := range []error{put, patch, post, azure.ByVerb(client).Delete(t.Context(), "/a")} {
		if err == nil || !strings.Contains(err.Error(), "dry run") {
			t.Errorf("%v", err)
		}
	}
	if got := strings.Join(all.did, " "); got != "get list" {
		t.Errorf("through the client went: %s", got)
	}
}

// TestInspectorCannotWrite checks that the clients of kaz explain have no way to write.
func TestInspectorCannotWrite(t *testing.T) {
	for _, r := range []any{reading{&recordingAzure{}}, (&dryRun{on: true}).client(&recordingAzure{}).Fresh()} {
		if _, can := r.(azure.Writer); can {
			t.Errorf("%T can write", r)
		}
	}
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Method)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ServiceList","apiVersion":"v1","items":[]}`))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(readOnly(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	services := client.CoreV1().Services(corev1.NamespaceDefault)
	if _, err := services.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	_, create := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	_, patch := services.Patch(t.Context(), "web", "application/merge-patch+json", []byte(`{}`), metav1.PatchOptions{})
	for _, err := range []error{create, patch, services.Delete(t.Context(), "web", metav1.DeleteOptions{})} {
		if err == nil || !strings.Contains(err.Error(), "nothing is written") {
			t.Errorf("%v", err)
		}
	}
	if got := strings.Join(sent, " "); got != "GET" {
		t.Errorf("sent: %s", got)
	}
}
