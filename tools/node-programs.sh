#!/usr/bin/env bash
# Installs the distribution's programs that real nodes, their disks and file shares need, as root on Debian and Ubuntu. With the
# argument "tests" it also installs those of tests with a guest: a second kernel, clients of file shares, a database. It starts no
# service. Elsewhere kaz names the missing programs and simulates nodes, and tests are skipped.
set -euo pipefail

[[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null || exit 0

declare -A packages=([containerd]=containerd [runc]=runc [nft]=nftables [iptables]=iptables [ip]=iproute2 [nsenter]=util-linux
  [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [/usr/lib/cni/ptp]=containernetworking-plugins)
if [[ ${1:-} == tests && $(uname -m) == x86_64 ]]; then # Debian has user-mode Linux for no other machine
  packages+=([linux.uml]=user-mode-linux [modprobe]=kmod [mount.cifs]=cifs-utils [mount.nfs]=nfs-common [smbd]=samba
    [/usr/lib/x86_64-linux-gnu/libnss_wrapper.so]=libnss-wrapper
    [ganesha.nfsd]=nfs-ganesha [/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so]=nfs-ganesha-vfs
    [/usr/lib/postgresql/15/bin/initdb]=postgresql-15)
fi
missing=()
for program in "${!packages[@]}"; do
  [[ -e $program ]] || command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
((${#missing[@]})) || exit 0

# Debian asks this program whether an installation may start a service.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi

echo "Installing programs that real nodes need: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get -o Acquire::Retries=3 update -qq && apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }; then
  echo "The installation failed: nodes will be simulated" >&2
fi
