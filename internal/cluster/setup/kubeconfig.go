package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/host/atomicfile"
)

// SaveKubeconfig writes a kubeconfig that only its owner can read. It does not replace the kubeconfig of another cluster.
// The function undo brings back what the file had before, unless another process has written it since.
func SaveKubeconfig(file string, text []byte) (undo func() error, err error) {
	had, err := os.ReadFile(file)
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return nil, err
	}
	if !absent && !bytes.Equal(had, text) {
		old, oldErr := clientcmd.Load(had)
		now, nowErr := clientcmd.Load(text)
		if oldErr != nil || nowErr != nil || serverOf(old.Clusters) != serverOf(now.Clusters) {
			return nil, fmt.Errorf("%s exists and is of another cluster: want another --kubeconfig", file)
		}
	}
	undo = func() error {
		has, err := os.ReadFile(file)
		switch {
		case err != nil || !bytes.Equal(has, text):
			return nil
		case absent:
			return os.Remove(file)
		}
		return atomicfile.Write(file, had, 0o600)
	}
	return undo, atomicfile.Write(file, text, 0o600)
}

// serverOf is the URL of the API server, with the name in its certificate: [ReachHere] writes the address instead.
func serverOf(clusters map[string]*api.Cluster) string {
	for _, c := range clusters {
		server, err := url.Parse(c.Server)
		if err != nil || c.TLSServerName == "" {
			return c.Server
		}
		server.Host = net.JoinHostPort(c.TLSServerName, server.Port())
		return server.String()
	}
	return ""
}

// ReachHere makes the kubeconfig of a cluster on a local Azure reach the API server from this machine. This machine cannot
// resolve the names of that Azure. The kubeconfig therefore has the public address, and the name for TLS. A cluster without
// a public address keeps the name.
func ReachHere(ctx context.Context, reader azure.Reader, p cluster.Plan, file string) error {
	config, err := clientcmd.LoadFromFile(file)
	if errors.Is(err, fs.ErrNotExist) || p.Names.PublicHost() == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	address, err := publicAddress(ctx, reader, p)
	if err != nil || address == "" {
		return err
	}
	for _, c := range config.Clusters {
		server, err := url.Parse(c.Server)
		if err != nil || server.Hostname() != p.Names.PublicHost() {
			continue
		}
		c.TLSServerName, server.Host = server.Hostname(), net.JoinHostPort(address, server.Port())
		c.Server = server.String()
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, text, 0o600)
}

// publicAddress returns the address of the API server's public name, "" if Azure has none.
func publicAddress(ctx context.Context, reader azure.Reader, p cluster.Plan) (string, error) {
	all, err := reader.List(ctx, azure.Query{Scope: p.Names.Group(), Type: "Microsoft.Network/publicIPAddresses"})
	if err != nil {
		return "", err
	}
	for _, doc := range all {
		var ip struct {
			Properties struct {
				IPAddress   string `json:"ipAddress"`
				DNSSettings struct {
					FQDN string `json:"fqdn"`
				} `json:"dnsSettings"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(doc, &ip); err != nil {
			return "", fmt.Errorf("a public address of %s: %w", p.Names.Group(), err)
		}
		if strings.EqualFold(ip.Properties.DNSSettings.FQDN, p.Names.PublicHost()) {
			return ip.Properties.IPAddress, nil
		}
	}
	return "", nil
}
