package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/component-base/cli"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/site"
)

// asProgram has the test binary be the program, in a process of its own with the environment of a container.
const asProgram = "KAZ_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(Command(os.LookupEnv)))
	}
	os.Exit(m.Run())
}

// program returns the command that runs the program with a local Azure.
func program(ctx context.Context, local *server.Server, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], args...)
	command.Env = []string{asProgram + "=1", "SSL_CERT_FILE=" + local.Info().CAFile}
	return command
}

// authority signs the certificates of a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue(name, nil)
	return a
}

// issue makes a certificate, and NAME.crt and NAME.key of it. A nil signer is the certificate's own key.
func (a *authority) issue(name string, signer *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: signer == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent, parentKey := template, key
	if signer != nil {
		parent, parentKey = signer.cert, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(a.path(name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// dial connects with a certificate of an authority and trusts this one.
func (a *authority) dial(address string, signer *authority) externalgrpc.CloudProviderClient {
	a.t.Helper()
	signer.issue("client", signer)
	pair, err := tls.LoadX509KeyPair(signer.path("client.crt"), signer.path("client.key"))
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool,
	})))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = connection.Close() })
	return externalgrpc.NewCloudProviderClient(connection)
}

// startAzure starts a local Azure with two machines in a scale set. It returns the path of azure.json too.
func startAzure(t *testing.T) (*server.Server, string) {
	t.Helper()
	return startAzureWith(t, 1, 2, "")
}

// startAzureWith starts a local Azure with access control, in which the provider is a contributor. The machines are spread
// over scale sets. requests is the path of a log of requests, if one is wanted.
func startAzureWith(t *testing.T, sets, machines int, requests string) (*server.Server, string) {
	t.Helper()
	return serveAzure(t, server.Options{RequestLog: requests}, sets, machines)
}

// serveAzure starts a local Azure as startAzureWith does, with further options.
func serveAzure(t *testing.T, o server.Options, sets, machines int) (*server.Server, string) {
	t.Helper()
	const id, secret = "aaaaaaaa-0000-4000-8000-00000000000e", "provider-secret"
	dir := t.TempDir()
	identities := filepath.Join(dir, "identities.yaml")
	text := fmt.Sprintf("applications:\n- {clientId: %s, secrets: [%s], roleAssignments: [{role: Contributor}]}\n", id, secret)
	if err := os.WriteFile(identities, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.AccessControl, o.Identities, o.Log = "on", identities, slog.New(slog.DiscardHandler)
	server, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := server.Client()
	if err != nil {
		t.Fatal(err)
	}
	info := server.Info()
	cluster := site.New(info.Tenant, info.Subscription, sets)
	if err := cluster.Create(t.Context(), client, machines, false, func(azure.ID, time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	c := cluster.CloudConfig(info.ARM)
	c["useManagedIdentityExtension"], c["aadClientId"], c["aadClientSecret"] = false, id, secret
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "azure.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestProgram runs the program with certificates and calls it as cluster-autoscaler does. It has the scenario S37.
func TestProgram(t *testing.T) {
	local, config := startAzure(t)
	ours, others := newAuthority(t, "ca"), newAuthority(t, "ca")
	ours.issue("server", ours)
	address, metrics := freeAddress(t), freeAddress(t)
	command := program(context.WithoutCancel(t.Context()), local,
		"--cloud-config="+config, "--nodes=0:5:nodes0", "--address="+address, "--metrics-address="+metrics,
		"--cert="+ours.path("server.crt"), "--key-cert="+ours.path("server.key"), "--ca-cert="+ours.path("ca.crt"))
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(command.Process.Signal(syscall.SIGTERM), command.Wait()); err != nil {
			t.Errorf("%v: %s", err, log.String())
		}
	}()
	client := ours.dial(address, ours)
	var groups *externalgrpc.NodeGroupsResponse
	eventually(t, func() (err error) {
		groups, err = client.NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
		return err
	})
	if len(groups.NodeGroups) != 1 || groups.NodeGroups[0].Id != "nodes0" || groups.NodeGroups[0].MaxSize != 5 {
		t.Errorf("groups %v", groups)
	}
	eventually(t, func() error {
		_, err := client.NodeGroupIncreaseSize(t.Context(), &externalgrpc.NodeGroupIncreaseSizeRequest{Id: "nodes0", Delta: 1})
		return err
	})
	eventually(t, func() error {
		nodes, err := client.NodeGroupNodes(t.Context(), &externalgrpc.NodeGroupNodesRequest{Id: "nodes0"})
		if err == nil && len(nodes.Instances) != 3 {
			err = fmt.Errorf("instances %v", nodes.Instances)
		}
		return err
	})
	_, err := ours.dial(address, others).NodeGroups(t.Context(), &externalgrpc.NodeGroupsRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a certificate of somebody else: %v", err)
	}
	for path, want := range map[string]string{
		"/metrics": `kaz_autoscaler_target_size{node_group="nodes0"} 3`, "/readyz": "", "/healthz": "",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+metrics+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %v", path, answer.StatusCode, err)
		}
	}
}

// eventually calls do, with pauses, until it returns no error.
func eventually(t *testing.T, do func() error) {
	t.Helper()
	const often = 50 * time.Millisecond
	limit := time.After(time.Minute)
	for {
		err := do()
		if err == nil {
			return
		}
		select {
		case <-limit:
			t.Fatal(err)
		case <-time.After(often):
		}
	}
}

// TestCheck checks the output of the command check.
func TestCheck(t *testing.T) {
	local, config := startAzure(t)
	for args, want := range map[string][]string{
		"--nodes=1:4:nodes0":                    {"SCALE SET  NODE GROUP  MIN  MAX  CAPACITY  SIZE", "nodes0     yes         1    4    2"},
		"--nodes=1:4:nodes0 -o json":            {`"scaleSet":"nodes0"`, `"nodeGroup":true`},
		"--nodes=1:4:nodes0 -o yaml":            {"- capacity: 2\n", "  nodeGroup: true\n"},
		"--node-group-auto-discovery=label:a=b": {"lacks the tag a=b"},
		"--nodes=1:4:nodes1":                    {"nodes1     no", "the resource group has no scale set of this name"},
	} {
		out, err := program(t.Context(), local, append([]string{"check", "--cloud-config=" + config}, strings.Fields(args)...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s: %q lacks %q", args, out, w)
			}
		}
	}
}
