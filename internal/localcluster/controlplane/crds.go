package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"kaz/internal/host/atomicfile"
)

// definitionSet is a set of definitions of another project's kinds, from the files of its Go module.
type definitionSet struct {
	from    string // the embedded module that pins the version
	path    string // the Go module
	pattern string // of its files
}

// snapshotCRDs define the kinds that the [SnapshotController] works on.
func snapshotCRDs() definitionSet {
	return definitionSet{"csi", "github.com/kubernetes-csi/external-snapshotter/client/v8", "config/crd/snapshot.storage.k8s.io_*.yaml"}
}

// gatewayCRDs define the kinds of Gateway API's standard channel.
func gatewayCRDs() definitionSet {
	return definitionSet{"gateway-api", "sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_*.yaml"}
}

// SnapshotCRDs returns the definitions of the kinds that the [SnapshotController] works on.
func SnapshotCRDs(ctx context.Context, o BuildOptions) ([]byte, error) {
	all, err := snapshotCRDs().read(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("definitions of snapshots: %w", err)
	}
	return all, nil
}

// GatewayCRDs returns the definitions of Gateway API's standard channel.
func GatewayCRDs(ctx context.Context, o BuildOptions) ([]byte, error) {
	all, err := gatewayCRDs().read(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("definitions of Gateway API: %w", err)
	}
	return all, nil
}

// KeepDefinitions writes all definitions into CacheDir, where a machine without the go command reads them as its Prebuilt.
func KeepDefinitions(ctx context.Context, o BuildOptions) error {
	for _, set := range []definitionSet{snapshotCRDs(), gatewayCRDs()} {
		file, err := set.file()
		if err != nil {
			return err
		}
		text, err := set.read(ctx, o)
		if err != nil {
			return fmt.Errorf("definitions of %s: %w", set.path, err)
		}
		if err := atomicfile.Write(filepath.Join(o.CacheDir, file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file returns the name under which the definitions are kept. It has a hash of what pins them.
func (d definitionSet) file() (string, error) {
	files, err := module{name: d.from}.files()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range [][]byte{files["go.mod"], files["go.sum"], []byte(d.path), []byte(d.pattern)} {
		_, _ = h.Write(append(part, 0))
	}
	return fmt.Sprintf("definitions-%s-%s.yaml", d.from, hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// read returns the prebuilt definitions, else those of the Go module, which the go command downloads.
func (d definitionSet) read(ctx context.Context, o BuildOptions) ([]byte, error) {
	if o.Prebuilt != "" {
		file, err := d.file()
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(o.Prebuilt, file))
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	tc, err := findToolchain(ctx, o.Go)
	if err != nil {
		return nil, err
	}
	dir, err := downloadModule(ctx, tc.path, d.from, d.path)
	if err != nil {
		return nil, err
	}
	return definitions(dir, d.pattern)
}

// definitions returns the definitions in the files below a directory that match a pattern, as one YAML stream. It leaves out files of
// other kinds: Gateway API has a policy there that would keep an older kaz from applying its definitions.
func definitions(dir, pattern string) ([]byte, error) {
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
