package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// SnapshotCRDs returns the definitions of the kinds that the [SnapshotController] works on, from its Go module. goCommand
// is the go command.
func SnapshotCRDs(ctx context.Context, goCommand string) ([]byte, error) {
	const client = "github.com/kubernetes-csi/external-snapshotter/client/v8"
	all, err := definitions(ctx, goCommand, "csi", client, "config/crd/snapshot.storage.k8s.io_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("definitions of snapshots: %w", err)
	}
	return all, nil
}

// GatewayCRDs returns the definitions of Gateway API's standard channel, from its Go module. goCommand is the go command.
func GatewayCRDs(ctx context.Context, goCommand string) ([]byte, error) {
	const gatewayAPI = "sigs.k8s.io/gateway-api"
	all, err := definitions(ctx, goCommand, "gateway-api", gatewayAPI, "config/crd/standard/gateway.networking.k8s.io_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("definitions of Gateway API: %w", err)
	}
	return all, nil
}

// definitions returns the definitions in the files of a Go module that match a pattern, as one YAML stream. The embedded module
// from pins the version. It leaves out files of other kinds: Gateway API has a policy there that would keep an older kaz from applying
// its definitions.
func definitions(ctx context.Context, goCommand, from, path, pattern string) ([]byte, error) {
	dir, err := downloadModule(ctx, goCommand, from, path)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("none in %s", dir)
	}
	var all bytes.Buffer
	for _, file := range slices.Sorted(slices.Values(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text, []byte("\nkind: CustomResourceDefinition\n")) {
			continue
		}
		all.WriteString("---\n")
		all.Write(text)
		all.WriteString("\n")
	}
	return all.Bytes(), nil
}

// downloadModule returns the directory of a module that an embedded module requires.
func downloadModule(ctx context.Context, goCommand, from, path string) (dir string, err error) {
	files, err := module{name: from}.files()
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "kaz-module-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, goCommand, "mod", "download", "-json", path)
	cmd.Dir = work
	cmd.Env = append(cmd.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on", "GOTOOLCHAIN=local")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w: %s%s", path, err, out, problems.Bytes())
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", path, err)
	}
	return downloaded.Dir, nil
}
