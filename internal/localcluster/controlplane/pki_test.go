package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func services() netip.Prefix { return netip.MustParsePrefix("10.96.0.0/16") }

func opened(t *testing.T, dir string) *pki {
	t.Helper()
	p, err := openPKI(dir, services(), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// contents reads every file below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestKeysAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	opened(t, dir)
	first := contents(t, dir)
	opened(t, dir)
	if diff := cmp.Diff(first, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	for name := range first {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".key" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %s", name, info.Mode())
		}
	}
}

func certificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	block, err := readPEM(file)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(block)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestTheServingCertificateHoldsForEveryNameOfTheServer(t *testing.T) {
	p := opened(t, t.TempDir())
	roots := x509.NewCertPool()
	roots.AddCert(p.cluster.cert)
	serving := certificate(t, p.serving)
	for _, name := range []string{"127.0.0.1", "::1", "localhost", "10.96.0.1", "kubernetes.default.svc"} {
		if _, err := serving.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := serving.Verify(x509.VerifyOptions{DNSName: "example.com", Roots: roots}); err == nil {
		t.Error("it holds for example.com")
	}
}

// TestAuthoritiesAreApart checks that no authority accepts the certificates of another one.
func TestAuthoritiesAreApart(t *testing.T) {
	p := opened(t, t.TempDir())
	certs := map[string]string{p.cluster.file: p.serving, p.etcd.file: p.etcdClient, p.front.file: p.proxy}
	for authority := range certs {
		roots := x509.NewCertPool()
		roots.AddCert(certificate(t, authority))
		for own, file := range certs {
			_, err := certificate(t, file).Verify(x509.VerifyOptions{
				Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			})
			if (err == nil) != (own == authority) {
				t.Errorf("%s under %s: %v", filepath.Base(file), filepath.Base(authority), err)
			}
		}
	}
}

func TestACertificateIsIssuedAnewWhenItNoLongerServes(t *testing.T) {
	dir := t.TempDir()
	a, err := openAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	want := request{user: "me", groups: []string{"us"}, names: []string{"here"}, ips: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certFile, keyFile, err := a.issue("x", want)
	if err != nil {
		t.Fatal(err)
	}
	kept := certificate(t, certFile)
	for what, corrupt := range map[string]func(){
		"another user": func() {
			reissue(t, a, "x", request{user: "you", groups: want.groups, names: want.names, ips: want.ips})
		},
		"another group":        func() { reissue(t, a, "x", request{user: "me", names: want.names, ips: want.ips}) },
		"another name":         func() { reissue(t, a, "x", request{user: "me", groups: want.groups, ips: want.ips}) },
		"about to expire":      func() { expiring(t, a, certFile, keyFile, want) },
		"damaged":              func() { write(t, certFile, "no certificate") },
		"without its key":      func() { _ = os.Remove(keyFile) },
		"of another authority": func() { foreign(t, certFile, keyFile, want) },
	} {
		corrupt()
		reissue(t, a, "x", want)
		got := certificate(t, certFile)
		if got.Equal(kept) || !a.fits(got, want) {
			t.Errorf("%s: it was not replaced by one that serves", what)
		}
		if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		kept = got
	}
	reissue(t, a, "x", want)
	if !certificate(t, certFile).Equal(kept) {
		t.Error("one that serves was replaced")
	}
}

func reissue(t *testing.T, a *authority, name string, r request) {
	t.Helper()
	if _, _, err := a.issue(name, r); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func expiring(t *testing.T, a *authority, certFile, keyFile string, r request) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: r.user, Organization: r.groups}, DNSNames: r.names, IPAddresses: r.ips,
		NotAfter: time.Now().Add(renewBefore - time.Hour),
	}
	cert, err := sign(template, a.cert, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := writePair(cert, key, certFile, keyFile); err != nil {
		t.Fatal(err)
	}
}

func foreign(t *testing.T, certFile, keyFile string, r request) {
	t.Helper()
	other, err := openAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := other.issue("x", r)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{cert: certFile, key: keyFile} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(data))
	}
}

// TestADamagedAuthorityIsNotReplaced: with a new authority every issued kubeconfig would stop working.
func TestADamagedAuthorityIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	opened(t, dir)
	file := filepath.Join(dir, "ca.key")
	write(t, file, "damaged")
	if _, err := openPKI(dir, services(), netip.Addr{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "damaged" {
		t.Errorf("the file is now %q, %v", data, err)
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	p := opened(t, filepath.Join(dir, "pki"))
	file := filepath.Join(dir, "kubeconfig")
	if err := p.writeKubeconfig(file, "ccm", "https://127.0.0.1:1234", "system:ccm", []string{"clouds"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got kubeconfig
	if err := yaml.UnmarshalStrict(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "ccm@kaz" || got.Contexts[0].Name != "ccm@kaz" || got.Contexts[0].Context.User != "ccm" {
		t.Errorf("contexts %+v, current %s", got.Contexts, got.CurrentContext)
	}
	if c := got.Clusters[0].Cluster; c.Server != "https://127.0.0.1:1234" {
		t.Errorf("server %s", c.Server)
	}
	pair, err := tls.X509KeyPair(got.Users[0].User.Certificate, got.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	if s := pair.Leaf.Subject; s.CommonName != "system:ccm" || !cmp.Equal(s.Organization, []string{"clouds"}) {
		t.Errorf("subject %s", s)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestBadKubeconfigs(t *testing.T) {
	p := opened(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for _, c := range []struct{ name, user, want string }{
		{"../x", "u", `kubeconfig name "../x": want lower-case letters, digits, dots and dashes`},
		{"x", "", `kubeconfig x: no user given`},
	} {
		if err := p.writeKubeconfig(file, c.name, "https://s", c.user, nil); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
