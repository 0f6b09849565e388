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
)

// pki is every key and certificate of a cluster. All of it is kept in one folder and made only once.
type pki struct {
	dir     string
	cluster *authority // who a client of the API server is
	etcd    *authority // of its own, so that no cluster certificate opens the store
	front   *authority // of its own, because who it signs may speak for any user

	serving, servingKey             string // what every server of the cluster shows: they are all on this machine
	etcdServing, etcdKey            string
	etcdClient, etcdClientKey       string
	proxy, proxyKey                 string // what the API server shows to the servers of aggregated APIs
	kubeletClient, kubeletClientKey string // what the API server shows to kubelets

	accountKey, accountPublic string // signs and checks service account tokens
}

// frontProxy is the name under which the API server speaks for its users to the servers of aggregated APIs.
const frontProxy = "front-proxy-client"

// clusterNames are the DNS names by which pods reach the API server.
func clusterNames() []string {
	return []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
}

func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

// openPKI reads the folder and makes what is missing or about to expire. inside is the address at which nodes reach the
// API server, if they do.
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
	// The group is what kubelets ask about, and what the API server itself says yes to.
	p.kubeletClient, p.kubeletClientKey, err = p.cluster.issue("kubelet-client", request{user: "kube-apiserver-kubelet-client", groups: []string{masters}})
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

// openAccountKey keeps an RSA key: federated credentials accept RS256 tokens only.
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
	return replaceFile(p.accountPublic, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}
