package pki

import (
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAccountKeys follows the keys of service accounts through a rotation. The next key is accepted before it signs. The
// former key is accepted until it is forgotten.
func TestAccountKeys(t *testing.T) {
	s, err := New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := s.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) AccountKeys {
		t.Helper()
		k, err := ParseAccountKeys(text)
		if err != nil || k.Text() != text {
			t.Fatalf("%v, or the text is another one", err)
		}
		return k
	}
	// state checks what is accepted, and which private keys there are.
	state := func(k AccountKeys, accepted, private []string) {
		t.Helper()
		if !slices.Equal(k.Accepted(), accepted) || k.Signs() != private[0] || len(k.private) != len(private) {
			t.Errorf("accepted %v, signs %s with %d private keys; want %v and %v", k.Accepted(), k.Signs(), len(k.private), accepted, private)
		}
	}
	first := read(parameters["pkiServiceAccount"])
	old := first.Signs()
	state(first, []string{old}, []string{old})
	both, err := first.WithNext()
	if err != nil {
		t.Fatal(err)
	}
	both = read(both.Text())
	fresh := both.Next()
	state(both, []string{old, fresh}, []string{old, fresh})
	if again, err := both.WithNext(); err != nil || again.Text() != both.Text() {
		t.Errorf("a second next key was made: %v", err)
	}
	switched := read(both.Switched().Text())
	state(switched, []string{fresh, old}, []string{fresh})
	if !switched.Complete().IsZero() {
		t.Error("it is complete before anybody noted it")
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	noted := read(switched.CompleteSince(at).Text())
	if !noted.Complete().Equal(at) {
		t.Errorf("complete since %v, want %v", noted.Complete(), at)
	}
	state(read(noted.Alone().Text()), []string{fresh}, []string{fresh})
	if next, err := noted.WithNext(); err != nil || !next.Complete().IsZero() {
		t.Errorf("the next rotation begins as a complete one: %v", err)
	}
}

// TestDamagedAccountKeys checks that damaged keys are refused without a word of them.
func TestDamagedAccountKeys(t *testing.T) {
	s, err := New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	one, err := accountBundle(s.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	public, private := pem.Decode(one)
	other, err := s.CA.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "no private key": string(pem.EncodeToMemory(public)), "no public key": string(private),
		"a private key of another":  string(pem.EncodeToMemory(public)) + string(other),
		"a key that is cut":         "-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n",
		"a public key that is cut":  "-----BEGIN PUBLIC KEY-----\nMIGHAgEA\n-----END PUBLIC KEY-----\n" + string(one),
		"a certificate and nothing": string(s.CA.Certificate()),
	} {
		if _, err := ParseAccountKeys(text); err == nil || strings.Contains(err.Error(), "MIGH") {
			t.Errorf("%s: got %v, want an error without a key", name, err)
		}
	}
}

// FuzzSecrets checks that any text of the key vault is a secret or an error, and that a secret has what it must have.
func FuzzSecrets(f *testing.F) {
	s, err := New(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	parameters, err := s.Parameters()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range parameters {
		f.Add(text)
	}
	if both, err := s.CA.Trust(time.Now()); err == nil {
		text, _ := both.Bundle()
		f.Add(string(text))
	}
	f.Add(completeMark + "2030-01-02T03:04:05Z\n" + parameters["pkiServiceAccount"])
	f.Add(`{"token":"abcdef.0123456789abcdef","caCertHash":"sha256:00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := ParseAccountKeys(text); err == nil {
			if again, err := ParseAccountKeys(k.Text()); err != nil || !slices.Equal(again.Accepted(), k.Accepted()) || again.Signs() != k.Signs() {
				t.Errorf("read again: %v", err)
			}
		}
		if a, err := Parse([]byte(text)); err == nil {
			bundle, err := a.Bundle()
			if again, parseErr := Parse(bundle); err != nil || parseErr != nil || again.Phase() != a.Phase() || !again.SameTrust(a.Trusted()) {
				t.Errorf("an authority read again: %v %v", err, parseErr)
			}
		}
		if j, err := ParseJoin(text); err == nil && len(j.ID()) != 6 {
			t.Errorf("the token has the ID %q", j.ID())
		}
	})
}
