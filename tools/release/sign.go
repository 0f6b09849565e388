package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const checksumsFile = "checksums.txt"

// writeChecksums writes the checksums of all files of the release, as sha256sum --check reads them.
func (r *release) writeChecksums(context.Context) error {
	names, err := tree(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		sum, err := checksum(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(r.out, checksumsFile), []byte(b.String()), 0o644)
}

func checksum(file string) (sum string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// sign signs the checksums with cosign, and attests how they came about. Nothing is published: there is no entry in a transparency log.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		fmt.Fprintln(r.log, "no -key: the checksums are not signed")
		return nil
	}
	checksums := filepath.Join(r.out, checksumsFile)
	if err := r.command(ctx, nil, r.tool("cosign"), "sign-blob", "--yes", "--key", r.key, "--tlog-upload=false",
		"--output-signature", checksums+".sig", checksums); err != nil {
		return err
	}
	predicate := filepath.Join(r.work, "provenance.json")
	text, err := json.MarshalIndent(provenance(r.version, r.commit, r.platforms), "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(predicate, text, 0o600); err != nil {
		return err
	}
	return r.command(ctx, nil, r.tool("cosign"), "attest-blob", "--yes", "--key", r.key, "--tlog-upload=false",
		"--type", "slsaprovenance1", "--predicate", predicate, "--output-signature", filepath.Join(r.out, "provenance.json"), checksums)
}

// provenance returns SLSA's predicate of how a release was built: by make release, of which commit, with which Go.
func provenance(version, commit string, platforms []string) map[string]any {
	return map[string]any{
		"buildDefinition": map[string]any{
			"buildType":          "https://kaz.dev/make-release/v1",
			"externalParameters": map[string]any{"version": version, "platforms": platforms},
			"internalParameters": map[string]any{"go": runtime.Version()},
			"resolvedDependencies": []any{map[string]any{
				"name": "source", "digest": map[string]any{"gitCommit": commit},
			}},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": "https://kaz.dev/make-release/v1"}},
	}
}
