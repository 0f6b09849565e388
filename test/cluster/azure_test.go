package cluster_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// azureClient is an ARM client of the cluster's Azure, for a user's actions.
type azureClient struct{ *arm.Client }

// openClient opens the local Azure in dir, over TLS and with the owner's token.
func openClient(t *testing.T, dir string) azureClient {
	t.Helper()
	var info struct{ ARM, CAFile, Token string }
	text := readFile(t, filepath.Join(dir, "azure-state-running.json"))
	if err := json.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(readFile(t, info.CAFile)) {
		t.Fatalf("%s holds no certificate", info.CAFile)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	d, err := arm.New(arm.Config{
		Endpoint: info.ARM, UserAgent: "kaz-test",
		Transport: owner{&http.Client{Transport: transport}, info.Token},
	})
	if err != nil {
		t.Fatal(err)
	}
	return azureClient{d}
}

// owner sends requests with a token.
type owner struct {
	client *http.Client
	token  string
}

func (o owner) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+o.token)
	return o.client.Do(r)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// read returns the typed view of a resource.
func read[P any](c *cluster, id azure.ID) azure.Resource[P] {
	c.t.Helper()
	doc, err := c.azure.Get(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := azure.Decode[P](doc)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *cluster) instances() []azure.Resource[compute.Instance] {
	c.t.Helper()
	docs, err := c.azure.List(c.t.Context(), azure.Query{Scope: c.scaleSet(), Type: compute.ScaleSetInstances})
	if err != nil {
		c.t.Fatal(err)
	}
	var all []azure.Resource[compute.Instance]
	for _, d := range docs {
		vm, err := azure.Decode[compute.Instance](d)
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, vm)
	}
	return all
}

// request is a line of the local Azure's request log.
type request struct {
	Method, Path, UserAgent string
	Status                  int
}

// requestLog is a position in a cluster's request log.
type requestLog struct {
	file string
	from int
}

func (c *cluster) requestLog() requestLog {
	c.t.Helper()
	return requestsFrom(c.t, c.dir)
}

func requestsFrom(t *testing.T, dir string) requestLog {
	t.Helper()
	l := requestLog{file: filepath.Join(dir, "logs", "azure-requests.jsonl")}
	l.from = len(l.lines(t))
	return l
}

// lines returns the complete lines of the log: the last line may be incomplete.
func (l requestLog) lines(t *testing.T) []byte {
	t.Helper()
	text := readFile(t, l.file)
	return text[:bytes.LastIndexByte(text, '\n')+1]
}

// since returns the requests of the cloud-controller-manager since the position, as "PUT .../kaz",
// reads and writes apart.
func (l requestLog) since(t *testing.T) (reads, writes []string) {
	t.Helper()
	for line := range bytes.Lines(l.lines(t)[l.from:]) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v: %q", l.file, err, line)
		}
		if !strings.HasPrefix(r.UserAgent, "kubernetes-cloudprovider/") {
			continue
		}
		one := r.Method + " " + r.Path
		if r.Method == http.MethodGet {
			reads = append(reads, one)
		} else {
			writes = append(writes, one)
		}
	}
	return reads, writes
}
