package joining

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/azure"
	"kaz/internal/plan/poolnode"
)

// Annotation is the annotation of a request with the signed document of its machine.
const Annotation = "kaz/attested-document"

// Binding is kubeadm's ClusterRoleBinding with which everybody with the join token gets a certificate of any node.
const Binding = "kubeadm:node-autoapprove-bootstrap"

// bootstrappers is the group of the join token.
const bootstrappers = "system:bootstrappers:kubeadm:default-node-token"

// roleOfMember is the label of a member of the control plane.
const roleOfMember = "node-role.kubernetes.io/control-plane"

// Concerns reports whether a request is one that this package decides about: it wants the certificate of a kubelet, was made with the join
// token, and is not decided yet.
func Concerns(r *certificates.CertificateSigningRequest) bool {
	return r.Spec.SignerName == certificates.KubeAPIServerClientKubeletSignerName && slices.Contains(r.Spec.Groups, bootstrappers) &&
		len(r.Status.Conditions) == 0 && len(r.Status.Certificate) == 0
}

// Wanted is what a request asks for.
type Wanted struct {
	// Node is the name of the node.
	Node   string
	Signed Signed
	nonce  string
}

// Read returns what a request asks for, or an error if it is not a request of a machine for the certificate of its kubelet.
func Read(r *certificates.CertificateSigningRequest) (Wanted, error) {
	block, rest := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return Wanted{}, errors.New("the request is not one PEM block CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Wanted{}, fmt.Errorf("the request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return Wanted{}, fmt.Errorf("the signature of the request: %w", err)
	}
	node, err := subject(request)
	if err == nil {
		err = usages(r.Spec.Usages)
	}
	if err != nil {
		return Wanted{}, err
	}
	document, has := r.Annotations[Annotation]
	if !has {
		return Wanted{}, fmt.Errorf("the request has no annotation %s with the signed document of its machine: "+
			"machines that an earlier kaz made have none, and kaz cluster upgrade replaces them", Annotation)
	}
	signed, err := ReadDocument(document)
	return Wanted{Node: node, Signed: signed, nonce: Nonce(request.RawSubjectPublicKeyInfo)}, err
}

// Nonce returns what a document must repeat, so that it is good for one key alone. Others with the join token can read the document.
func Nonce(publicKey []byte) string {
	const characters = 32 // those that the metadata service takes
	sum := sha256.Sum256(publicKey)
	return hex.EncodeToString(sum[:])[:characters]
}

// subject returns the name of the node in a request.
func subject(r *x509.CertificateRequest) (string, error) {
	const prefix = "system:node:"
	node, ok := strings.CutPrefix(r.Subject.CommonName, prefix)
	if !ok || len(validation.IsDNS1123Subdomain(node)) > 0 {
		return "", fmt.Errorf("the common name is %q; allowed is %sNODE", r.Subject.CommonName, prefix)
	}
	if !slices.Equal(r.Subject.Organization, []string{"system:nodes"}) {
		return "", fmt.Errorf("the organization is %q; allowed is system:nodes alone", r.Subject.Organization)
	}
	if len(r.Subject.Names) != 2 { // those two
		return "", fmt.Errorf("the subject is %q; allowed are a common name and an organization", r.Subject)
	}
	if n := len(r.DNSNames) + len(r.IPAddresses) + len(r.EmailAddresses) + len(r.URIs); n > 0 {
		return "", fmt.Errorf("the request has %d alternative names; the certificate of a kubelet has none", n)
	}
	return node, nil
}

// usages rejects other usages than those of a kubelet.
func usages(given []certificates.KeyUsage) error {
	required := []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}
	optional := certificates.UsageKeyEncipherment // of RSA keys
	for _, u := range given {
		if !slices.Contains(required, u) && u != optional {
			return fmt.Errorf("the usages are %q; allowed are %q and %q", given, required, optional)
		}
	}
	for _, u := range required {
		if !slices.Contains(given, u) {
			return fmt.Errorf("the usages are %q; needed are %q", given, required)
		}
	}
	return nil
}

// Machine is the machine in the cluster's resource group that has the wanted name as a node.
type Machine struct {
	ID     azure.ID
	VMID   string
	Member bool // of the control plane
}

// Facts are what a decision follows from.
type Facts struct {
	Trust        Trust
	Subscription string
	Now          time.Time
	// Machine is nil if Azure has no machine of that name.
	Machine *Machine
	// Node is the node of that name, nil if there is none.
	Node *corev1.Node
}

// Verdict is what happens to a request.
type Verdict int

// The verdicts.
const (
	// Later keeps a request undecided, because a fact is missing.
	Later Verdict = iota
	Approve
	Deny
)

// Decide returns what happens to a request, and why.
func Decide(w Wanted, f Facts) (Verdict, string) {
	d, err := w.Signed.Verify(f.Trust, f.Now)
	switch {
	case err != nil:
		return Deny, err.Error()
	case d.Nonce != w.nonce:
		return Deny, fmt.Sprintf("the signed document is for another key: its nonce is %q, and that of the request's key is %s",
			d.Nonce, w.nonce)
	case !strings.EqualFold(d.SubscriptionID, f.Subscription):
		return Deny, fmt.Sprintf("the signed document is of the subscription %q; the cluster is in %s", d.SubscriptionID, f.Subscription)
	case f.Machine == nil || f.Machine.VMID == "": // a list may lag behind
		return Later, fmt.Sprintf("Azure has no machine of the node %s in the cluster's resource group", w.Node)
	case !strings.EqualFold(d.VMID, f.Machine.VMID):
		return Deny, fmt.Sprintf("the signed document is of the machine with the vmId %q; the node %s is %s with %q",
			d.VMID, w.Node, f.Machine.ID, f.Machine.VMID)
	case f.Machine.Member || isMember(f.Node):
		return Deny, fmt.Sprintf("%s is a member of the control plane: members sign their certificates themselves", w.Node)
	case isReady(f.Node):
		return Deny, fmt.Sprintf("the node %s is ready: it has a certificate, and renews that itself", w.Node)
	}
	return Approve, fmt.Sprintf("Azure's metadata service attests that the request is of %s", f.Machine.ID)
}

// IsMember reports whether the tags of a machine are those of a member of the control plane.
func IsMember(tags map[string]string) bool { return tags[poolnode.RoleTag] == poolnode.RoleOfMember }

func isMember(n *corev1.Node) bool {
	if n == nil {
		return false
	}
	_, is := n.Labels[roleOfMember]
	return is
}

func isReady(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
