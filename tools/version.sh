#!/usr/bin/env bash
# Prints the version of the checkout in a folder (default: this one), in the form that Kubernetes' libraries
# read: of the newest tag, or of the commit where there is none. Outside of a checkout, and where git does not trust
# it because it is somebody else's, it prints nothing: then programs say what the Go tool has noted.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

if ! said=$(git describe --tags --always --dirty --match 'v[0-9]*' 2>/dev/null); then
  exit 0
fi
case $said in
  v*) echo "$said" ;;
  *) echo "v0.0.0-g$said" ;;
esac
