package workload

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure/secret"
)

// TokenLabel at a Secret with a bootstrap token, with the value "true", says that kaz made it. Members of the control plane set it, too:
// see join-token in bootstrap.sh.
const TokenLabel = "kaz/join-token"

// The fields of a Secret with a bootstrap token, and the group of the nodes that join with it, as kubeadm has them.
const (
	tokenPrefix     = "bootstrap-token-"
	tokenID         = "token-id"
	tokenSecret     = "token-secret"
	tokenExpiration = "expiration"
	joinGroup       = "system:bootstrappers:kubeadm:default-node-token"
)

// Token is a bootstrap token that the API server takes.
type Token struct {
	ID string
	// Ends is when it ends, the zero time for never.
	Ends time.Time
	// Ours says that kaz made it.
	Ours bool
}

// Tokens are the bootstrap tokens of the cluster.
func (c *Cluster) Tokens(ctx context.Context) ([]Token, error) {
	list, err := c.Client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, fmt.Errorf("join tokens: %w", err)
	}
	var all []Token
	for _, s := range list.Items {
		id, named := strings.CutPrefix(s.Name, tokenPrefix)
		if s.Type != corev1.SecretTypeBootstrapToken || !named {
			continue
		}
		one := Token{ID: id, Ours: s.Labels[TokenLabel] == "true"}
		if text := string(s.Data[tokenExpiration]); text != "" {
			if one.Ends, err = time.Parse(time.RFC3339, text); err != nil {
				return nil, fmt.Errorf("join token %s: its end is no time: %q", id, text)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// AddToken lets nodes join with a token. It does not end until a member of the control plane gives it an end.
func (c *Cluster) AddToken(ctx context.Context, token secret.Text) error {
	id, hidden, _ := strings.Cut(token.Reveal(), ".")
	_, err := c.Client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: tokenPrefix + id, Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{TokenLabel: "true"}},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			tokenID: []byte(id), tokenSecret: []byte(hidden), "description": []byte("Machines of kaz cluster join with it."),
			"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
			"auth-extra-groups": []byte(joinGroup),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make join token %s: %w", id, err)
	}
	return nil
}

// Token is the whole token with an ID.
func (c *Cluster) Token(ctx context.Context, id string) (secret.Text, error) {
	s, err := c.Client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, tokenPrefix+id, metav1.GetOptions{})
	if err != nil {
		return secret.Text{}, fmt.Errorf("join token %s: %w", id, err)
	}
	return secret.New(string(s.Data[tokenID]) + "." + string(s.Data[tokenSecret])), nil
}

// EndToken lets a token end at a time. A token that is gone is no error. Kubernetes deletes it then.
func (c *Cluster) EndToken(ctx context.Context, id string, at time.Time) error {
	secrets := c.Client.CoreV1().Secrets(metav1.NamespaceSystem)
	s, err := secrets.Get(ctx, tokenPrefix+id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		s.Data[tokenExpiration] = []byte(at.UTC().Format(time.RFC3339))
		_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("end join token %s: %w", id, err)
	}
	return nil
}

// TokensOfOtherKeys returns the Secrets with a token of a service account that was not signed by the key with this ID. The
// form is NAMESPACE/NAME. Such tokens do not expire.
func (c *Cluster) TokensOfOtherKeys(ctx context.Context, keyID string) ([]string, error) {
	list, err := c.Client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return nil, fmt.Errorf("tokens of service accounts: %w", err)
	}
	var all []string
	for _, s := range list.Items {
		token := s.Data[corev1.ServiceAccountTokenKey]
		if s.Type == corev1.SecretTypeServiceAccountToken && len(token) > 0 && signedBy(string(token)) != keyID {
			all = append(all, s.Namespace+"/"+s.Name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// signedBy is the ID of the key that signed a token, "" if the token names none.
func signedBy(token string) string {
	head, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	var header struct {
		Key string `json:"kid"`
	}
	if json.Unmarshal(text, &header) != nil {
		return ""
	}
	return header.Key
}
