package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

// rotation is an authority in each state of the key vault during a rotation, in their order.
func rotation(t *testing.T, now time.Time) []Authority {
	t.Helper()
	first, err := newAuthority("kubernetes", now)
	if err != nil {
		t.Fatal(err)
	}
	all := []Authority{first}
	for _, next := range []func(Authority) (Authority, error){
		func(a Authority) (Authority, error) { return a.Trust(now) }, Authority.Issue, Authority.Finish,
	} {
		a, err := next(all[len(all)-1])
		if err != nil {
			t.Fatal(err)
		}
		text, err := a.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := read.Bundle(); err != nil || !bytes.Equal(text, again) || read.Phase() != a.Phase() {
			t.Errorf("%s: read again it is %s: %v", a.Phase(), read.Phase(), err)
		}
		all = append(all, read)
	}
	return all
}

// accepts checks a client's certificate that one authority has issued. The server trusts what another authority trusts.
func accepts(t *testing.T, server, client Authority, now time.Time) error {
	t.Helper()
	text, _, err := client.Client("kaz", "", now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.Trusted())
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// TestAuthority follows an authority through a rotation. Machines of each state accept the certificates of the states before
// and after it. At the end the certificates of the former authority are not accepted.
func TestAuthority(t *testing.T) {
	now := time.Now()
	all := rotation(t, now)
	phases := []Phase{Settled, Trusting, Issuing, Settled}
	for i, a := range all {
		if a.Phase() != phases[i] {
			t.Errorf("state %d is %s, want %s", i, a.Phase(), phases[i])
		}
		for j, other := range all {
			err := accepts(t, a, other, now)
			if near := i-j <= 1 && j-i <= 1; near && err != nil {
				t.Errorf("state %d does not accept a certificate of state %d: %v", i, j, err)
			}
			if (i == 0) != (j == 0) && i+j == 3 && err == nil {
				t.Errorf("state %d accepts a certificate of state %d", i, j)
			}
		}
		if !a.SameTrust(a.Trusted()) || a.SameTrust(all[(i+1)%4].Trusted()) && i != 1 {
			t.Errorf("state %d: what it trusts is not what it says", i)
		}
	}
	if err := accepts(t, all[1], all[1].Newest(), now); err != nil {
		t.Errorf("an administrator gets a certificate of the next authority, which is trusted: %v", err)
	}
	for i, want := range []bool{false, true, true, true} {
		if got := all[1].TrustedBy(all[i].Trusted()); got != want {
			t.Errorf("a client of state %d trusts the next authority: %t, want %t", i, got, want)
		}
		text, _, err := all[i].Client("kaz", "", now, now.Add(time.Hour))
		if err != nil || all[2].Accepts(text) != (i > 1) {
			t.Errorf("a client of state %d is accepted without the former authority: %t %v", i, all[2].Accepts(text), err)
		}
	}
	if _, err := all[2].Bundle(); err != nil {
		t.Fatal(err)
	}
	if text, _ := all[2].Bundle(); strings.Count(string(text), "PRIVATE KEY-----\n") != 2 {
		t.Error("the key of the former authority is in the vault")
	}
}

// TestAuthorityAgain checks that a step which is done again changes nothing, and that none can be left out.
func TestAuthorityAgain(t *testing.T) {
	now := time.Now()
	all := rotation(t, now)
	trust := func(a Authority) (Authority, error) { return a.Trust(now) }
	for name, test := range map[string]struct {
		from int
		do   func(Authority) (Authority, error)
		want int // the state after it, -1 for an error
	}{
		"trust again": {1, trust, 1}, "trust while the former one is trusted": {2, trust, -1},
		"issue without a next one": {0, Authority.Issue, -1}, "issue again": {2, Authority.Issue, 2},
		"finish before it issues": {1, Authority.Finish, -1}, "finish again": {3, Authority.Finish, 3},
	} {
		got, err := test.do(all[test.from])
		if test.want < 0 {
			if err == nil || strings.Contains(err.Error(), "BEGIN") {
				t.Errorf("%s: got %v, want an error", name, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got.Trusted(), all[test.want].Trusted()) || got.Phase() != all[test.want].Phase() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedAuthority checks that damaged authorities are refused without a word of their keys.
func TestDamagedAuthority(t *testing.T) {
	all := rotation(t, time.Now())
	key, err := keyPEM(all[0].key)
	if err != nil {
		t.Fatal(err)
	}
	three := slicesOf(all[0].Certificate(), all[3].Certificate(), all[0].Certificate(), key)
	for name, text := range map[string][]byte{
		"nothing": nil, "no key": all[0].Certificate(), "no certificate": key, "the key of another one": slicesOf(all[3].Certificate(), key),
		"three certificates": three, "a key that is cut": []byte("-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n"),
	} {
		if _, err := Parse(text); err == nil || strings.Contains(err.Error(), "MIGH") {
			t.Errorf("%s: got %v, want an error without a key", name, err)
		}
	}
}

func slicesOf(all ...[]byte) []byte { return bytes.Join(all, nil) }
