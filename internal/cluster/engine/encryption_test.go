package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/rotate"
)

// encryption simulates how members write Secrets.
type encryption struct {
	s *simulation
	// revision is that of members that take the keys of the key vault.
	revision string
	// members have the keys that the key vault had when they booted.
	members map[string]pki.EncryptionKeys
	// secrets are the keys with which Secrets are written.
	secrets map[string]string
}

// encrypting simulates how members write Secrets, and makes some Secrets.
func (s *simulation) encrypting(d definition.Definition) *encryption {
	s.l.t.Helper()
	d.Encrypted = true
	e := &encryption{s: s, revision: definition.Revision(d, ""), members: map[string]pki.EncryptionKeys{}, secrets: map[string]string{}}
	s.client.PrependReactor("*", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		switch a := a.(type) {
		case clienttesting.CreateActionImpl:
			accessor := a.GetObject().(*corev1.Secret)
			e.write(accessor.Namespace + "/" + accessor.Name)
		case clienttesting.PatchActionImpl:
			e.write(a.GetNamespace() + "/" + a.GetName())
		}
		return false, nil, nil
	})
	for i := range 3 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d", i), Namespace: "team"}}
		if _, err := s.client.CoreV1().Secrets("team").Create(s.l.t.Context(), secret, metav1.CreateOptions{}); err != nil {
			s.l.t.Fatal(err)
		}
	}
	return e
}

// look gives new members the keys of the key vault. Each member must be able to read what any other one writes, and what is written.
func (e *encryption) look() {
	e.s.l.t.Helper()
	live := map[string]bool{}
	for _, name := range e.s.nodes() {
		if live[name] = e.s.member(name); !live[name] {
			continue
		}
		if _, had := e.members[name]; !had {
			e.members[name] = e.boot(name)
		}
	}
	for name := range e.members {
		if !live[name] {
			delete(e.members, name)
		}
	}
	for reader, keys := range e.members {
		if e.s.removed[reader] {
			continue
		}
		readable := append([]string{pki.Unencrypted}, keys.Readable()...)
		for writer, others := range e.members {
			if !e.s.removed[writer] && !slices.Contains(readable, others.Encrypts()) {
				e.s.l.t.Errorf("%s writes with a key that %s does not have", writer, reader)
			}
		}
		for secret, key := range e.secrets {
			if !slices.Contains(readable, key) {
				e.s.l.t.Errorf("%s cannot read %s", reader, secret)
			}
		}
	}
}

func (e *encryption) boot(name string) pki.EncryptionKeys {
	e.s.l.t.Helper()
	if e.s.revisions[name] != e.revision {
		return pki.NoEncryptionKeys()
	}
	keys := e.vault()
	if len(keys.Readable()) == 1 && keys.Encrypts() == pki.Unencrypted {
		e.s.l.t.Errorf("%s finds no key in the key vault", name)
	}
	return keys
}

// vault are the keys of the key vault.
func (e *encryption) vault() pki.EncryptionKeys {
	e.s.l.t.Helper()
	keys, err := rotate.Rotation{Planes: e.s.l.azure.Vaults(), Names: e.s.names}.EncryptionKeys(context.Background())
	if err != nil {
		e.s.l.t.Fatal(err)
	}
	return keys
}

// write lets a member write a Secret: of all members one with another key than the key vault's, if there is one.
func (e *encryption) write(name string) {
	e.look()
	for _, keys := range e.members {
		if e.secrets[name] = keys.Encrypts(); keys.Encrypts() != e.vault().Encrypts() {
			return
		}
	}
}

