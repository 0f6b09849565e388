package controlplane

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"

	"kaz/internal/host/atomicfile"
)

// pki is the keys and certificates of a cluster, stored in one directory.
type pki struct {
	dir     string
	cluster *authority // of the API server and its clients
	etcd    *authority // separate, so that no client of the API server can read etcd
	front   *authority // separate, because its certificates can act for any user

	serving, servingKey             string // of every server of the cluster: all are on this machine
	etcdServing, etcdKey            string
	etcdClient, etcdClientKey       string
	proxy, proxyKey                 string // of the API server as a client of aggregated API servers
	kubeletClient, kubeletClientKey string // of the API server as a client of kubelets

	accountKey, accountPublic string // sign and verify service account tokens
}

// frontProxy is the user as which the API server calls aggregated API servers for its own users.
const frontProxy = "front-proxy-client"

// clusterNames returns the DNS names by which pods reach the API server.
func clusterNames() []string {
	return []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
}

func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

// openPKI reads the directory and creates the files that are missing or expire soon. Nodes reach the API server by the
// address inside, which can be invalid.
func openPKI(dir string, services netip.Prefix, inside netip.Addr) (*pki, error) {
	p := &pki{dir: dir}
	var err error
	for _, a := range []struct {
		name string
		into **authority
	}{{"ca", &p.cluster}, {"etcd-ca", &p.etcd}, {"front-proxy-ca", &p.front}} {
		if *a.into, err = openAuthority(dir, a.name); err != nil {
			return nil, err
		}
	}
	if err := p.issueServers(services, inside); err != nil {
		return nil, err
	}
	return p, p.openAccountKey()
}

func (p *pki) issueServers(services netip.Prefix, inside netip.Addr) (err error) {
	ips := append(loopback(), services.Masked().Addr().Next().AsSlice())
	if inside.IsValid() {
		ips = append(ips, inside.AsSlice())
	}
	p.serving, p.servingKey, err = p.cluster.issue("serving",
		request{user: APIServer, names: clusterNames(), ips: ips})
	if err != nil {
		return err
	}
	// Kubelets ask the API server about the groups of a client. It permits this group everything.
	p.kubeletClient, p.kubeletClientKey,
		err = p.cluster.issue("kubelet-client", request{user: "kube-apiserver-kubelet-client", groups: []string{masters}})
	if err != nil {
		return err
	}
	p.etcdServing, p.etcdKey, err = p.etcd.issue("etcd", request{user: Etcd, names: []string{"localhost"}, ips: loopback()})
	if err != nil {
		return err
	}
	if p.etcdClient, p.etcdClientKey, err = p.etcd.issue("etcd-client", request{user: APIServer}); err != nil {
		return err
	}
	p.proxy, p.proxyKey, err = p.front.issue("front-proxy-client", request{user: frontProxy})
	return err
}

// openAccountKey reads the key of service account tokens, or creates it. It is an RSA key, because federated credentials
// accept only RS256 tokens.
// Source: https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations
func (p *pki) openAccountKey() error {
	p.accountKey, p.accountPublic = filepath.Join(p.dir, "service-account.key"), filepath.Join(p.dir, "service-account.pub")
	key, err := readKey(p.accountKey)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return fmt.Errorf("service account key: %w", err)
		}
		err = writeKey(p.accountKey, key)
	}
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	return atomicfile.Write(p.accountPublic, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}
