#!/usr/bin/env bash
# Runs the commands of test/az, the program with the SDK for Python, and the commands of "First resources" in the guide of the local Azure
# against local Azures: with Debian's az and its SDK, which it installs as root on Debian. CHAINS names some of the chains in
# test/az/chains.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v az >/dev/null; then
  if [[ $EUID != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "az is missing: install the package azure-cli" >&2
    exit 1
  fi
  echo "Installing azure-cli (1.3 GB on disk)"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -o Acquire::Retries=3 update -qq
  apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends azure-cli >/dev/null
fi

dir=$(mktemp -d)
azure=
trap '[[ -z $azure ]] || kill "$azure" 2>/dev/null || true; wait; rm -r "$dir"' EXIT
CGO_ENABLED=0 go build -o "$dir/kaz" ./cmd/kaz
"$dir/kaz" local azure --state "$dir/state.json" --ca-file "$dir/ca.pem" --proxy-address 127.0.0.1:0 >"$dir/endpoints.json" 2>"$dir/log" &
azure=$!
for ((i = 0; i < 150; i++)); do
  [[ -s $dir/endpoints.json ]] && break
  kill -0 "$azure" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
  sleep 0.2
done
/usr/bin/python3 test/az/az.py "$dir/endpoints.json" ${CHAINS:-}
/usr/bin/python3 test/az/sdk.py "$dir/endpoints.json"
KAZ=$dir test/az/first.sh
