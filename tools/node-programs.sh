#!/usr/bin/env bash
# Installs the distribution's programs that real nodes, their disks and file shares need, as root on Debian and Ubuntu. Elsewhere kaz
# names the missing programs, simulates nodes, and serves no file shares. It starts no service: kaz runs Samba and nfs-ganesha itself.
set -euo pipefail

[[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null || exit 0

declare -A nodes=([containerd]=containerd [runc]=runc [nft]=nftables [iptables]=iptables [ip]=iproute2 [nsenter]=util-linux
  [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [/usr/lib/cni/ptp]=containernetworking-plugins)
declare -A shares=([smbd]=samba [smbclient]=smbclient [ganesha.nfsd]=nfs-ganesha [nfs-ls]=libnfs-utils
  [/usr/lib/*/ganesha/libfsalvfs.so]=nfs-ganesha-vfs [/usr/lib/*/libnss_wrapper.so]=libnss-wrapper)

# missing prints the packages of the programs and files of a table that are not there.
missing() {
  local -n table=$1
  for program in "${!table[@]}"; do
    command -v "$program" >/dev/null || compgen -G "$program" >/dev/null || echo "${table[$program]}"
  done
}

# install installs packages, or says what happens without them.
install() {
  local without=$1
  shift
  echo "Installing programs of nodes: $*"
  apt-get -o Acquire::Retries=3 update -qq && apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "$@" >/dev/null ||
    echo "The installation failed: $without" >&2
}

export DEBIAN_FRONTEND=noninteractive
mapfile -t packages < <(missing nodes)
((${#packages[@]} == 0)) || install "nodes will be simulated" "${packages[@]}"
mapfile -t packages < <(missing shares)
((${#packages[@]})) || exit 0
# The packages of servers start them when they are installed, unless this file forbids it.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
install "file shares will not be served" "${packages[@]}"
