// Package share checks the driver of Azure Files with csi-sanity on the local Azure. Volumes are mounts of directories.
package share

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"kaz/internal/csi"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/node"
	"kaz/internal/csi/mount"
	"kaz/internal/fileservice"
	"kaz/internal/localazure/core"
	plane "kaz/internal/localazure/plane/file"
	"kaz/internal/localazure/plane/token"
	planshare "kaz/internal/plan/share"
	"kaz/internal/testkit"
	"kaz/test/csi/driver"
)

// kept are the Secrets of a cluster by namespace and name.
type kept struct {
	mu     sync.Mutex
	values map[string]map[string]string
}

func (k *kept) Check(context.Context, string, string, string) error { return nil }

func (k *kept) Put(_ context.Context, namespace, name string, c file.Credentials) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[namespace+"/"+name] = file.SecretOf(c)
	return nil
}

func (k *kept) Get(_ context.Context, namespace, name string) (map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if values, ok := k.values[namespace+"/"+name]; ok {
		return values, nil
	}
	return nil, fmt.Errorf("there is no secret %s/%s", namespace, name)
}

// directories mounts the content of shares without a protocol: the kernel of this machine may know neither SMB nor NFS.
type directories struct{ plane *plane.Service }

func (d directories) Mount(ctx context.Context, m planshare.Mount, target string, c file.Credentials) error {
	share := m.Source[strings.LastIndex(m.Source, "/")+1:]
	for _, a := range d.plane.Accounts() {
		for _, s := range a.Shares {
			if a.Name == c.Account && s.Name == share {
				if err := driver.Exists(ctx, s.Path); err != nil {
					return err
				}
				return syscall.Mount(s.Path, target, "", syscall.MS_BIND, "")
			}
		}
	}
	return &node.MountError{Program: "bind", Output: "mount error(2): No such file or directory", Cause: fmt.Errorf("no share %s", share)}
}

// TestFileSanity runs csi-sanity with the file shares of the local Azure. The guest of package files mounts them by SMB and NFS.
func TestFileSanity(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	a := testkit.NewAzure(t, core.Options{}, 0)
	service, client := serveFiles(t, a)
	dir := t.TempDir()
	endpoint := "unix://" + filepath.Join(dir, "csi.sock")
	secrets := &kept{values: map[string]map[string]string{}}
	log := driver.Log(t)
	cluster := planshare.Cluster{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location, Suffix: "core.windows.net",
	}
	c := file.Config{
		Name: file.DefaultName, Version: "test", Cluster: cluster, Azure: a.Client, Secrets: secrets, Log: log,
		Files: fileservice.Options{Transport: client}.Open,
	}
	driver.Serve(t, endpoint, csi.Services{
		Identity: &file.Identity{Config: c}, Controller: file.NewController(c),
		Node: node.New(node.Config{
			Driver: file.DefaultName, Node: "node-0", Cluster: cluster, Mounter: directories{service}, Mounts: mount.New(1),
			Secret: secrets.Get, MountGroup: true, Stats: true, Log: log,
		}),
	}, log)
	config := sanity.NewTestConfig()
	config.Address = endpoint
	config.TargetPath, config.StagingPath = filepath.Join(dir, "mnt"), filepath.Join(dir, "staging")
	config.TestVolumeSize = 32 << 30 // the least of PremiumV2_LRS
	config.TestVolumeParametersFile = driver.Write(t, dir, "parameters.yaml", "skuName: PremiumV2_LRS\n")
	config.TestVolumeMutableParametersFile = driver.Write(t, dir, "mutable.yaml", "provisionedIOPS: \"3500\"\n")
	sanity.Test(t, config)
}

// serveFiles serves the data plane of file shares until the test ends.
func serveFiles(t *testing.T, a *testkit.Azure) (*plane.Service, *http.Client) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	tokens, err := token.New(token.Config{Tenant: core.DefaultTenant, Key: key, Log: quiet, World: a.Look})
	if err != nil {
		t.Fatal(err)
	}
	service, err := plane.Start(plane.Config{Tokens: tokens, Azure: a.Emulator, Dir: t.TempDir(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(service)
	t.Cleanup(func() {
		server.Close()
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return service, &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it has the name of no account
	}}
}
