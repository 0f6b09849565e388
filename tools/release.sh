#!/usr/bin/env bash
# Makes a release into a folder. VERSION is its version, such as v0.1.0; KEY is a file with cosign's private key, whose password is in
# COSIGN_PASSWORD; PLATFORMS names some platforms, with commas between; OUT is the folder, dist by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "Building cosign, helm and syft as pinned in tools/release/go.mod (the first build takes some minutes)"
CGO_ENABLED=0 go -C tools/release build -o ../../bin/ . tool
exec bin/release -tools bin -out "${OUT:-dist}" -version "${VERSION:-}" ${KEY:+-key "$KEY"} ${PLATFORMS:+-platforms "$PLATFORMS"}
