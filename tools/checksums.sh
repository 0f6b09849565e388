#!/usr/bin/env bash
# Adds the SHA-256 of the programs of a version of Kubernetes to the table that kaz carries. They come from dl.k8s.io over https. A version
# that the table has is compared with it: another checksum is an error, and the table keeps its own.
#   tools/checksums.sh v1.36.3
set -euo pipefail
from=${KAZ_OFFICIAL:-https://dl.k8s.io}
table=${KAZ_CHECKSUMS:-$(dirname "${BASH_SOURCE[0]}")/../internal/cluster/definition/checksums.txt}

version=${1:-}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
  echo "version \"$version\": want a version of Kubernetes such as v1.36.3: make checksums VERSION=v1.36.3" >&2
  exit 1
fi

new=$(mktemp "$table.XXXXXX")
trap 'rm -f "$new"' EXIT
cp "$table" "$new"
for architecture in amd64 arm64; do
  for program in kubeadm kubectl kubelet; do
    path=$version/bin/linux/$architecture/$program
    sum=$(curl -sSfL --proto '=https' --proto-redir '=https' --retry "${KAZ_RETRIES:-3}" "$from/$path.sha256")
    if ! [[ $sum =~ ^[0-9a-f]{64}$ ]]; then
      echo "$from/$path.sha256 has \"${sum:0:80}\": want 64 small hexadecimal digits" >&2
      exit 1
    fi
    known=$(awk -v path="$path" '$2 == path {print $1}' "$table")
    if [[ -n $known && $known != "$sum" ]]; then
      echo "$path: $from says $sum, and the table has $known: a published program does not change" >&2
      exit 1
    fi
    [[ -n $known ]] || echo "$sum  $path" >>"$new"
  done
done
sort -k 2V -o "$new" "$new"
chmod 0644 "$new"
mv "$new" "$table"
echo "$version: 6 checksums of $from are in $table"
