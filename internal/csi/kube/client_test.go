package kube_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"kaz/internal/csi/kube"
	"kaz/internal/testkit/kubeclient"
)

var (
	node       = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: "azure://n"}}
	volume     = corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	secret     = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": []byte("v")}}
	csiNode    = storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	attachment = storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "n"}}
	review     = authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
)

// objects are what the API server has, by path.
var objects = map[string]struct {
	group  schema.GroupVersion
	object runtime.Object
}{
	"/api/v1/nodes":                                      {corev1.SchemeGroupVersion, &corev1.NodeList{Items: []corev1.Node{node}}},
	"/api/v1/nodes/n":                                    {corev1.SchemeGroupVersion, &node},
	"/api/v1/persistentvolumes":                          {corev1.SchemeGroupVersion, &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{volume}}},
	"/api/v1/persistentvolumes/v":                        {corev1.SchemeGroupVersion, &volume},
	"/api/v1/namespaces/x/secrets":                       {corev1.SchemeGroupVersion, &secret},
	"/api/v1/namespaces/x/secrets/s":                     {corev1.SchemeGroupVersion, &secret},
	"/apis/storage.k8s.io/v1/csinodes/n":                 {storagev1.SchemeGroupVersion, &csiNode},
	"/apis/storage.k8s.io/v1/volumeattachments":          {storagev1.SchemeGroupVersion, &storagev1.VolumeAttachmentList{Items: []storagev1.VolumeAttachment{attachment}}},
	"/apis/authorization.k8s.io/v1/subjectaccessreviews": {authorizationv1.SchemeGroupVersion, &review},
}

// request is what the API server sees of a request.
type request struct{ Line, Accept, ContentType, UserAgent, Body string }

// apiServer answers in the first type that a request accepts, and keeps the requests. A watch shows the node.
type apiServer struct{ requests []request }

// RoundTrip implements [http.RoundTripper].
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	got := request{r.Method + " " + r.URL.String(), r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.UserAgent(), ""}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		got.Body = string(body)
	}
	s.requests = append(s.requests, got)
	accepted, _, _ := strings.Cut(got.Accept, ",")
	mediaType, _, _ := strings.Cut(accepted, ";")
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	encode := func(group schema.GroupVersion, object runtime.Object) []byte {
		text, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, group), object)
		if err != nil {
			panic(err)
		}
		return text
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", accepted)
	switch found, ok := objects[r.URL.Path]; {
	case r.URL.Query().Get("watch") != "":
		encoder := scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, schema.GroupVersion{Version: "v1"})
		err := streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(w), encoder).Encode(&metav1.WatchEvent{
			Type: string(watch.Added), Object: runtime.RawExtension{Raw: encode(corev1.SchemeGroupVersion, &node)},
		})
		if err != nil {
			return nil, err
		}
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "any"}, r.URL.Path).ErrStatus
		_, _ = w.Write(encode(schema.GroupVersion{Version: "v1"}, &missing))
	default:
		_, _ = w.Write(encode(found.group, found.object))
	}
	return w.Result(), nil
}

// calls are all requests that the drivers send.
var calls = map[string]func(ctx context.Context, c *kube.Client) (any, error){
	"get a node": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.Nodes.Get(ctx, "n", metav1.GetOptions{})
	},
	"get a node that does not exist": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.Nodes.Get(ctx, "none", metav1.GetOptions{})
	},
	"list nodes": func(ctx context.Context, c *kube.Client) (any, error) {
		seconds := int64(60)
		return c.Nodes.List(ctx, metav1.ListOptions{Limit: 500, ResourceVersion: "0", TimeoutSeconds: &seconds})
	},
	"watch nodes": func(ctx context.Context, c *kube.Client) (any, error) {
		initial := true
		w, err := c.Nodes.Watch(ctx, metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true})
		if err != nil {
			return nil, err
		}
		defer w.Stop()
		return <-w.ResultChan(), nil
	},
	"patch a node": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.Nodes.Patch(ctx, "n", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
	},
	"get a volume": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.PersistentVolumes.Get(ctx, "v", metav1.GetOptions{})
	},
	"list volumes": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.PersistentVolumes.List(ctx, metav1.ListOptions{})
	},
	"get a secret": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.Secrets("x").Get(ctx, "s", metav1.GetOptions{})
	},
	"create a secret": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.Secrets("x").Create(ctx, secret.DeepCopy(), metav1.CreateOptions{})
	},
	"update a secret": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.Secrets("x").Update(ctx, secret.DeepCopy(), metav1.UpdateOptions{})
	},
	"get a CSINode": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.CSINodes.Get(ctx, "n", metav1.GetOptions{})
	},
	"list attachments": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.VolumeAttachments.List(ctx, metav1.ListOptions{})
	},
	"get an attachment that does not exist": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.VolumeAttachments.Get(ctx, "none", metav1.GetOptions{})
	},
	"review access": func(ctx context.Context, c *kube.Client) (any, error) {
		return c.AccessReviews.Create(ctx, review.DeepCopy(), metav1.CreateOptions{})
	},
}

// TestRequests checks that the client sends the requests of client-go's own client, byte for byte, and reads the answers as it does.
func TestRequests(t *testing.T) {
	for _, contentType := range []string{"", runtime.ContentTypeJSON} {
		for name, call := range calls {
			t.Run(name+" "+contentType, func(t *testing.T) {
				var server, reference apiServer
				config := &rest.Config{Host: "http://kubernetes.invalid", ContentConfig: rest.ContentConfig{ContentType: contentType}}
				config = rest.AddUserAgent(config, "driver")
				config.Transport = &server
				client, err := kube.New(config)
				if err != nil {
					t.Fatal(err)
				}
				got, gotErr := call(t.Context(), client)
				config.Transport = &reference
				clientset, err := kubernetes.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				want, wantErr := call(t.Context(), kubeclient.Of(clientset))
				if diff := cmp.Diff(reference.requests, server.requests); diff != "" || len(server.requests) != 1 {
					t.Errorf("requests (- of client-go):\n%s", diff)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("answer (- of client-go):\n%s", diff)
				}
				if gotErr == nil && wantErr != nil || apierrors.ReasonForError(gotErr) != apierrors.ReasonForError(wantErr) {
					t.Errorf("error %v, want %v", gotErr, wantErr)
				}
			})
		}
	}
}

// TestRate checks that all resources share the rate of requests, and that a rate without a burst has client-go's default.
func TestRate(t *testing.T) {
	for burst, atOnce := range map[int]int{2: 2, 0: rest.DefaultBurst} {
		synctest.Test(t, func(t *testing.T) {
			client, err := kube.New(&rest.Config{Host: "http://kubernetes.invalid", Transport: &apiServer{}, QPS: 1, Burst: burst})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for range atOnce/2 + 1 {
				if _, err := client.Nodes.Get(t.Context(), "n", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
				if _, err := client.CSINodes.Get(t.Context(), "n", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("%d requests more than a burst of %d took %s, want 2 s", 2, atOnce, took)
			}
		})
	}
}
