package boot

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"

	"kaz/internal/cluster/pki"
	"kaz/internal/plan/joining"
)

// bootstrapConfig is the kubeconfig that kubeadm leaves for the kubelet.
const bootstrapConfig = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Yw==
    server: https://api
  name: kubernetes
users:
- name: tls-bootstrap-token-user
  user:
    token: abcdef.0123456789abcdef
`

// starting is a machine on which kubeadm starts the kubelet.
func starting(t *testing.T, c *cloud, role string) *host {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the script needs openssl")
	}
	h := newHost(t, c, "vm", role)
	h.write("etc/kubernetes/bootstrap-kubelet.conf", bootstrapConfig, 0o600)
	return h
}

// hasIdentity checks the kubeconfig of the kubelet. It returns the certificate, whose key is beside it.
func (h *host) hasIdentity() *x509.Certificate {
	h.t.Helper()
	const current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	want := strings.Replace(bootstrapConfig, "token: abcdef.0123456789abcdef", "client-certificate: "+current+"\n    client-key: "+current, 1)
	if got := h.read("etc/kubernetes/kubelet.conf"); got != want {
		h.t.Errorf("kubelet.conf:\n%s\nwant\n%s", got, want)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(h.root, current), filepath.Join(h.root, current))
	if err != nil {
		h.t.Fatal(err)
	}
	file, err := os.Lstat(filepath.Join(h.root, current))
	if err != nil || file.Mode()&os.ModeSymlink == 0 { // the kubelet replaces it when it renews its certificate
		h.t.Errorf("%s is no link: %v", current, err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.root, "run/kaz/kubelet-identity*")); len(left) > 0 {
		h.t.Errorf("%v stay on the machine", left)
	}
	return pair.Leaf
}

// TestIdentityOfNode checks the request of a node for the certificate of its kubelet: its document, for its key alone.
func TestIdentityOfNode(t *testing.T) {
	c := newCloud(t)
	c.document = "QUJD+/=="
	h := starting(t, c, "node")
	authority, err := pki.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := authority.CA.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	h.write("ca.pem", string(bundle), 0o600)
	h.write("bin/kubectl", `#!/bin/sh
echo "kubectl $*" | sed "s|$KAZ_ROOT||g" >> "$KAZ_ROOT/calls"
case "$*" in
  *create*) cat > "$KAZ_ROOT/request.json"; echo kaz-node-1 ;;
  *get*)
    # The first answer is that nobody has decided.
    [ -e "$KAZ_ROOT/answer" ] || { touch "$KAZ_ROOT/answer"; echo "||"; exit; }
    openssl x509 -req -in "$KAZ_ROOT/run/kaz/kubelet-identity.csr" -CA "$KAZ_ROOT/ca.pem" -CAkey "$KAZ_ROOT/ca.pem" -set_serial 1 \
      -out "$KAZ_ROOT/signed" 2>/dev/null
    echo "Approved|$(base64 -w0 "$KAZ_ROOT/signed")|fine" ;;
