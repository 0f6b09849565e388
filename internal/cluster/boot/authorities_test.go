package boot

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/cluster/pki"
)

// rotatingHost is a member that boots while the key vault has two certificate authorities. Its kubeadm writes kubeconfigs
// with certificates of the first authority. Its kubelet has a certificate of the former one, which the controller manager of
// another member has signed.
func rotatingHost(t *testing.T, c *cloud, id string) (h *host, issues, former pki.Authority) {
	t.Helper()
	s, err := pki.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	both, err := s.CA.Trust(time.Now())
	if err == nil {
		issues, err = both.Issue()
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := issues.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	c.authority = string(text)
	h = newHost(t, c, id, "control-plane")
	certificate, key, err := s.CA.Client("system:node:prod-cp-0", "system:nodes", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	h.write("signed.pem", string(certificate)+string(key), 0o600)
	h.write("bin/kubeadm", fmt.Sprintf(`#!/bin/sh
[ "$1" = version ] && { echo v1.36.3; exit; }
echo "kubeadm $*" | sed "s|$KAZ_ROOT||g" >> "$KAZ_ROOT/calls"
cd "$KAZ_ROOT/etc/kubernetes"
config() { printf 'clusters:\n- cluster:\n    certificate-authority-data: %%s\n    server: https://api\n' "%s" > "$1.conf"; }
case "$*" in
  "join phase control-plane-prepare kubeconfig"*) config admin; config scheduler ;;
  join*|init*)
    [ "$1" = join ] || config admin
    config kubelet
    ls "$KAZ_ROOT/etc/kaz/patches" >> "$KAZ_ROOT/calls"
    mkdir -p "$KAZ_ROOT/var/lib/kubelet/pki"
    cp "$KAZ_ROOT/signed.pem" "$KAZ_ROOT/var/lib/kubelet/pki/kubelet-client-1.pem"
    ln -sf kubelet-client-1.pem "$KAZ_ROOT/var/lib/kubelet/pki/kubelet-client-current.pem" ;;
  "certs renew all") config admin ;;
esac
`, base64.StdEncoding.EncodeToString(issues.Certificate())), 0o755)
	return h, issues, s.CA
}

// read is a file of the machine.
func (h *host) read(path string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.root, path))
	if err != nil {
		h.t.Error(err)
	}
	return string(text)
}

// trusts checks that the kubeconfigs of the machine have both authorities.
func (h *host) trusts(authority pki.Authority, names ...string) {
	h.t.Helper()
	for _, name := range names {
		_, rest, _ := strings.Cut(h.read("etc/kubernetes/"+name+".conf"), "certificate-authority-data: ")
		data, rest, _ := strings.Cut(rest, "\n")
		roots, err := base64.StdEncoding.DecodeString(data)
		if err != nil || !authority.SameTrust(roots) || rest != "    server: https://api\n" {
			h.t.Errorf("%s.conf does not trust both authorities: %v\n%s", name, err, data)
		}
	}
}

