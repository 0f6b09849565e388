package engine

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/vault"
	"kaz/internal/engine/dataplane"
	"kaz/internal/engine/pki"
)

// served sends requests to a handler.
type served struct{ http.Handler }

// Do implements the client of [dataplane.Client].
func (s served) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// planes are the data planes of the local Azure, as far as the engine uses them here: its key vaults.
func (s *simulation) planes() dataplane.Client {
	return dataplane.Client{
		Token: func(context.Context, string) (string, error) { return "t", nil },
		HTTP: served{&vault.Service{World: s.l.azure.Look, Authenticate: func(string, ...string) (*behaviour.Principal, error) {
			return nil, nil
		}}},
	}
}

// join is the secret of the key vault with which machines join now.
func (s *simulation) join() pki.Join {
	s.l.t.Helper()
	text, err := s.l.secret(s.l.t.Context(), s.names, tokenName)
	if err != nil {
		s.l.t.Fatal(err)
	}
	join, err := pki.ParseJoin(text)
	if err != nil {
		s.l.t.Fatal(err)
	}
	return join
}

// takes reports whether the API server takes a token, and until when, the zero time for no end.
func (s *simulation) takes(id string) (bool, time.Time) {
	s.l.t.Helper()
	secret, err := s.client.CoreV1().Secrets("kube-system").Get(s.l.t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, time.Time{}
	}
	if err != nil || string(secret.Data["usage-bootstrap-authentication"]) != "true" || string(secret.Data["usage-bootstrap-signing"]) != "true" ||
		string(secret.Data["auth-extra-groups"]) != "system:bootstrappers:kubeadm:default-node-token" {
		s.l.t.Errorf("token %s lets no node join: %v", id, err)
	}
	end, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	return err != nil || end.After(time.Now()), end
}

// addToken makes a token as kubeadm does when it makes a cluster, or a person.
func (s *simulation) addToken(id, secret string) {
	s.l.t.Helper()
	_, err := s.client.CoreV1().Secrets("kube-system").Create(s.l.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: "kube-system"}, Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{"token-id": []byte(id), "token-secret": []byte(secret), "usage-bootstrap-authentication": []byte("true"),
			"usage-bootstrap-signing": []byte("true"), "auth-extra-groups": []byte("system:bootstrappers:kubeadm:default-node-token")},
	}, metav1.CreateOptions{})
	if err != nil {
		s.l.t.Fatal(err)
	}
}

// rotateToken begins with the token that kubeadm made, and rotates it.
func (l *lab) rotateToken(s *simulation) error {
	r, err := l.TokenRotation(l.t.Context(), s.names)
	if err != nil {
		return err
	}
	return l.Change(l.t.Context(), r)
}

// TestTokenRotation checks scenario 41: the key vault gets a new token, which the API server takes, with the pin of before. The old one
// is valid for an hour, so that machines that boot now can join. Tokens of others stay, no member is replaced, and no secret is said.
func TestTokenRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		old, before := s.join(), s.nodes()
		s.addToken(old.ID(), old.Token[7:])
		s.addToken("person", "0123456789abcdef")
		for range 2 { // the second rotation begins with the token of the first
			last := s.join()
			if err := l.rotateToken(s); err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
			}
			now := s.join()
			taken, end := s.takes(now.ID())
			if now.Token == last.Token || now.CACertHash != old.CACertHash || !taken || !end.IsZero() {
				t.Errorf("the new token: new %t, pin kept %t, taken %t until %v", now.Token != last.Token, now.CACertHash == old.CACertHash, taken, end)
			}
			if taken, end := s.takes(last.ID()); !taken || end.IsZero() || end.After(time.Now().Add(time.Hour)) {
				t.Errorf("the old token is taken: %t, until %v", taken, end)
			}
			for _, secret := range []string{now.Token[7:], last.Token[7:]} {
				if strings.Contains(strings.Join(l.said, "\n"), secret) {
					t.Error("a secret was said")
				}
			}
		}
		if taken, end := s.takes("person"); !taken || !end.IsZero() {
			t.Error("the token of a person ends")
		}
		if !slices.Equal(before, s.nodes()) || s.saved > 0 {
			t.Errorf("machines were replaced: %v, want %v", s.nodes(), before)
		}
		if open, err := l.Open(t.Context(), s.names); open != nil || err != nil {
			t.Errorf("the change is open: %v %v", open, err)
		}
		for _, id := range []string{s.names.SecretDeployment(), s.names.Deployment()} {
			doc, err := l.client.Get(t.Context(), deploymentID(s.names.Group(), id))
			if (err == nil) != (id == s.names.Deployment()) || strings.Contains(string(doc), s.join().Token[7:]) {
				t.Errorf("deployment %s: %v", id, err)
			}
		}
		l.requests()
		p := example(t, nil, "dev.yaml")
		p.Definition = d
		if r, err := l.Deploy(t.Context(), p, l.save); err != nil || !r.Unchanged {
			t.Errorf("a deployment after the rotation: %v %+v", err, r)
		}
	})
}

// mortal lets requests to the API server die with an engine: they count as its writes to Azure do.
func (s *simulation) mortal(k *killed) {
	s.client.PrependReactor("*", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		read := a.GetVerb() == "get" || a.GetVerb() == "list"
		if k.spent || !read && k.dies() {
			return true, nil, io.ErrUnexpectedEOF
		}
		return false, nil, nil
	})
}

// TestTokenRotationKilled checks that a rotation of the token goes on after its death at any write, that the API server takes the token
// of the key vault at every moment, and that no secret is in the record of the change.
func TestTokenRotationKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kill := range 100 {
			l, s, _ := deployed(t, nil, "dev.yaml")
			old := s.join()
			s.addToken(old.ID(), old.Token[7:])
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill, late: kill%2 == 1}
			l.connect(k)
			s.inside(l.Engine)
			victim := *l
			s.mortal(k)
			err := victim.rotateToken(s)
			dead := k.spent
			k.left, k.spent = 1000, false // others live
			l.connect(healthy)
			s.inside(l.Engine)
			if taken, _ := s.takes(s.join().ID()); !taken {
				t.Fatalf("died at %d: the API server does not take the token of the key vault", kill)
			}
			open, openErr := l.Open(t.Context(), s.names)
			if openErr != nil {
				t.Fatal(openErr)
			}
			if !dead {
				if err != nil || open != nil {
					t.Errorf("without a death: %v %v", err, open)
				}
				t.Logf("%d places to die", kill)
				return
			}
			if open != nil {
				doc, err := l.client.Get(t.Context(), deploymentID(s.names.Group(), s.names.Change()))
				if err != nil || strings.Contains(string(doc), old.Token[7:]) || strings.Contains(string(doc), s.join().Token[7:]) {
					t.Errorf("the record of the change: %v, or it has a secret", err)
				}
				if _, err = l.Resume(t.Context(), s.names); err != nil {
					t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
				}
			} else if err := l.rotateToken(s); err != nil { // it died before it was recorded, or when all was done
				t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
			}
			taken, _ := s.takes(s.join().ID())
			_, end := s.takes(old.ID())
			if !taken || s.join().ID() == old.ID() || end.IsZero() {
				t.Fatalf("died at %d: the new token is taken: %t, the old one ends %v\n%s", kill, taken, end, strings.Join(l.said, "\n"))
			}
		}
	})
}
