#!/usr/bin/env bash
# Installs what real nodes need of the distribution's programs, where it may; elsewhere kaz names what is missing and
# simulates nodes.
set -euo pipefail

[[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null || exit 0

declare -A packages=([containerd]=containerd [runc]=runc [nft]=nftables [ip]=iproute2 [nsenter]=util-linux)
missing=()
for program in "${!packages[@]}"; do
  command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
[[ -x /usr/lib/cni/ptp ]] || missing+=(containernetworking-plugins)
((${#missing[@]})) || exit 0

echo "Real nodes need programs that are not here; installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get -o Acquire::Retries=3 update -qq && apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }; then
  echo "They could not be installed: nodes will be simulated" >&2
fi