esac
`, 0o755)
	calls, out, err := h.run("identity")
	if err != nil || !strings.Contains(calls, "kubectl --kubeconfig /etc/kubernetes/bootstrap-kubelet.conf --request-timeout 10s create") {
		t.Fatalf("%v\n%s\n%s", err, calls, out)
	}
	if leaf := h.hasIdentity(); leaf.Subject.CommonName != "system:node:prod-cp-0" {
		t.Errorf("the certificate is of %s", leaf.Subject)
	}
	var request certificates.CertificateSigningRequest
	if err := json.Unmarshal([]byte(h.read("request.json")), &request); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(request.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || joining.Nonce(parsed.RawSubjectPublicKeyInfo) != c.nonce {
		t.Errorf("%v: the nonce is %s", err, c.nonce)
	}
	if request.Annotations[joining.Annotation] != c.document {
		t.Errorf("annotations %v", request.Annotations)
	}
	// Nothing of the request is refused, but that its document is none.
	request.Spec.Groups = []string{"system:bootstrappers:kubeadm:default-node-token"}
	if _, err := joining.Read(&request); !joining.Concerns(&request) || err == nil || !strings.Contains(err.Error(), "the signed document is not") {
		t.Errorf("the request: %v", err)
	}
	if calls, _, err := h.run("identity"); err != nil || calls != "" {
		t.Errorf("a kubelet with a certificate: %v\n%s", err, calls)
	}
}

// TestIdentityRefused checks that a node says why it gets no certificate, also in the report of its boot.
func TestIdentityRefused(t *testing.T) {
	for name, c := range map[string]struct{ document, answer, want string }{
		"denied":      {"QUJD", "Denied||the signed document is of another machine", "the signed document is of another machine"},
		"failed":      {"QUJD", "Approved Failed||a signer refused", "a signer refused"},
		"undecided":   {"QUJD", "||", "nobody has decided about the request"},
		"no document": {"", "||", "the metadata service gives no signed document"},
		"no base64":   {"QUJD\\\"", "||", "the metadata service gives no signed document"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newCloud(t)
			cloud.document = c.document
			h := starting(t, cloud, "node")
			h.write("bin/kubectl", "#!/bin/sh\n[ \"$1\" = version ] && { echo Client Version: v1.36.3; exit; }\ncase \"$*\" in\n"+
				"  *create*) cat > /dev/null; echo kaz-node-1 ;;\n  *get*) echo '"+c.answer+"' ;;\nesac\n", 0o755)
			if _, out, err := h.run("identity"); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v\n%s\nwant %s", err, out, c.want)
			}
			if _, err := os.Stat(filepath.Join(h.root, "etc/kubernetes/kubelet.conf")); !os.IsNotExist(err) {
				t.Error("the kubelet has a kubeconfig")
			}
			h.touch("broken")
			if _, report, err := h.boot(); err == nil || !strings.Contains(report, c.want) {
				t.Errorf("%v\n%s\nwant %s", err, report, c.want)
			}
		})
	}
}

// TestIdentityOfMember checks that a member signs the certificate of its kubelet itself, in a rotation with the authority that issues.
func TestIdentityOfMember(t *testing.T) {
	secrets, err := pki.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	both, err := secrets.CA.Trust(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issues, err := both.Issue()
	if err != nil {
		t.Fatal(err)
	}
	for name, authority := range map[string]pki.Authority{"alone": secrets.CA, "rotation": issues} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			h := starting(t, c, "control-plane")
			bundle, err := authority.Bundle()
			if err != nil {
				t.Fatal(err)
			}
			key, _, _ := strings.Cut(string(bundle[strings.Index(string(bundle), "-----BEGIN PRIVATE KEY"):]), "-----END PRIVATE KEY-----\n")
			h.write("etc/kubernetes/pki/ca.key", key+"-----END PRIVATE KEY-----\n", 0o600)
			h.write("etc/kubernetes/pki/ca.crt", string(authority.Trusted()), 0o600)
			h.write("etc/kubernetes/pki/ca-issues.crt", string(authority.Certificate()), 0o600)
			if calls, out, err := h.run("identity"); err != nil || strings.Contains(calls, "kubectl") {
				t.Fatalf("%v\n%s\n%s", err, calls, out)
			}
			leaf := h.hasIdentity()
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
			if !authority.Accepts(text) || leaf.Subject.CommonName != "system:node:prod-cp-0" || leaf.Subject.Organization[0] != "system:nodes" ||
				leaf.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
				t.Errorf("the certificate is %s, %v", leaf.Subject, leaf.ExtKeyUsage)
			}
			if len(c.asked) > 0 {
				t.Errorf("a member asks for %v", c.asked)
			}
		})
	}
}

// TestUnbind checks that kubeadm's binding, with which the join token is enough, goes where a controller approves requests.
func TestUnbind(t *testing.T) {
	for _, there := range []bool{true, false} {
		for _, role := range []string{"makes", "joins"} {
			c := newCloud(t)
			if role == "joins" {
				c.winner = "another"
			}
			h := newHost(t, c, "vm", "control-plane")
			h.write("bin/kubectl", `#!/bin/sh
[ "$1" = version ] && { echo Client Version: v1.36.3; exit; }
echo "kubectl $*" | sed "s|$KAZ_ROOT||g" >> "$KAZ_ROOT/calls"
case "$*" in *"get clusterrole system:cloud-controller-manager:node-approval"*) [ -e "$KAZ_ROOT/approver" ] ;; esac
`, 0o755)
			if there {
				h.touch("approver")
			}
			calls, _, err := h.boot()
			gone := strings.Contains(calls, "delete clusterrolebinding kubeadm:node-autoapprove-bootstrap --ignore-not-found")
			if err != nil || gone != there || strings.Contains(calls, "rotation") {
				t.Errorf("a member that %s it, with an approver %v: the binding is deleted %v: %v\n%s", role, there, gone, err, calls)
			}
		}
	}
}

// TestIdentityUnit checks that the kubelet gets its certificate from the script in clusters with the add-ons alone: they have the
// controller that approves.
func TestIdentityUnit(t *testing.T) {
	for _, with := range []bool{true, false} {
		d := example(t, "ha.yaml")
		if !with {
			d.Cluster.Spec.Addons.Repository = ""
		}
		files, err := Build(d)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"control plane": files.ControlPlane, "pool": files.Pools["general"]} {
			unit, has := written(t, text)["/etc/systemd/system/kubelet.service.d/30-identity.conf"]
			if has != with || has && !strings.Contains(unit.Content, "ExecStartPre=/usr/local/lib/kaz/bootstrap.sh identity\n") {
				t.Errorf("%s with add-ons %v: %q", name, with, unit.Content)
			}
		}
	}
}
