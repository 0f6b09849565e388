#!/usr/bin/env bash
# Installs the distribution's programs that real nodes, their disks and file shares need, as root on Debian and Ubuntu. With the
# argument "tests" it also installs those of tests with a guest: a second kernel, clients of file shares, a database, a proxy, dig,
# a browser, rpm. It starts no service: kaz runs Samba and nfs-ganesha itself. Elsewhere kaz names the missing programs, simulates nodes,
# and serves no file shares; tests are skipped.
set -euo pipefail

[[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null || exit 0

declare -A nodes=([containerd]=containerd [runc]=runc [nft]=nftables [iptables]=iptables [ip]=iproute2 [nsenter]=util-linux
  [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [/usr/lib/cni/ptp]=containernetworking-plugins
  [debootstrap]=debootstrap)
declare -A shares=([smbd]=samba [smbclient]=smbclient [ganesha.nfsd]=nfs-ganesha [nfs-ls]=libnfs-utils
  [/usr/lib/*/ganesha/libfsalvfs.so]=nfs-ganesha-vfs [/usr/lib/*/libnss_wrapper.so]=libnss-wrapper)
# Debian has user-mode Linux for x86-64 only.
declare -A tests=([linux.uml]=user-mode-linux [modprobe]=kmod [mount.cifs]=cifs-utils [mount.nfs]=nfs-common
  [/usr/lib/postgresql/15/bin/initdb]=postgresql-15 [openssl]=openssl [curl]=curl [nginx]=nginx-light [dig]=bind9-dnsutils
  [chromium]=chromium [rpm]=rpm)

# missing prints the packages of the programs and files of a table that are not there.
missing() {
  local -n table=$1
  for program in "${!table[@]}"; do
    command -v "$program" >/dev/null || compgen -G "$program" >/dev/null || echo "${table[$program]}"
  done
}

# install installs the missing packages of a table, or says what happens without them.
install() {
  local packages
  mapfile -t packages < <(missing "$1")
  ((${#packages[@]})) || return 0
  echo "Installing programs of $1: ${packages[*]}"
  apt-get -o Acquire::Retries=3 update -qq && apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
    echo "The installation failed: $2" >&2
}

# The packages of servers start them when they are installed, unless this file forbids it.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
install nodes "nodes will be simulated"
install shares "file shares will not be served"
[[ ${1:-} == tests && $(uname -m) == x86_64 ]] || exit 0
install tests "tests with a guest will be skipped"
