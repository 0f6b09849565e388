// Package kube is the client of the Kubernetes API of the CSI drivers. It has the few resources that they use. client-go's
// own client has all API groups and their types. It makes a node plugin half as large again
// (docs/decisions/client-of-csi-drivers.md). Layer L3.
package kube

import (
	"cmp"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// The resources.
type (
	Nodes             = Resource[*corev1.Node, *corev1.NodeList]
	PersistentVolumes = Resource[*corev1.PersistentVolume, *corev1.PersistentVolumeList]
	Secrets           = Resource[*corev1.Secret, *corev1.SecretList]
	CSINodes          = Resource[*storagev1.CSINode, *storagev1.CSINodeList]
	VolumeAttachments = Resource[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]
	AccessReviews     = Creator[*authorizationv1.SubjectAccessReview]
)

// Client is a client of the Kubernetes API.
type Client struct {
	Nodes             Nodes
	PersistentVolumes PersistentVolumes
	Secrets           func(namespace string) Secrets
	CSINodes          CSINodes
	VolumeAttachments VolumeAttachments
	AccessReviews     AccessReviews
}

// New returns a client. Its resources share a connection and, if config has one, a rate of requests.
func New(config *rest.Config) (*Client, error) {
	shared := *config
	if shared.RateLimiter == nil && shared.QPS > 0 {
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, cmp.Or(shared.Burst, rest.DefaultBurst))
	}
	transport, err := rest.HTTPClientFor(&shared)
	if err != nil {
		return nil, err
	}
	groups, scheme := map[schema.GroupVersion]group{}, newScheme()
	for version, path := range map[schema.GroupVersion]string{
		corev1.SchemeGroupVersion: "/api", storagev1.SchemeGroupVersion: "/apis", authorizationv1.SchemeGroupVersion: "/apis",
	} {
		if groups[version], err = openGroup(shared, transport, scheme, version, path); err != nil {
			return nil, fmt.Errorf("client of %s: %w", version, err)
		}
	}
	core, storage := groups[corev1.SchemeGroupVersion], groups[storagev1.SchemeGroupVersion]
	return &Client{
		Nodes:             newResource[corev1.Node, corev1.NodeList](core, "nodes", ""),
		PersistentVolumes: newResource[corev1.PersistentVolume, corev1.PersistentVolumeList](core, "persistentvolumes", ""),
		Secrets: func(namespace string) Secrets {
			return newResource[corev1.Secret, corev1.SecretList](core, "secrets", namespace)
		},
		CSINodes:          newResource[storagev1.CSINode, storagev1.CSINodeList](storage, "csinodes", ""),
		VolumeAttachments: newResource[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](storage, "volumeattachments", ""),
		AccessReviews: &creator[authorizationv1.SubjectAccessReview, *authorizationv1.SubjectAccessReview]{
			group: groups[authorizationv1.SchemeGroupVersion], name: "subjectaccessreviews",
		},
	}, nil
}

// group sends requests to one API group.
type group struct {
	client rest.Interface
	codec  runtime.ParameterCodec
}

func openGroup(config rest.Config, transport *http.Client, scheme *runtime.Scheme, version schema.GroupVersion, path string) (
	group, error) {
	codecs := rest.CodecFactoryForGeneratedClient(scheme, serializer.NewCodecFactory(scheme))
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, path, codecs.WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(&config, transport)
	return group{client, runtime.NewParameterCodec(scheme)}, err
}

// newScheme returns the types that can be sent and received.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for version, objects := range map[schema.GroupVersion][]runtime.Object{
		corev1.SchemeGroupVersion: {
			&corev1.Node{}, &corev1.NodeList{}, &corev1.PersistentVolume{}, &corev1.PersistentVolumeList{},
			&corev1.Secret{}, &corev1.SecretList{},
		},
		storagev1.SchemeGroupVersion: {
			&storagev1.CSINode{}, &storagev1.CSINodeList{}, &storagev1.VolumeAttachment{}, &storagev1.VolumeAttachmentList{},
		},
		authorizationv1.SchemeGroupVersion: {&authorizationv1.SubjectAccessReview{}},
	} {
		scheme.AddKnownTypes(version, objects...)
		metav1.AddToGroupVersion(scheme, version)
	}
	return scheme
}
