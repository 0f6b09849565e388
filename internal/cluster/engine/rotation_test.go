package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
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

	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/rotate"
)

// join is the secret of the key vault with which machines join now.
func (s *simulation) join() pki.Join {
	s.l.t.Helper()
	text, err := s.l.rotation(s.names).Secret(s.l.t.Context(), rotate.Token)
	if err != nil {
		s.l.t.Fatal(err)
	}
	join, err := pki.ParseJoin(text)
	if err != nil {
		s.l.t.Fatal(err)
	}
	return join
}

// takes reports whether the API server takes a token, and when the token ends: the zero time for never.
func (s *simulation) takes(id string) (bool, time.Time) {
	s.l.t.Helper()
	secret, err := s.client.CoreV1().Secrets("kube-system").Get(s.l.t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, time.Time{}
	}
	if err != nil {
		s.l.t.Fatal(err)
	}
	for field, want := range map[string]string{"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"} {
		if got := string(secret.Data[field]); got != want {
			s.l.t.Errorf("token %s lets no node join: %s is %q, want %q", id, field, got, want)
		}
	}
	end, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	return err != nil || end.After(time.Now()), end
}

// addToken makes a token that kaz did not make, as kubeadm does for a new cluster, or a person.
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

// TestTokenRotation checks scenario 41: the key vault gets a new token that the API server takes, with the same hash of the
// authority. The old token stays valid for an hour, so that machines that boot now can join. Tokens of other programs stay,
// no member is replaced, and no secret is in the output.
func TestTokenRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "dev.yaml")
		old, before := s.join(), s.nodes()
		s.addToken(old.ID(), old.Token.Reveal()[7:])
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
			for _, secret := range []string{now.Token.Reveal()[7:], last.Token.Reveal()[7:]} {
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
			doc, err := l.client.Get(t.Context(), record.DeploymentID(s.names.Group(), id))
			if (err == nil) != (id == s.names.Deployment()) || strings.Contains(string(doc), s.join().Token.Reveal()[7:]) {
				t.Errorf("deployment %s: %v", id, err)
			}
		}
		l.requests()
		l.unchanged(d, "dev.yaml")
	})
}

// mortal makes requests to the API server fail after the engine was killed. They count like its writes to Azure.
func (s *simulation) mortal(k *killed) {
	s.client.PrependReactor("*", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		read := a.GetVerb() == "get" || a.GetVerb() == "list"
		if k.spent || !read && k.dies() {
			return true, nil, io.ErrUnexpectedEOF
		}
		return false, nil, nil
	})
}

