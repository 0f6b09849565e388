package app

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
)

// following is a reloader of clouds that are empty or fail to open.
type following struct {
	*reloader
	events *record.FakeRecorder
	refuse func(cloudconfig.Config) error
}

func follow(t *testing.T, s source, objects ...*corev1.Secret) *following {
	t.Helper()
	client := fake.NewClientset()
	for _, o := range objects {
		if err := client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	s.cluster, s.lookup, s.reloading = "kubernetes", func(string) (string, bool) { return "", false }, true
	s.secretNamespace, s.secretKey = cloudconfig.SecretNamespace, cloudconfig.SecretKey
	f := &following{events: record.NewFakeRecorder(100), refuse: func(cloudconfig.Config) error { return nil }}
	f.reloader = &reloader{
		source: s, client: client, results: newReloadResults(),
		notices: &notices{recorder: f.events, about: &corev1.ObjectReference{Kind: "Lease"}},
		open: func(_ context.Context, settings cloudconfig.Config) (*generation, error) {
			if err := f.refuse(settings); err != nil {
				return nil, err
			}
			g := &generation{settings: settings}
			if !settings.DisableCloudProvider {
				g.cloud = &cloudprovider.Cloud{}
			}
			return g, nil
		},
	}
	return f
}

// current returns the generation of the current configuration.
func (f *following) current(t *testing.T) *generation {
	t.Helper()
	settings, err := f.source.read(t.Context(), f.client)
	if err != nil {
		t.Fatal(err)
	}
	return &generation{settings: settings, cloud: &cloudprovider.Cloud{}}
}

// await waits for the next generation. It calls do once the reloader waits.
func (f *following) await(t *testing.T, current *generation, do func()) *generation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next := make(chan *generation)
	go func() { next <- f.next(ctx, current) }()
	do()
	g := <-next
	if g == nil {
		t.Fatal("nothing came of it")
	}
	return g
}

func (f *following) reported(t *testing.T, words ...string) {
	t.Helper()
	select {
	case event := <-f.events.Events:
		for _, w := range words {
			if !strings.Contains(event, w) {
				t.Errorf("event %q does not say %q", event, w)
			}
		}
	case <-time.After(patience):
		t.Fatalf("no event that says %q", words)
	}
}

// TestReloadOfFile changes the file like a mounted volume does, by replacing a link. A wrong
// configuration is reported and ignored; a valid one becomes the next generation.
func TestReloadOfFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "azure.json")
	version := 0
	swap := func(data []byte) {
		t.Helper()
		version++
		held := filepath.Join(dir, "data"+string(rune('0'+version)))
		if err := os.WriteFile(held, data, 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "new")
		if err := os.Symlink(held, link); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link, path); err != nil {
			t.Fatal(err)
		}
	}
	swap(azureJSON(t, nil))
	f := follow(t, source{path: path})
	next := f.await(t, f.current(t), func() {
		swap([]byte(`{"resourceGroup": `))
		f.reported(t, reasonRejected, "keeping the previous configuration", path)
		swap(azureJSON(t, object{"cloudConfigType": "foo", "vmType": "barn"}))
		f.reported(t, reasonRejected, "cloudConfigType", "vmType", "vmssflex")
		swap(azureJSON(t, object{"resourceGroup": "other"}))
	})
	if next.settings.ResourceGroup != "other" {
		t.Errorf("the next generation is of group %s", next.settings.ResourceGroup)
	}
	f.reported(t, reasonApplied, path)
	if rejected, applied := testutil.ToFloat64(f.results.WithLabelValues("rejected")),
		testutil.ToFloat64(f.results.WithLabelValues("applied")); rejected != 2 || applied != 1 {
		t.Errorf("%v rejected, %v applied", rejected, applied)
	}
	// The file changed before the reloader started.
	swap(azureJSON(t, object{"disableCloudProvider": true}))
	next = f.await(t, next, func() {})
	if next.cloud != nil {
		t.Error("disableCloudProvider has no effect")
	}
	f.reported(t, reasonApplied, "disableCloudProvider")
}

// TestReloadOfSecret is the same for the Secret. An update without a change has no effect.
func TestReloadOfSecret(t *testing.T) {
	f := follow(t, source{}, secretOf(cloudconfig.SecretName, azureJSON(t, nil)))
	store := func(data []byte) {
		t.Helper()
		if err := f.client.(*fake.Clientset).Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"),
			secretOf(cloudconfig.SecretName, data), cloudconfig.SecretNamespace); err != nil {
			t.Fatal(err)
		}
	}
	f.refuse = func(c cloudconfig.Config) error {
		if c.AADClientSecret.Reveal() == "wrong" {
			return errors.New("the client got no token")
		}
		return nil
	}
	next := f.await(t, f.current(t), func() {
		store(azureJSON(t, object{"aadClientSecret": "wrong"}))
		f.reported(t, reasonRejected, "got no token")
		store(azureJSON(t, nil)) // the current configuration
		store(azureJSON(t, object{"aadClientSecret": "renewed"}))
	})
	if next.settings.AADClientSecret.Reveal() != "renewed" {
		t.Error("the renewed secret is not the next generation's")
	}
	f.reported(t, reasonApplied, "secret kube-system/azure-cloud-provider")
	select {
	case event := <-f.events.Events:
		t.Errorf("one event too many: %s", event)
	default:
	}
}

// TestReloadEnds checks that a stopping program does not wait for a change.
func TestReloadEnds(t *testing.T) {
	f := follow(t, source{path: writeFile(t, azureJSON(t, nil))})
	current := f.current(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan *generation)
	go func() { ended <- f.next(ctx, current) }()
	stop()
	if g := <-ended; g != nil {
		t.Errorf("it goes on with %+v", g)
	}
}

// TestRequestGuard checks that close waits for requests in flight and rejects new ones, for Azure and
// Kubernetes.
func TestRequestGuard(t *testing.T) {
	g := &requestGuard{}
	inside, leave := make(chan struct{}), make(chan struct{})
	client := g.azure(slowClient{inside: inside, leave: leave})
	answered := make(chan error, 1)
	go func() {
		_, err := azure.ByVerb(client).Put(t.Context(), azure.Write{})
		answered <- err
	}()
	<-inside
	closed := make(chan struct{})
	g.refuse()
	go func() {
		defer close(closed)
		g.close()
	}()
	if _, err := client.Get(t.Context(), ""); azure.KindOf(err) != azure.Canceled {
		t.Errorf("through a closed guard: %v", err)
	}
	if _, err := client.Fresh().List(t.Context(), azure.Query{}); azure.KindOf(err) != azure.Canceled {
		t.Errorf("past the cache: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://kubernetes.test/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := g.transport(http.DefaultTransport).RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, errReplaced) {
		t.Errorf("to kubernetes: %v", err)
	}
	select {
	case <-closed:
		t.Error("it closed during a request")
	default:
	}
	close(leave)
	<-closed
	if err := <-answered; err != nil {
		t.Errorf("the request under way got %v", err)
	}
}

// slowClient answers writes when leave is closed.
type slowClient struct{ inside, leave chan struct{} }

func (d slowClient) Get(context.Context, azure.ID) (azure.Document, error) { return nil, nil }

func (d slowClient) List(context.Context, azure.Query) ([]azure.Document, error) { return nil, nil }

func (d slowClient) Begin(context.Context, azure.Request) (*azure.Operation, error) {
	close(d.inside)
	<-d.leave
	return azure.Done(nil), nil
}

func (d slowClient) Fresh() azure.Reader { return d }
