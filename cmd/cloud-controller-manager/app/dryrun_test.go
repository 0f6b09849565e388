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

// azureThatTells is a door that notes what goes through it.
type azureThatTells struct{ did []string }

func (a *azureThatTells) note(what string) (azure.Document, error) {
	a.did = append(a.did, what)
	return azure.Document(`{}`), nil
}
func (a *azureThatTells) Get(context.Context, azure.ID) (azure.Document, error) { return a.note("get") }
func (a *azureThatTells) List(context.Context, azure.Query) ([]azure.Document, error) {
	_, err := a.note("list")
	return nil, err
}
func (a *azureThatTells) Put(context.Context, azure.Write) (azure.Document, error) {
	return a.note("put")
}
func (a *azureThatTells) Patch(context.Context, azure.Write) (azure.Document, error) {
	return a.note("patch")
}
func (a *azureThatTells) Delete(context.Context, azure.ID) error {
	_, err := a.note("delete")
	return err
}
func (a *azureThatTells) Post(context.Context, azure.ID, string, azure.Document) (azure.Document, error) {
	return a.note("post")
}
func (a *azureThatTells) Fresh() azure.Reader { return a }

// A dry run reads through the door, and nothing that it tries to write goes through.
func TestDryRunWritesNothingToAzure(t *testing.T) {
	all := &azureThatTells{}
	if (&dryRun{}).door(all) != reconcile.Azure(all) {
		t.Error("without --dry-run the door is another one")
	}
	door := (&dryRun{on: true}).door(all)
	if _, err := door.Get(t.Context(), "/a"); err != nil {
		t.Error(err)
	}
	if _, err := door.Fresh().List(t.Context(), azure.Query{}); err != nil {
		t.Error(err)
	}
	_, put := door.Put(t.Context(), azure.Write{ID: "/a"})
	_, patch := door.Patch(t.Context(), azure.Write{ID: "/a"})
	_, post := door.Post(t.Context(), "/a", "start", nil)
	for _, err := range []error{put, patch, post, door.Delete(t.Context(), "/a")} {
		if err == nil || !strings.Contains(err.Error(), "dry run") {
			t.Errorf("%v", err)
		}
	}
	if got := strings.Join(all.did, " "); got != "get list" {
		t.Errorf("through the door went: %s", got)
	}
}

// What kaz explain is given cannot write, whoever tries.
func TestLookCannotWrite(t *testing.T) {
	for _, r := range []any{reading{&azureThatTells{}}, (&dryRun{on: true}).door(&azureThatTells{}).Fresh()} {
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
