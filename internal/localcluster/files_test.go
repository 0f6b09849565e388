package localcluster

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/host/process"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/controlplane"
)

// TestEnvironmentFile checks that a shell with a cluster's env.sh names that cluster and its Azure, also beside others.
func TestEnvironmentFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's mine")
	group, err := process.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close(t.Context(), 0)
	azure, err := server.Start(t.Context(), server.Options{State: filepath.Join(dir, "azure-state.json")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := azure.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := &cluster{UpOptions: UpOptions{Program: "/bin/kaz"}, group: group, azure: azure,
		binaries: controlplane.Binaries{controlplane.Kubectl: "/bin/kubectl"}}
	if err := c.writeClientFiles(map[string]any{}); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", `. ./env.sh && echo "$`+client.DirVariable+`"`)
	shell.Dir = dir
	if said, err := shell.CombinedOutput(); err != nil || strings.TrimSpace(string(said)) != dir {
		t.Errorf("%v: %s, want %s", err, said, dir)
	}
	t.Setenv(client.DirVariable, dir)
	if info, err := client.Find(t.Context(), "", dir); err != nil || info.ARM != azure.Info().ARM || info.Boots {
		t.Errorf("%+v, %v", info, err)
	}
}
