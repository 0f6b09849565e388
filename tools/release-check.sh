#!/usr/bin/env bash
# Makes a release of the last commit twice, each in a clean clone, and compares the bytes. Then it runs the commands of
# docs/guides/install.md, block by block, on a fresh machine: without Go, with an empty home folder, without a way to the internet.
# Needs root on Linux with dpkg. PLATFORMS names the platforms of the release, the one of this machine by default. LIMIT is how many
# seconds the local cluster may take from the packed archive on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh

version=v0.1.0
arch=$(go env GOARCH)
platforms=${PLATFORMS:-linux/$arch}
limit=${LIMIT:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# release NAME makes a release in a clone. The clones have different paths, which must not be in the programs.
release() {
  git clone --quiet . "$work/$1/clone" || return 1
  VERSION=$version KEY=$work/cosign.key COSIGN_PASSWORD=check PLATFORMS=$platforms OUT=$work/$1/dist \
    bash "$work/$1/clone/tools/release.sh"
}

key() {
  CGO_ENABLED=0 go -C tools/release build -o ../../bin/ github.com/sigstore/cosign/v2/cmd/cosign || return 1
  (cd "$work" && COSIGN_PASSWORD=check "$OLDPWD/bin/cosign" generate-key-pair)
}

# Signatures differ: they have a random number in them.
same_bytes() {
  (cd "$work/first/dist" && sha256sum --check --strict --quiet checksums.txt) || return 1
  diff "$work/first/dist/checksums.txt" "$work/second/dist/checksums.txt" || return 1
  echo "$(wc -l <"$work/first/dist/checksums.txt") files, twice the same bytes:"
  ls -l --block-size=K "$work/first/dist" | awk 'NR > 1 {print "  " $5, $9}'
}

# blocks writes the commands of a guide into a script, which prints each before it runs. It measures the time of the whole.
blocks() {
  echo 'set -euo pipefail'
  awk '/^```/ { inside = $0 == "```sh"; next } inside' docs/guides/install.md | while IFS= read -r line; do
    printf 'echo %q\n%s\n' "$ $line" "$line"
  done
}

# fresh runs the script of a guide on a fresh machine: this one with empty folders in place of Go and of the users' homes, with a copy of
# what packages change, and with a loopback interface alone.
fresh() {
  mkdir -p "$work/download" "$work/overlay"
  cp "$work/first/dist"/* "$work/first/clone/bin"/{cosign,helm} "$work/cosign.pub" "$work/download" || return 1
  blocks >"$work/guide.sh" || return 1
  unshare --mount --net --pid --fork --mount-proc bash -euc '
    work=$1
    ip link set lo up
    mount -t tmpfs tmpfs "$work/overlay"
    for dir in usr var etc; do
      mkdir -p "$work/overlay/$dir/"{upper,work}
      mount -t overlay overlay -o "lowerdir=/$dir,upperdir=$work/overlay/$dir/upper,workdir=$work/overlay/$dir/work" "/$dir"
    done
    mount -t tmpfs tmpfs /root
    if [[ -d /usr/local/go ]]; then mount -t tmpfs tmpfs /usr/local/go; fi
    cd "$work/download"
    export HOME=/root PATH=$work/download:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    if command -v go; then echo "this machine has Go" >&2; exit 1; fi
    exec env -i HOME="$HOME" PATH="$PATH" bash "$work/guide.sh"
  ' bash "$work" 2>&1 | tee "$work/guide.log"
  (($(sed -n 's/^seconds: //p' "$work/guide.log") <= limit))
}

step "a key of cosign" key
step "the release of $(git rev-parse --short HEAD)" release first
step "the same release in another clone" release second
step "reproducible: the same bytes" same_bytes
step "the guide on a machine without Go" fresh
steps_done "Release"
