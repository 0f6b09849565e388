package autoscale_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kaz/internal/autoscale"
)

// nodeAPI serves lists of nodes, in pages of one node, and what tests send to watches.
type nodeAPI struct {
	lists   chan []string
	changes chan map[string]any
}

func apiNode(name string) corev1.Node {
	return corev1.Node{
		TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "5"},
		Spec:       corev1.NodeSpec{ProviderID: "azure://" + string(setID(pool)) + "/virtualMachines/" + name},
	}
}

func (a *nodeAPI) serve(t *testing.T) http.HandlerFunc {
	var rest []string
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			for {
				select {
				case change := <-a.changes:
					if err := encoder.Encode(change); err != nil {
						t.Error(err)
					}
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
		if r.URL.Query().Get("continue") == "" {
			rest = <-a.lists
		}
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		if len(rest) > 0 {
			list.Items, rest = []corev1.Node{apiNode(rest[0])}, rest[1:]
		}
		if len(rest) > 0 {
			list.Continue = "more"
		}
		if err := encoder.Encode(list); err != nil {
			t.Error(err)
		}
	}
}

// TestWatch checks that the provider knows the nodes of all pages, follows changes, and forgets those that went while no
// watch was there.
func TestWatch(t *testing.T) {
	api := &nodeAPI{lists: make(chan []string, 1), changes: make(chan map[string]any)}
	server := httptest.NewServer(api.serve(t))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	p := autoscale.New(autoscale.Config{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(p.Close)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		autoscale.Watch(ctx, client, p)
	}()
	t.Cleanup(func() { stop(); <-done })
	known := func(names ...string) {
		t.Helper()
		limit := time.After(time.Minute)
		for !slices.Equal(p.NodeNames(), names) {
			select {
			case <-limit:
				t.Fatalf("known are %v, want %v", p.NodeNames(), names)
			case <-time.After(time.Millisecond):
			}
		}
	}
	api.lists <- []string{"0", "1"}
	known("0", "1")
	p.ReadOnce() // now the nodes can be assigned to groups
	api.lists <- []string{"0", "1", "2"}
	known("0", "1", "2")
	api.changes <- map[string]any{"type": "DELETED", "object": apiNode("1")}
	known("0", "2")
	api.changes <- map[string]any{"type": "ADDED", "object": apiNode("3")}
	known("0", "2", "3")
	api.changes <- map[string]any{"type": "ERROR", "object": metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
	}}
	api.lists <- []string{"3", "4"}
	known("3", "4")
}