// encrypted checks that all Secrets are written with the first key of the key vault, and how many keys members have.
func (e *encryption) encrypted(generation, readable int) {
	e.s.l.t.Helper()
	e.look()
	vault := e.vault()
	for name, key := range e.secrets {
		if key != vault.Encrypts() || key == pki.Unencrypted {
			e.s.l.t.Errorf("%s is written with %s, want %s", name, key, vault.Encrypts())
		}
	}
	for name, keys := range e.members {
		_, got, _ := naming.MemberSlot(strings.TrimPrefix(name, e.s.names.Cluster+"-"))
		if keys.Encrypts() != vault.Encrypts() || len(keys.Readable()) != readable || got != generation {
			e.s.l.t.Errorf("%s encrypts with %s and reads %v, want %s and %d keys, generation %d", name, keys.Encrypts(), keys.Readable(),
				vault.Encrypts(), readable, generation)
		}
	}
	if len(e.secrets) != 3 || len(e.members) == 0 {
		e.s.l.t.Errorf("%d Secrets, %d members", len(e.secrets), len(e.members))
	}
}

// rotateEncryption rotates the key that encrypts Secrets, or ends that.
func (l *lab) rotateEncryption(s *simulation, finish bool) error {
	r, err := l.EncryptionRotation(l.t.Context(), s.names, finish)
	if err != nil {
		return err
	}
	return l.Change(l.t.Context(), r)
}

func plain(d *definition.Definition) { d.Encrypted = false }

// TestEncryptionRotation checks that members of a new cluster encrypt Secrets, that two passes replace the key, and that a third one forgets
// the former key. Every member can read every Secret at every moment. A backup of before that is refused.
func TestEncryptionRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, nil, "ha.yaml")
		e := s.encrypting(d)
		e.encrypted(0, 1)
		first := e.vault().Encrypts()
		if err := l.rotateEncryption(s, false); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		e.encrypted(2, 2)
		if now := e.vault(); now.Encrypts() == first || now.Complete().IsZero() {
			t.Errorf("the vault encrypts with %s since %v", now.Encrypts(), now.Complete())
		}
		before := time.Now().Add(-time.Minute)
		if err := l.rotateEncryption(s, true); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		e.encrypted(3, 1)
		l.unchanged(d, "ha.yaml")
		if status, err := l.Status(t.Context(), s.names); err != nil || status.Secrets != "encrypted with the keys of the key vault" {
			t.Errorf("status: %q %v", status.Secrets, err)
		}
		s.lose()
		old := "etcd/" + before.UTC().Format("20060102T150405Z") + "-1.db"
		now := "etcd/" + time.Now().Add(time.Minute).UTC().Format("20060102T150405Z") + "-2.db"
		l.Backups = &archive{names: []string{old, now}}
		if err := l.Restore(t.Context(), s.names, old); err == nil || !strings.Contains(err.Error(), "may have Secrets of keys that were forgotten") {
			t.Errorf("the restore of a backup that needs a forgotten key: %v", err)
		}
		if err := l.Restore(t.Context(), s.names, ""); err != nil {
			t.Fatal(err)
		}
		e.look()
	})
}

// TestEncryptionBegins checks a cluster of an earlier kaz: deployments and changes leave it as it is, and the first rotation begins to
// encrypt its Secrets.
func TestEncryptionBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d := deployed(t, plain, "dev.yaml")
		e := s.encrypting(d)
		e.look()
		if r, err := l.Deploy(t.Context(), example(t, nil, "dev.yaml"), l.save); err != nil || !r.Unchanged {
			t.Errorf("a deployment of its files: %v %+v", err, r)
		}
		r, err := l.Rotation(t.Context(), s.names)
		if err == nil {
			err = l.Change(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		e.look()
		if there, err := l.Exists(t.Context(), s.names.VaultID().Child("secrets", s.names.Secret(rotate.Encryption))); there || err != nil {
			t.Errorf("the key vault has a key: %t %v", there, err)
		}
		if err := l.rotateEncryption(s, true); err == nil || !strings.Contains(err.Error(), "does not encrypt Secrets") {
			t.Errorf("the end of no rotation: %v", err)
		}
		if status, err := l.Status(t.Context(), s.names); err != nil || !strings.Contains(status.Secrets, "rotate dev --encryption begins it") {
			t.Errorf("status: %q %v", status.Secrets, err)
		}
		if err := l.rotateEncryption(s, false); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
		}
		e.encrypted(3, 1)
		if r, err := l.Deploy(t.Context(), example(t, nil, "dev.yaml"), l.save); err != nil || !r.Unchanged {
			t.Errorf("a deployment of its files: %v %+v", err, r)
		}
	})
}

