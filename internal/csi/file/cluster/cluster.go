// Package cluster is Kubernetes as the Azure Files driver needs it: Secrets with keys, persistent volumes, and the right to read a
// Secret. Layer L3.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/csi/file"
	"kaz/internal/csi/kube"
	"kaz/internal/plan/share"
)

// Cluster is a cluster.
type Cluster struct {
	Client *kube.Client
	Driver string // name of the driver
}

var _ file.Secrets = Cluster{}

// managedBy is the label of Secrets that the driver has created. Its value is the name of the driver.
const managedBy = "app.kubernetes.io/managed-by"

// Check implements [file.Secrets].
func (c Cluster) Check(ctx context.Context, namespace, name, account string) error {
	have, err := c.Client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || have == nil {
		return nil // Put creates it, or says why not
	}
	return checkSecret(have, account)
}

// checkSecret returns an error if a Secret cannot get the key of an account, or already has that of another account.
func checkSecret(have *corev1.Secret, account string) error {
	other := credentialsOf(have).Account
	switch {
	case other != "" && !strings.EqualFold(other, account):
		return status.Errorf(codes.FailedPrecondition,
			"it has the key of storage account %s, and the volume is in storage account %s: name "+
				"another Secret in secretName, or leave secretName out", other, account)
	case other == "" && have.Immutable != nil && *have.Immutable:
		return status.Errorf(codes.FailedPrecondition,
			"it is immutable and has no %s: name another Secret in secretName", file.SecretAccount)
	}
	return nil
}

func credentialsOf(secret *corev1.Secret) file.Credentials {
	values := map[string]string{}
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	credentials, _, _ := file.ReadSecret(values) // the caller compares them only
	return credentials
}

// Put implements [file.Secrets]. A Secret that exists keeps its labels and its other values: it can be one of the user, or of the other
// driver. An immutable Secret keeps the key that it has.
func (c Cluster) Put(ctx context.Context, namespace, name string, credentials file.Credentials) error {
	secrets := c.Client.Secrets(namespace)
	data := map[string][]byte{}
	for key, value := range file.SecretOf(credentials) {
		data[key] = []byte(value)
	}
	_, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{managedBy: c.Driver}},
		Type:       corev1.SecretTypeOpaque, Data: data,
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return known(err)
	}
	have, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return known(err)
	}
	if err := checkSecret(have, credentials.Account); err != nil || credentialsOf(have) == credentials {
		return err
	}
	if have.Immutable != nil && *have.Immutable {
		slog.WarnContext(ctx, "the key in an immutable secret is old", "secret", namespace+"/"+name)
		return nil
	}
	if have.Data == nil {
		have.Data = map[string][]byte{}
	}
	maps.Copy(have.Data, data)
	_, err = secrets.Update(ctx, have, metav1.UpdateOptions{})
	if apierrors.IsForbidden(err) { // roles of the other driver
		slog.WarnContext(ctx, "the key in a secret is old and may not be changed", "secret", namespace+"/"+name, "error", err)
		return nil
	}
	return known(err)
}

// known returns an error of the API server with its gRPC code.
func known(err error) error {
	code := codes.Unavailable
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		code = codes.PermissionDenied
	case apierrors.IsNotFound(err):
		code = codes.NotFound
	case apierrors.IsInvalid(err):
		code = codes.InvalidArgument
	case apierrors.IsConflict(err):
		code = codes.Aborted
	}
	return status.Error(code, err.Error())
}

// Secret returns the values of a Secret.
func (c Cluster) Secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	secret, err := c.Client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, known(err)
	}
	values := map[string]string{}
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	return values, nil
}

// Volumes implements [file.Volumes].
func (c Cluster) Volumes(ctx context.Context) ([]file.Claimed, error) {
	list, err := c.Client.PersistentVolumes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, known(err)
	}
	var all []file.Claimed
	for _, v := range list.Items {
		if claimed, ours := c.claimed(&v); ours {
			all = append(all, claimed)
		}
	}
	return all, nil
}

// groupAnnotation names the resource group of a volume of the in-tree driver.
const groupAnnotation = "kubernetes.io/azure-file-resource-group"

// claimed returns a persistent volume, and whether it is of the driver or of the in-tree driver that it replaces. A volume is released
// if no claim has it: pods can use a volume that is being deleted while a claim has it.
func (c Cluster) claimed(v *corev1.PersistentVolume) (file.Claimed, bool) {
	one := file.Claimed{
		Name: v.Name, Released: v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
			(v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed),
	}
	if claim := v.Spec.ClaimRef; claim != nil {
		one.ClaimNamespace, one.ClaimName = claim.Namespace, claim.Name
	}
	switch csi, old := v.Spec.CSI, v.Spec.AzureFile; {
	case csi != nil && csi.Driver == c.Driver:
		one.Handle, one.Attributes = csi.VolumeHandle, csi.VolumeAttributes
	case old != nil && c.Driver == file.DefaultName:
		namespace := one.ClaimNamespace
		if old.SecretNamespace != nil {
			namespace = *old.SecretNamespace
		}
		one.Handle = share.TranslatedID(v.Annotations[groupAnnotation], old.SecretName, old.ShareName, v.Name, namespace)
		one.Attributes = map[string]string{"sharename": old.ShareName}
	default:
		return one, false
	}
	return one, true
}

// Authorize returns what checks whether a service account may read a Secret. Unless enforce is true, it only warns.
func (c Cluster) Authorize(enforce bool, log *slog.Logger) func(ctx context.Context, namespace, account, secret string) error {
	return func(ctx context.Context, namespace, account, secret string) error {
		review, err := c.Client.AccessReviews.Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account),
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: "get", Version: "v1", Resource: "secrets", Name: secret,
				},
			},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			return nil
		}
		refusal := status.Errorf(codes.PermissionDenied, "service account %s/%s may not read secret %s of its inline volume", namespace,
			account, secret)
		if err != nil {
			refusal = known(err)
		}
		if enforce {
			return refusal
		}
		log.WarnContext(ctx, "inline volume", "error", refusal)
		return nil
	}
}
