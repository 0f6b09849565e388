package fields

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/plan/poolnode"
)

// OfficialArtifacts is the URL of the project's own programs of Kubernetes. Only there a checksum beside a program counts.
const OfficialArtifacts = "https://dl.k8s.io"

// Architectures are those of processors, as in the paths of programs.
func Architectures() []string { return []string{"amd64", "arm64"} }

// Programs are the programs of Kubernetes that machines install.
func Programs() []string { return []string{"kubeadm", "kubelet", "kubectl"} }

// OldestMinor is the oldest minor version of Kubernetes 1 that boot files are for: older kubeadm programs do not read their configuration.
const OldestMinor = 31

// oldEnough refuses versions with a kubeadm that does not read the configuration of boot files.
func oldEnough(version string) string {
	if MinorOf(version) < OldestMinor {
		return fmt.Sprintf("a version from 1.%d.0 on: older kubeadm programs do not read kubeadm.k8s.io/v1beta4", OldestMinor)
	}
	return ""
}

// MinorOf is the minor version of a valid version, and 0 of another text.
func MinorOf(version string) int {
	_, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// singleHyphens refuses two '-' together, which names of key vaults and of containers of blobs cannot have.
func singleHyphens(name string) string {
	if strings.Contains(name, "--") {
		return "at most 30 small letters, digits and single '-', first a letter, last not '-'"
	}
	return ""
}

// apiServerService is the longest name that the API server's certificate has below the domain of Services.
const apiServerService = "kubernetes.default.svc."

// serviceDomain checks a domain as kubeadm, kubelet and DNS take it.
func serviceDomain(domain string) string {
	if len(validation.IsDNS1123Subdomain(domain)) > 0 || len(apiServerService+domain) > validation.DNS1123SubdomainMaxLength {
		return fmt.Sprintf("a DNS domain such as cluster.local, with labels of at most %d characters and %d in all",
			validation.DNS1123LabelMaxLength, validation.DNS1123SubdomainMaxLength-len(apiServerService))
	}
	for part := range strings.SplitSeq(domain, ".") {
		if len(part) > validation.DNS1123LabelMaxLength {
			return fmt.Sprintf("a DNS domain such as cluster.local, with labels of at most %d characters", validation.DNS1123LabelMaxLength)
		}
	}
	return ""
}

// certSAN checks a name of a certificate as kubeadm does.
func certSAN(name string) string {
	if _, err := netip.ParseAddr(name); err == nil {
		return ""
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 && len(validation.IsWildcardDNS1123Subdomain(name)) > 0 || numeric(name) {
		return "a DNS name such as api.example.com or *.example.com in small letters, or an IP address, without scheme and port"
	}
	return ""
}

// certificates checks a text with certificates as PEM.
func certificates(text string) string {
	const want = "certificates as PEM, and nothing between them"
	for rest := []byte(text); len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return want
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return want
		}
	}
	return ""
}

// numeric reports whether a text can only be meant as an address.
func numeric(text string) bool { return strings.Trim(text, "0123456789.") == "" }

// sourceRange checks an address or a range of a security rule.
func sourceRange(source string) string {
	_, notRange := netip.ParsePrefix(source)
	_, notAddress := netip.ParseAddr(source)
	switch {
	case notRange != nil && notAddress != nil && (strings.ContainsAny(source, "/:") || numeric(source)):
		return "a valid range such as 198.51.100.0/24 or 2001:db8::/32"
	case (notRange == nil || notAddress == nil) && strings.ToLower(source) != source:
		return "the range in small letters"
	}
	return ""
}

// Labels of nodes that kubelet and cloud-node-manager set. Their values are facts of the machine.
const setByNodes = "kubernetes.io/hostname kubernetes.io/os kubernetes.io/arch topology.kubernetes.io/zone topology.kubernetes.io/region " +
	"node.kubernetes.io/instance-type failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region " +
	"beta.kubernetes.io/instance-type beta.kubernetes.io/os beta.kubernetes.io/arch"

// labelKey checks the key of a label as kubelet does with --node-labels, and the admission plugin NodeRestriction of the API server.
func labelKey(key string) string {
	domain, _, qualified := strings.Cut(key, "/")
	switch {
	case len(validation.IsQualifiedName(key)) > 0:
		return "a label key of Kubernetes: a name of at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' or without"
	case key == poolnode.PoolLabel || key == poolnode.RevisionLabel:
		return "another label: kaz sets this one"
	case slices.Contains(strings.Fields(setByNodes), key):
		return "another label: kubelet or cloud-node-manager sets this one"
	case qualified && (below(domain, "kubernetes.io") || below(domain, "k8s.io")) &&
		!below(domain, "node.kubernetes.io") && !below(domain, "kubelet.kubernetes.io"):
		return "of kubernetes.io and k8s.io only labels with node.kubernetes.io/ or kubelet.kubernetes.io/: a kubelet must not set " +
			"others, " +
			"kubectl label can"
	}
	return ""
}

// below reports whether a domain is another one or in it.
func below(domain, other string) bool { return domain == other || strings.HasSuffix(domain, "."+other) }

// taintParts checks key and value of a taint.
func taintParts(taint string) string {
	what, _, _ := strings.Cut(taint, ":")
	key, value, _ := strings.Cut(what, "=")
	if len(validation.IsQualifiedName(key)) > 0 {
		return "KEY=VALUE:EFFECT with a key like that of a label: at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' " +
			"or " +
			"without"
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		return "KEY=VALUE:EFFECT with a value like that of a label: at most 63 letters, digits, '-', '_' and '.', first and last a " +
			"letter " +
			"or digit"
	}
	return ""
}