// TestEncryptionAborted checks that members which are made after an aborted rotation can read all Secrets, in whichever pass it stopped.
func TestEncryptionAborted(t *testing.T) {
	for _, last := range []string{"-cp-0-1", "-cp-0-2"} {
		synctest.Test(t, func(t *testing.T) {
			l, s, d := deployed(t, plain, "dev.yaml")
			e := s.encrypting(d)
			s.absent = func(machine string) bool { return strings.HasSuffix(machine, last) }
			if err := l.rotateEncryption(s, false); err == nil || !strings.Contains(err.Error(), "not ready after 1m0s: dev"+last) {
				t.Fatalf("got %v", err)
			}
			if err := l.Close(t.Context(), s.names); err != nil {
				t.Fatal(err)
			}
			s.absent = func(string) bool { return false }
			e.write("team/s-0")
			r, err := l.Rotation(t.Context(), s.names) // as a repair makes members, too
			if err == nil {
				err = l.Change(t.Context(), r)
			}
			if err != nil {
				t.Fatal(err)
			}
			e.write("team/s-1")
			if err := l.rotateEncryption(s, true); err == nil {
				t.Error("a rotation that was aborted was ended")
			}
			if err := l.rotateEncryption(s, false); err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(l.said, "\n"))
			}
			e.look()
			for name, key := range e.secrets {
				if key != e.vault().Encrypts() {
					t.Errorf("%s is written with %s", name, key)
				}
			}
		})
	}
}

// TestEncryptionKilled checks that the begin of the encryption can be resumed after it was killed at a write to Azure or to a Secret. It tries
// every fifth write. No key is in the record of the change or in the output.
func TestEncryptionKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kill := 0; ; kill += 5 * stride() {
			l, s, d := deployed(t, plain, "dev.yaml")
			e := s.encrypting(d)
			e.look()
			healthy := l.azure.Transport()
			k := &killed{next: healthy, left: kill, late: kill%2 == 1}
			l.connect(k)
			s.connect(l.Engine)
			s.mortal(k)
			victim := *l
			err := victim.rotateEncryption(s, false)
			dead := k.spent
			k.left, k.spent = 1000, false // others live
			l.connect(healthy)
			s.connect(l.Engine)
			e.look()
			open, openErr := l.Open(t.Context(), s.names)
			switch {
			case openErr != nil:
				t.Fatal(openErr)
			case open != nil:
				doc, noDoc := l.client.Get(t.Context(), record.VersionID(s.names, record.ChangeVersion))
				if noDoc != nil || leaks(string(doc), e) {
					t.Errorf("the record of the change: %v, or it has a key", noDoc)
				}
				_, err = l.Resume(t.Context(), s.names)
			case slices.Contains(s.nodes(), "dev-cp-0"):
				err = l.rotateEncryption(s, false) // it died before it was recorded
			case dead:
				err = nil // it died when all was done
			}
			if err != nil {
				t.Fatalf("died at %d: %v\n%s", kill, err, strings.Join(l.said, "\n"))
			}
			e.encrypted(2, 1)
			if leaks(strings.Join(l.said, "\n"), e) {
				t.Fatalf("died at %d: a key was said", kill)
			}
			if !dead {
				t.Logf("%d places to die", kill)
				return
			}
		}
	})
}

// leaks reports whether a text has a key.
func leaks(text string, e *encryption) bool {
	for line := range strings.Lines(e.vaultText()) {
		if fields := strings.Fields(line); len(fields) == 3 && strings.Contains(text, fields[2]) {
			return true
		}
	}
	return false
}

// vaultText is the secret of the key vault, "" for none.
func (e *encryption) vaultText() string {
	text, _ := rotate.Rotation{Planes: e.s.l.azure.Vaults(), Names: e.s.names}.Secret(context.Background(), rotate.Encryption)
	return text
}