// TestAuthoritiesOfMember checks a member that boots during a rotation of the certificate authorities. kubeadm reaches
// members with certificates of either authority. The controller manager has a file with one certificate. The kubelet has a
// certificate of the authority that issues.
func TestAuthoritiesOfMember(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the script needs openssl")
	}
	c := newCloud(t)
	c.winner = "vm-b"
	h, issues, former := rotatingHost(t, c, "vm-a")
	calls, _, err := h.boot()
	want := "kubeadm join phase control-plane-prepare kubeconfig --config /run/kaz/kubeadm.yaml\n" +
		"kubeadm join --config /run/kaz/kubeadm.yaml --ignore-preflight-errors=none --skip-phases control-plane-prepare/kubeconfig\n" +
		"kube-apiserver-kaz+json.yaml\nkube-controller-manager-kaz+json.yaml\nsystemctl restart kubelet\nkubeadm upgrade apply phase bootstrap-token"
	if err != nil || !strings.Contains(calls, want) {
		t.Errorf("%v\n%s\nwant\n%s", err, calls, want)
	}
	h.trusts(issues, "admin", "scheduler", "kubelet")
	for path, want := range map[string]string{
		"etc/kubernetes/pki/ca.crt": string(issues.Trusted()), "etc/kubernetes/pki/ca-issues.crt": string(issues.Certificate()),
		"etc/kubernetes/pki/front-proxy-ca.crt": string(issues.Trusted()),
		"etc/kaz/patches/kube-controller-manager-kaz+json.yaml": "[{op: add, path: /spec/containers/0/command/-, value: " +
			"--cluster-signing-cert-file=/etc/kubernetes/pki/ca-issues.crt}]\n",
	} {
		if got := h.read(path); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
	text := h.read("var/lib/kubelet/pki/kubelet-client-current.pem")
	block, _ := pem.Decode([]byte(text))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !issues.Accepts([]byte(text)) || former.Accepts([]byte(text)) || certificate.Subject.CommonName != "system:node:prod-cp-0" ||
		certificate.Subject.Organization[0] != "system:nodes" || certificate.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth ||
		!strings.Contains(text, "BEGIN PRIVATE KEY") {
		t.Errorf("the kubelet's certificate: %v %v", err, certificate)
	}
	if left, _ := filepath.Glob(filepath.Join(h.root, "run/kaz/kubelet-client*")); len(left) > 0 {
		t.Errorf("%v stay on the machine", left)
	}
}

// TestAuthoritiesOfFirstMember checks a member that makes the control plane anew during a rotation, and its later renewal of certificates.
func TestAuthoritiesOfFirstMember(t *testing.T) {
	h, issues, former := rotatingHost(t, newCloud(t), "vm-a")
	certificate, key, err := issues.Client("system:node:prod-cp-0", "system:nodes", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	h.write("signed.pem", string(certificate)+string(key), 0o600)
	calls, _, err := h.boot()
	want := "kubeadm init --config /run/kaz/kubeadm.yaml --ignore-preflight-errors=none\nkube-apiserver-kaz+json.yaml\nkube-controller-manager-kaz+json.yaml\n" +
		"systemctl restart kubelet\nkubeadm upgrade apply phase bootstrap-token --help\nkubeadm upgrade apply phase bootstrap-token v1.36.3"
	if err != nil || !strings.Contains(calls, want) {
		t.Errorf("%v\n%s\nwant\n%s", err, calls, want)
	}
	h.trusts(issues, "admin", "kubelet")
	h.write("bin/pgrep", "#!/bin/sh\nexit 1\n", 0o755)
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		h.write("etc/kubernetes/manifests/"+name+".yaml", name, 0o600)
	}
	if calls, _, err := h.run("renew"); err != nil || !strings.Contains(calls, "kubeadm certs renew all") {
		t.Errorf("%v\n%s", err, calls)
	}
	h.trusts(issues, "admin")
	if text := h.read("etc/kubernetes/pki/ca.key"); !strings.HasPrefix(text, "-----BEGIN PRIVATE KEY") || former.Phase() != pki.Settled {
		t.Error("the member has no key")
	}
}

// TestAuthorityAlone checks that a member of a cluster without a rotation has nothing of one.
func TestAuthorityAlone(t *testing.T) {
	c := newCloud(t)
	c.winner = "vm-b"
	h := newHost(t, c, "vm-a", "control-plane")
	h.write("etc/kaz/patches/kube-controller-manager-kaz+json.yaml", "of a rotation", 0o600)
	calls, _, err := h.boot()
	if err != nil || strings.Contains(calls, "skip-phases") || strings.Contains(calls, "join phase") {
		t.Errorf("%v\n%s", err, calls)
	}
	for _, path := range []string{"etc/kubernetes/pki/ca-issues.crt", "etc/kaz/patches/kube-controller-manager-kaz+json.yaml"} {
		if _, err := os.Stat(filepath.Join(h.root, path)); !os.IsNotExist(err) {
			t.Errorf("the member has %s", path)
		}
	}
}