// TestTokenRotationKilled checks that a rotation of the token can be resumed after it was killed at any write. The API server
// takes the token of the key vault at every moment. The record of the change has no secret.
func TestTokenRotationKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kill := range 100 {
			l, s, _ := deployed(t, nil, "dev.yaml")
			old := s.join()
			s.addToken(old.ID(), old.Token.Reveal()[7:])
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill, late: kill%2 == 1}
			l.connect(k)
			s.connect(l.Engine)
			victim := *l
			s.mortal(k)
			err := victim.rotateToken(s)
			dead := k.spent
			k.left, k.spent = 1000, false // others live
			l.connect(healthy)
			s.connect(l.Engine)
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
				doc, err := l.client.Get(t.Context(), record.VersionID(s.names, record.ChangeVersion))
				if err != nil || strings.Contains(string(doc), old.Token.Reveal()[7:]) || strings.Contains(string(doc), s.join().Token.Reveal()[7:]) {
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

// boot gives a member the keys of service accounts that the key vault has now.
func (s *simulation) boot(name string) {
	s.l.t.Helper()
	if !s.member(name) {
		return
	}
	keys, err := rotate.Rotation{Planes: s.l.azure.Vaults(), Names: s.names}.AccountKeys(context.Background())
	if err != nil {
		s.l.t.Fatal(err)
	}
	s.keys[name] = keys
}

// accepted checks that each member accepts the tokens of all others: requests go to any of them.
func (s *simulation) accepted() {
	s.l.t.Helper()
	for one, its := range s.keys {
		for other, keys := range s.keys {
			if !s.removed[one] && !s.removed[other] && !slices.Contains(keys.Accepted(), its.Signs()) {
				s.l.t.Errorf("%s signs with a key that %s does not accept", one, other)
			}
		}
	}
}

// rotateKeys rotates the key of service accounts, or ends that.
func (l *lab) rotateKeys(s *simulation, finish bool) error {
	r, err := l.KeyRotation(l.t.Context(), s.names, finish, false)
	if err != nil {
		return err
	}
	return l.Change(l.t.Context(), r)
}

// have checks the members and their generation. Each member signs with the key of the key vault, and accepts so many keys.
func (s *simulation) have(members, generation, accept int) {
	s.l.t.Helper()
	vault, err := s.l.rotation(s.names).AccountKeys(s.l.t.Context())
	if err != nil {
		s.l.t.Fatal(err)
	}
	count := 0
	for _, name := range s.nodes() {
		if !s.member(name) {
			continue
		}
		count++
		_, got, _ := naming.MemberSlot(strings.TrimPrefix(name, s.names.Cluster+"-"))
		if keys := s.keys[name]; got != generation || keys.Signs() != vault.Signs() || len(keys.Accepted()) != accept {
			s.l.t.Errorf("%s signs with the key of the vault: %t, and accepts %d keys, want %d", name, keys.Signs() == vault.Signs(),
				len(keys.Accepted()), accept)
		}
	}
	if count != members {
		s.l.t.Errorf("%d members, want %d", count, members)
	}
}

// jwt is a token of a service account that a key signed, as far as its header tells.
func jwt(key string) []byte {
	return []byte(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"`+key+`"}`)) + ".e30.c2ln")
}

// TestKeyRotation checks scenario 43 for the key of service accounts: after two passes over the members all of them sign with
// a new key. At every moment each member accepts the tokens of every other member. A third pass forgets former keys, once no
// token that they signed is in use.
func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "ha.yaml")
		began := time.Now()
		clock := began
		l.Now = func() time.Time { return clock }
		first := s.keys["prod-cp-0"]
		if err := l.rotateKeys(s, true); err != nil {
			t.Errorf("an end without former keys, which replaces the members: %v", err)
		}
		s.have(3, 1, 1)
		if err := l.rotateKeys(s, false); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		s.have(3, 3, 2)
		now := s.keys["prod-cp-0-3"]
		if now.Signs() == first.Signs() || !slices.Contains(now.Accepted(), first.Signs()) {
			t.Errorf("signs with %s, accepts %v; before it was %s", now.Signs(), now.Accepted(), first.Signs())
		}
		secrets := s.client.CoreV1().Secrets("team")
		for name, key := range map[string]string{"old": first.Signs(), "new": now.Signs()} {
			if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"},
				Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": jwt(key)}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		clock = began.Add(24 * time.Hour)
		if err := l.rotateKeys(s, true); !errors.Is(err, rotate.ErrEarly) || !strings.Contains(err.Error(), "by pods: wait") {
			t.Errorf("the end after a day: %v", err)
		}
		clock = began.Add(26 * time.Hour)
		if err := l.rotateKeys(s, true); !errors.Is(err, rotate.ErrEarly) || !strings.HasSuffix(err.Error(), "take --at-once: team/old") {
			t.Errorf("the end while a Secret has a token: %v", err)
		}
		s.have(3, 3, 2)
		if err := secrets.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := l.rotateKeys(s, true); err != nil {
			t.Fatal(err)
		}
		s.have(3, 4, 1)
		vault, err := l.rotation(s.names).Secret(t.Context(), rotate.Keys)
		if err != nil || strings.Count(vault, "BEGIN PRIVATE KEY") != 1 || strings.Count(vault, "BEGIN PUBLIC KEY") != 1 {
			t.Errorf("the key vault has former keys: %v", err)
		}
		l.unchanged(d, "ha.yaml")
	})
}

// TestKeyRotationAborted checks that a rotation which was aborted between its passes is not ended, but can begin anew.
func TestKeyRotationAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, _ := deployed(t, nil, "dev.yaml")
		s.absent = func(machine string) bool { return strings.HasSuffix(machine, "-cp-0-2") }
		first := s.keys["dev-cp-0"].Signs()
		if err := l.rotateKeys(s, false); err == nil || !strings.Contains(err.Error(), "not ready after 1m0s: dev-cp-0-2") {
			t.Fatalf("got %v", err)
		}
		if err := l.rotateKeys(s, true); !errors.Is(err, record.ErrOpen) {
			t.Errorf("another change beside it: %v", err)
		}
		if err := l.Close(t.Context(), s.names); err != nil {
			t.Fatal(err)
		}
		if err := l.rotateKeys(s, true); err == nil || !strings.Contains(err.Error(), "a rotation that is not complete") {
			t.Errorf("the end of a rotation that was aborted: %v", err)
		}
		s.absent = func(string) bool { return false }
		if err := l.rotateKeys(s, false); err != nil {
			t.Fatal(err)
		}
		s.have(1, 3, 3)
		if s.keys["dev-cp-0-3"].Signs() == first {
			t.Error("the first key signs")
		}
	})
}

// TestKeyRotationKilled checks that a rotation of the key of service accounts can be resumed after it was killed at any write
// to Azure. No key is in the record of the change or in the output.
func TestKeyRotationKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kill := 0; ; kill += stride() {
			l, s, _ := deployed(t, nil, "dev.yaml")
			first := s.keys["dev-cp-0"].Signs()
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill, late: kill%2 == 1}
			l.connect(k)
			s.connect(l.Engine)
			victim := *l
			err := victim.rotateKeys(s, false)
			l.connect(healthy)
			s.connect(l.Engine)
			open, openErr := l.Open(t.Context(), s.names)
			_, begins := s.keys["dev-cp-0"]
			switch {
			case openErr != nil:
				t.Fatal(openErr)
			case open != nil:
				doc, noDoc := l.client.Get(t.Context(), record.VersionID(s.names, record.ChangeVersion))
				if noDoc != nil || strings.Contains(string(doc), "BEGIN") {
					t.Errorf("the record of the change: %v, or it has a key", noDoc)
				}
				_, err = l.Resume(t.Context(), s.names)
			case begins:
				err = l.rotateKeys(s, false) // it died before it was recorded
			case k.spent:
				err = nil // it died when all was done
			}
			if err != nil {
				t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
			}
			s.have(1, 2, 2)
			if s.keys["dev-cp-0-2"].Signs() == first || strings.Contains(strings.Join(l.said, "\n"), "BEGIN") {
				t.Fatalf("died at %d: the first key signs, or a key was said", kill)
			}
			if !k.spent {
				t.Logf("%d places to die", kill)
				return
			}
		}
	})
}
