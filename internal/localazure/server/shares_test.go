package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/azure"
	"kaz/internal/localazure/share"
)

// sharing is a local Azure that serves file shares, with an account for SMB and one for NFS.
type sharing struct {
	*testing.T
	azure    *Server
	smb, nfs azure.ID
}

func startSharing(t *testing.T, o Options) *sharing {
	t.Helper()
	if err := share.Check(); err != nil {
		t.Skip(err)
	}
	for _, program := range []string{"smbclient", "nfs-ls"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	o.SMBAddress, o.NFSAddress, o.ProxyAddress = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	a, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(a.Info().Subscription, "rg")
	return &sharing{T: t, azure: a, smb: group.Resource("Microsoft.Storage/storageAccounts", "smbaccount"),
		nfs: group.Resource("Microsoft.Storage/storageAccounts", "nfsaccount")}
}

func (s *sharing) put(id azure.ID, body string) {
	s.Helper()
	c, err := s.azure.Client()
	if err != nil {
		s.Fatal(err)
	}
	if _, err := c.Put(s.Context(), azure.Write{ID: id, Body: azure.Document(body)}); err != nil {
		s.Fatal(err)
	}
}

func (s *sharing) shareOf(account azure.ID, name string) azure.ID {
	return account.Child("fileServices", "default").Child("shares", name)
}

func (s *sharing) close() {
	s.Helper()
	if err := s.azure.Close(); err != nil {
		s.Fatal(err)
	}
}

// key returns the first key of an account.
func (s *sharing) key(account azure.ID, action, body string) string {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.azure.Info().ARMHTTP+string(account)+"/"+action+
		"?api-version=2025-01-01", strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.azure.Info().Token)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	var list struct{ Keys []struct{ Value string } }
	if err := json.NewDecoder(reply.Body).Decode(&list); err != nil || len(list.Keys) == 0 {
		s.Fatalf("keys of %s: %d %v", account, reply.StatusCode, err)
	}
	return list.Keys[0].Value
}

// eventually repeats a command of a client until its output has a text: the servers follow the documents.
func (s *sharing) eventually(part string, command func(ctx context.Context) *exec.Cmd) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	for {
		out, _ := command(ctx).CombinedOutput() // errors are in the text
		if bytes.Contains(out, []byte(part)) {
			return
		}
		if ctx.Err() != nil {
			s.Fatalf("output %q, want %q in it", out, part)
		}
	}
}

func (s *sharing) smbclient(key, name, commands string) func(context.Context) *exec.Cmd {
	dir := s.TempDir()
	return func(ctx context.Context) *exec.Cmd {
		_, port, _ := net.SplitHostPort(s.azure.Info().SMB)
		cmd := exec.CommandContext(ctx, "smbclient", "//127.0.0.1/"+name, "-p", port, "-m", "SMB3", "-s", "/dev/null", "-U", "smbaccount",
			"-c", commands)
		cmd.Env, cmd.Dir = []string{"PASSWD=" + key, "PATH=/usr/bin:/bin"}, dir
		return cmd
	}
}

func (s *sharing) nfsList(path string) func(context.Context) *exec.Cmd {
	return func(ctx context.Context) *exec.Cmd {
		_, port, _ := net.SplitHostPort(s.azure.Info().NFS)
		return exec.CommandContext(ctx, "nfs-ls", "nfs://127.0.0.1"+path+"?version=4&nfsport="+port)
	}
}

// rest sends a request to the file service of the account.
func (s *sharing) rest(method, path string, header map[string]string) int {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "https://smbaccount.file.core.windows.net"+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	t, err := ownerCredential{s.azure}.GetToken(s.Context(), policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+t.Token)
	r.Header.Set("x-ms-version", "2025-05-05")
	r.Header.Set("x-ms-file-request-intent", "backup")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	reply, err := clientOf(s.T, s.azure, true).Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	return reply.StatusCode
}

// A share of Azure Resource Manager is served over REST, SMB and NFS, with one content that outlives the process.
func TestSharesAreServed(t *testing.T) {
	o := Options{State: filepath.Join(t.TempDir(), "azure.json")}
	s := startSharing(t, o)
	s.put(azure.GroupID(s.azure.Info().Subscription, "rg"), `{"location":"westeurope"}`)
	s.put(s.smb, `{"location":"westeurope","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`)
	s.put(s.nfs, `{"location":"westeurope","kind":"FileStorage","sku":{"name":"Premium_LRS"},"properties":{"supportsHttpsTrafficOnly":false}}`)
	s.put(s.shareOf(s.smb, "data"), `{"properties":{"shareQuota":3}}`)
	s.put(s.shareOf(s.nfs, "data"), `{"properties":{"shareQuota":100,"enabledProtocols":"NFS"}}`)
	if status := s.rest(http.MethodPut, "/data/file", map[string]string{"x-ms-type": "file", "x-ms-content-length": "7"}); status != 201 {
		t.Fatalf("create a file over REST: %d", status)
	}
	key := s.key(s.smb, "listKeys", "")
	s.eventually("file", s.smbclient(key, "data", "ls"))
	s.eventually("3145728 blocks of size 1024", s.smbclient(key, "data", "ls"))
	// The client has NFS 4.0 and the server, as Azure, 4.1. The tests of package share read exports.
	s.eventually("NFS4ERR_MINOR_VERS_MISMATCH", s.nfsList("/nfsaccount/data"))

	s.put(s.shareOf(s.smb, "more"), `{"properties":{"shareQuota":3}}`)
	s.eventually("made", s.smbclient(key, "more", "mkdir made; ls"))
	if status := s.rest(http.MethodGet, "/more/made?restype=directory", nil); status != 200 {
		t.Errorf("a directory of SMB over REST: %d", status)
	}
	fresh := s.key(s.smb, "regenerateKey", `{"keyName":"key1"}`)
	s.eventually("NT_STATUS_LOGON_FAILURE", s.smbclient(key, "data", "ls"))
	s.eventually("file", s.smbclient(fresh, "data", "ls"))
	s.close()

	s = startSharing(t, o)
	defer s.close()
	s.eventually("file", s.smbclient(fresh, "data", "ls"))
	if !s.azure.OwnsHost("smbaccount.file.core.windows.net") || s.azure.OwnsHost("core.windows.net") {
		t.Error("the name of the account does not lead here, or another name does")
	}
}
