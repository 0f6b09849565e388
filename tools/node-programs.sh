#!/usr/bin/env bash
# Installs the distribution's programs that real nodes and their disks need, as root on Debian and Ubuntu. Elsewhere kaz names the missing
# programs and simulates nodes.
set -euo pipefail

[[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null || exit 0

declare -A packages=([containerd]=containerd [runc]=runc [nft]=nftables [iptables]=iptables [ip]=iproute2 [nsenter]=util-linux
  [mkfs.ext4]=e2fsprogs [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs
  [debootstrap]=debootstrap)
missing=()
for program in "${!packages[@]}"; do
  command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
[[ -x /usr/lib/cni/ptp ]] || missing+=(containernetworking-plugins)
((${#missing[@]})) || exit 0

echo "Installing programs that real nodes need: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get -o Acquire::Retries=3 update -qq && apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }; then
  echo "The installation failed: nodes will be simulated" >&2
fi
