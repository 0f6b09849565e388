#!/usr/bin/env bash
# Prints the version of the checkout in a folder (default: this one) in the form that Kubernetes' libraries read. The
# version is that of the newest tag, or of the commit if there is no tag. Outside of a checkout, and where git refuses it
# because another user owns it, the script prints nothing. Programs then report the version that the Go tool recorded.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

if ! said=$(git describe --tags --always --dirty --match 'v[0-9]*' 2>/dev/null); then
  exit 0
fi
case $said in
  v*) echo "$said" ;;
  *) echo "v0.0.0-g$said" ;;
esac
