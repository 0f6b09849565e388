#!/bin/bash
# Makes a machine a node of a Kubernetes cluster. It can run again at any time: each phase looks first at what is there.
# Settings are in /etc/kaz/node.env. Secrets come from the key vault, with the identity of the machine.
set -uo pipefail
root=${KAZ_ROOT:-}
imds=${KAZ_IMDS:-http://169.254.169.254}
. "$root/etc/kaz/node.env"
# An image may bring settings of its own.
[ ! -e "$root/etc/kaz/image.env" ] || . "$root/etc/kaz/image.env"
PATH=$root${KAZ_PROGRAMS:=/usr/local/bin}:$PATH
state=$root/run/kaz
kubernetes=$root/etc/kubernetes
mkdir -p "$state" "$kubernetes/pki/etcd" "$root/etc/kaz/patches"
current=start
began=$(date +%s)

# json PATH prints the text or number at a path of the JSON document that it reads, such as .token or .0.Status.leader. It fails if the
# document is not complete, or has neither a text nor a number there.
json() {
  LC_ALL=C awk -v path="$1" '
    function bad() { exit 1 }
    # scalar notes a value, and nested the begin of an object or a list.
    function scalar(value) { if (at() == path) { found = 1; result = value } }
    function at(  i, name) { for (i = 1; i <= depth; i++) name = name "." key[i]; return name }
    function nested(kind, first) { key[++depth] = 0; is[depth] = kind; want = first; open = 1 }
    function byte(n) { return sprintf("%c", n) }
    function utf8(n) {
      if (n < 128) return byte(n)
      if (n < 2048) return byte(192 + int(n / 64)) byte(128 + n % 64)
      if (n < 65536) return byte(224 + int(n / 4096)) byte(128 + int(n / 64) % 64) byte(128 + n % 64)
      return byte(240 + int(n / 262144)) byte(128 + int(n / 4096) % 64) byte(128 + int(n / 64) % 64) byte(128 + n % 64)
    }
    # hex takes the four digits of \u from the text.
    function hex(  i, n, digit) {
      for (i = 1; i <= 4; i++) {
        digit = index("0123456789abcdef", tolower(substr(text, i, 1))) - 1
        if (digit < 0 || length(text) < 4) bad()
        n = n * 16 + digit
      }
      text = substr(text, 5)
      return n
    }
    function unicode(  n, low) {
      n = hex()
      if (n >= 55296 && n < 56320 && substr(text, 1, 2) == "\\u") {
        text = substr(text, 3)
        low = hex()
        return low >= 56320 && low < 57344 ? utf8(65536 + (n - 55296) * 1024 + low - 56320) : utf8(65533) utf8(low)
      }
      if (n == 0) bad() # no shell can hold it
      return utf8(n >= 55296 && n < 57344 ? 65533 : n)
    }
    # string takes a string from the text, behind its first quote.
    function string(  value, c) {
      while (match(text, /["\\]/)) {
        value = value substr(text, 1, RSTART - 1)
        c = substr(text, RSTART, 1)
        text = substr(text, RSTART + 1)
        if (c == "\"") return value
        c = substr(text, 1, 1)
        text = substr(text, 2)
        if (c == "u") value = value unicode()
        else if (c in escaped) value = value escaped[c]
        else bad()
      }
      bad()
    }
    function take(c) {
      if (open && c == (is[depth] == "object" ? "}" : "]") || want == "next" && depth && c == (is[depth] == "object" ? "}" : "]")) {
        depth--; want = "next"; open = 0
      } else if (want == "next" && depth && c == ",") {
        want = "value"
        if (is[depth] == "object") want = "key"
        else key[depth]++
      } else if (want == "colon" && c == ":") want = "value"
      else if (want == "key" && c == "\"") { key[depth] = string(); want = "colon"; open = 0 }
      else if (want == "value" && c == "{") nested("object", "key")
      else if (want == "value" && c == "[") nested("list", "value")
      else if (want == "value" && c == "\"") { scalar(string()); want = "next"; open = 0 }
      else bad()
    }
    BEGIN {
      split("\" \\ / b f n r t", names, " ")
      split("\"|\\|/|\b|\f|\n|\r|\t", values, "|")
      for (i in names) escaped[names[i]] = values[i]
    }
    { text = text $0 "\n" }
    END {
      want = "value"
      for (sub(/^[ \t\r\n]+/, "", text); text != ""; sub(/^[ \t\r\n]+/, "", text)) {
        if (want == "value" && match(text, /^(-?[0-9][0-9.eE+-]*|true|false|null)/)) {
          if (text !~ /^[tfn]/) scalar(substr(text, 1, RLENGTH))
          text = substr(text, RLENGTH + 1)
          want = "next"; open = 0
          continue
        }
        c = substr(text, 1, 1)
        text = substr(text, 2)
        take(c)
      }
      if (depth || want != "next" || !found) bad()
      printf "%s", result
    }'
}

# quote prints the end of the text that it reads as a string of JSON. Bytes that are not UTF-8 become U+FFFD.
quote() {
  tail -c 2000 | LC_ALL=C awk '
    BEGIN {
      for (i = 1; i < 32; i++) escaped[sprintf("%c", i)] = sprintf("\\u%04x", i)
      escaped["\""] = "\\\""; escaped["\\"] = "\\\\"; escaped["\177"] = "\\u007f"; escaped["\t"] = "\\t"
      rest = "[\200-\277]"
      long = "^([\302-\337]" rest "|\340[\240-\277]" rest "|[\341-\354\356\357]" rest rest "|\355[\200-\237]" rest \
        "|\360[\220-\277]" rest rest "|[\361-\363]" rest rest rest "|\364[\200-\217]" rest rest ")"
      printf "\""
    }
    {
      if (NR > 1) printf "\\n"
      for (i = 1; i <= length($0); i += n) {
        c = substr($0, i, 1)
        n = 1
        if (c in escaped) printf "%s", escaped[c]
        else if (c < "\200") printf "%s", c
        else if (match(substr($0, i, 4), long)) { n = RLENGTH; printf "%s", substr($0, i, n) }
        else printf "\\ufffd"
      }
    }
    END { printf "\"" }'
}

# report writes the result of the boot, which the extension of the machine shows when the boot fails.
report() {
  printf '{"failed": %s, "phase": "%s", "code": %d, "message": %s, "seconds": %d}\n' \
    "$1" "$current" "$2" "$(printf %s "$3" | quote)" "$(($(date +%s) - began))" > "$state/bootstrap.json.new"
  mv "$state/bootstrap.json.new" "$state/bootstrap.json"
  echo "KAZ-STATUS $(cat "$state/bootstrap.json")"
}

# fail CODE MESSAGE
fail() {
  report true "$1" "$2"
  exit "$1"
}

# phase NAME CODE FUNCTION runs a phase and says how long it took.
phase() {
  current=$1
  local from output
  from=$(date +%s)
  output=$("$3" 2>&1) || fail "$2" "$output"
  [ -z "$output" ] || echo "$output"
  echo "KAZ-PHASE $current $(($(date +%s) - from))s"
}

# token RESOURCE prints a token of the machine's identity.
token() {
  curl -sS --fail-with-body --retry 10 --retry-delay "${KAZ_RETRY_DELAY:-3}" --retry-all-errors --noproxy '*' -H Metadata:true -G \
    "$imds/metadata/identity/oauth2/token" --data-urlencode api-version=2018-02-01 --data-urlencode "resource=$1" \
    --data-urlencode "msi_res_id=$KAZ_IDENTITY" | json .access_token
}

# secret NAME prints a secret. New roles take minutes to apply, so refusals are tried again for ten minutes.
secret() {
  local bearer try status
  bearer=$(token "$KAZ_VAULT_AUDIENCE") || { echo "no token for the key vault: $bearer"; return 1; }
  for try in $(seq "${KAZ_TRIES:-60}"); do
    status=$(curl -sS -o "$state/answer" -w '%{http_code}' -H @<(echo "Authorization: Bearer $bearer") \
      "$KAZ_VAULT_URL/secrets/$1?api-version=7.4")
    case $status in
      200)
        json .value < "$state/answer" && { rm -f "$state/answer"; return 0; }
        rm -f "$state/answer"
        echo "the key vault's answer for the secret $1 has no value" >&2
        return 1 ;;
      403|404|429|5??|000) sleep "${KAZ_RETRY_DELAY:-10}" ;;
      *) break ;;
    esac
  done
  rm -f "$state/answer"
  echo "key vault answered $status for the secret $1" >&2
  return 1
}

# attribute FILE prints an attribute of the kernel, without the blanks around it.
attribute() {
  local value=
  { read -r value < "$1"; } 2>/dev/null
  echo "$value"
}

# at-data-controller DEVICE reports whether a SCSI device of the kernel is at a virtual controller of data disks.
at-data-controller() {
  local up=$1 id
  while [ "$up" != "$root" ] && [ -n "$up" ]; do
    id=$(attribute "$up/device_id")
    case ${id,,} in
      '{f8b3781b-1e82-4818-a1c3-63d806ec15bb}'|'{f8b3781c-1e82-4818-a1c3-63d806ec15bb}'|'{f8b3781d-1e82-4818-a1c3-63d806ec15bb}') return 0 ;;
      ?*) return 1 ;;
    esac
    up=${up%/*}
  done
  return 1
}

# device LUN prints the data disk with a LUN, as the driver of disks finds it: a link of udev, or else the NVMe namespace LUN + 2 of
# Azure's controller of remote disks, or the SCSI disk of the LUN. Images without azure-vm-utils have no links for NVMe disks.
device() {
  local link block at found=()
  for link in "$root/dev/disk/azure/scsi1/lun$1" "$root/dev/disk/azure/data/by-lun/$1"; do
    [ ! -e "$link" ] || { echo "$link"; return 0; }
  done
  for block in "$root"/sys/block/*; do
    case $(attribute "$block/device/vendor"):$(attribute "$block/device/model") in
      *:'MSFT NVMe Accelerator v1.0')
        [ "$(attribute "$block/nsid")" != $(($1 + 2)) ] || found+=("$root/dev/${block##*/}") ;;
      [Mm][Ss][Ff][Tt]:'Virtual Disk')
        at=$(readlink -f "$block/device")
        [ "${at##*:}" != "$1" ] || ! at-data-controller "$at" || found+=("$root/dev/${block##*/}") ;;
    esac
  done
  [ ${#found[@]} -le 1 ] || { echo "${#found[@]} disks have LUN $1: ${found[*]}"; return 2; }
  [ ${#found[@]} = 1 ] && [ -e "${found[0]}" ] && echo "${found[0]}"
}

# disks mounts the disk of etcd. A blank one gets a file system first, and one with other content is refused.
disks() {
  [ "$KAZ_ROLE" = control-plane ] || return 0
  local disk mount=$root/var/lib/etcddisk try status
  for try in $(seq "${KAZ_TRIES:-24}"); do
    disk=$(device 0)
    status=$?
    [ $status = 1 ] || break
    sleep "${KAZ_RETRY_DELAY:-5}"
  done
  case $status in
    0) ;;
    1) echo "the disk of etcd is missing: no disk with LUN 0"; return 1 ;;
    *) echo "$disk"; return 1 ;;
  esac
  if [ "$(blkid -p -s LABEL -o value "$disk")" != etcd_disk ]; then
    [ -z "$(blkid -p "$disk")" ] || { echo "the disk with LUN 0 is not the one of etcd, and not blank: $(blkid -p "$disk")"; return 1; }
    mkfs.ext4 -q -L etcd_disk "$disk" || return 1
  fi
  mkdir -p "$mount"
  grep -q " /var/lib/etcddisk " "$root/etc/fstab" ||
    echo "UUID=$(blkid -p -s UUID -o value "$disk") /var/lib/etcddisk ext4 defaults,nofail 0 2" >> "$root/etc/fstab"
  mountpoint -q "$mount" || mount "$mount"
}

# name gives the machine its computer name, under which Azure knows the node.
name() {
  [ -n "${KAZ_SET_NAME:-}" ] || return 0
  local self
  self=$(curl -sS -f --retry 10 --retry-delay "${KAZ_RETRY_DELAY:-3}" --retry-all-errors --noproxy '*' -H Metadata:true \
    "$imds/metadata/instance/compute/osProfile/computerName?api-version=2021-02-01&format=text") ||
    { echo "no instance metadata"; return 1; }
  [ "$(cat "$root/etc/hostname" 2>/dev/null)" = "$self" ] || echo "$self" > "$root/etc/hostname" || return 1
  [ "$(hostname)" = "$self" ] || hostname "$self"
}

system() {
  name || return 1
  touch "$root/etc/fstab" # some images have none
  [ -z "${KAZ_AUTHORITIES:-}" ] || update-ca-certificates || return 1
  swapoff -a && sed -i '/\sswap\s/d' "$root/etc/fstab" && modprobe -a overlay br_netfilter && sysctl -q --system
}

# packages installs the packages of the definition. Nothing is installed of which a checksum does not fit, and no source of the image is asked.
packages() {
  local sum url arch dir=$state/packages all=()
  arch=$(architecture)
  mkdir -p "$dir" || return 1
  while read -r sum url; do
    case $url in
      *_"$arch".deb|*_all.deb) ;;
      *_amd64.deb|*_arm64.deb) continue ;;
    esac
    all+=("$dir/${url##*/}")
    curl -sSfL --retry 5 --retry-delay "${KAZ_RETRY_DELAY:-3}" --retry-all-errors -o "${all[-1]}" "$url" ||
      { echo "the package $url cannot be read"; return 1; }
    echo "$sum  ${all[-1]}" | sha256sum -c --quiet - ||
      { rm -rf "$dir"; echo "$url has another checksum than spec.machines.packages"; return 1; }
  done < "$root/etc/kaz/packages"
  [ ${#all[@]} -gt 0 ] || { echo "spec.machines.packages has none for $arch"; return 1; }
  DEBIAN_FRONTEND=noninteractive dpkg --force-confold --install "${all[@]}" && rm -rf "$dir"
}

runtime() {
  if [ -e "$root/etc/kaz/packages" ]; then
    command -v containerd >/dev/null && command -v conntrack >/dev/null && command -v nft >/dev/null || packages || return 1
  fi
  if ! command -v containerd >/dev/null || ! command -v conntrack >/dev/null || ! command -v nft >/dev/null; then
    command -v apt-get >/dev/null || { echo "the image needs containerd, conntrack and nft: it has no apt-get to install them"; return 1; }
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 update &&
      apt-get -qy -o DPkg::Lock::Timeout=300 install containerd containernetworking-plugins conntrack socat ebtables nftables || return 1
  fi
  local rules
  for rules in kaz-masquerade kaz-metadata; do
    [ -e "$root/etc/systemd/system/$rules.service" ] || continue
    systemctl enable -q "$rules" && systemctl restart "$rules" || return 1
  done
  systemctl enable -q containerd && systemctl restart containerd
}

# installed PROGRAM tells whether a program has the wanted version.
installed() {
  local found
  case $1 in
    kubelet) found=$(kubelet --version 2>/dev/null) ;;
    kubeadm) found=$(kubeadm version -o short 2>/dev/null) ;;
    kubectl) found=$(kubectl version --client 2>/dev/null) ;;
  esac
  [[ $found =~ "v$KAZ_VERSION"([^0-9]|$) ]]
}

# architecture prints the name of the processor's architecture, as in the names of programs.
architecture() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

# published URL [CURL-OPTION...] prints the checksum beside a program.
published() {
  local url=$1 sum
  shift
  sum=$(curl -sSfL --proto '=https,file' --proto-redir '=https' "$@" "$url.sha256") && [[ $sum =~ ^[0-9a-f]{64}$ ]] && echo "$sum"
}

# listed FILE PATH prints the checksum of a program that a file has.
listed() {
  local sum path
  [ -e "$1" ] || return 1
  while read -r sum path; do
    [ "$path" != "$2" ] || { echo "$sum"; return 0; }
  done < "$1"
  return 1
}

# checksum PATH prints the checksum of a program by its path below the mirror: that of the definition, that of the release of kaz, or else
# the one that the project publishes. A mirror vouches for its own files only if the image brings it, or with https where the project's
# is not to be had.
checksum() {
  local from=${KAZ_OFFICIAL:-}
  if listed "$root/etc/kaz/checksums" "$1"; then return 0; fi
  if [[ $KAZ_MIRROR == file://* ]]; then
    from=$KAZ_MIRROR
  elif listed "$root/etc/kaz/released-checksums" "$1"; then
    return 0
  elif [[ $KAZ_MIRROR != https://* ]]; then
    echo "$KAZ_MIRROR does not protect programs on their way: give the checksum of $1 in spec.kubernetes.artifactChecksums" >&2
    return 1
  fi
  local retry=(--retry "${KAZ_RETRIES:-5}" --retry-all-errors)
  if [ -n "$from" ] && [ "$from" != "$KAZ_MIRROR" ] && published "$from/$1" --connect-timeout 10 --retry 1; then return 0; fi
  published "$KAZ_MIRROR/$1" "${retry[@]}" ||
    { echo "neither ${from:-the definition} nor $KAZ_MIRROR has a checksum of $1: give it in spec.kubernetes.artifactChecksums" >&2; return 1; }
}

# binaries brings the programs of Kubernetes. Those of the image are used if they fit.
binaries() {
  local arch program path sum
  arch=$(architecture)
  mkdir -p "$root$KAZ_PROGRAMS"
  for program in kubeadm kubelet kubectl; do
    if installed "$program"; then # the image may have it elsewhere
      [ -e "$root$KAZ_PROGRAMS/$program" ] || ln -s "$(type -P "$program")" "$root$KAZ_PROGRAMS/$program" || return 1
      continue
    fi
    path=v$KAZ_VERSION/bin/linux/$arch/$program
    sum=$(checksum "$path") || return 1
    curl -sSfL --retry 5 --retry-all-errors -o "$state/$program" "$KAZ_MIRROR/$path" || return 1
    echo "$sum  $state/$program" | sha256sum -c --quiet - ||
      { echo "$KAZ_MIRROR/$path has another checksum than $sum"; rm -f "$state/$program"; return 1; }
    install -m 0755 "$state/$program" "$root$KAZ_PROGRAMS/$program" && rm "$state/$program" || return 1
  done
  sandbox && systemctl daemon-reload && systemctl enable -q kubelet
}

# sandbox lets containerd make pods with the image of the definition's repository, in the version that kubeadm wants.
sandbox() {
  [ -n "${KAZ_IMAGES:-}" ] || return 0
  local image config=$root/etc/containerd/config.toml
  image=$(kubeadm config images list --kubernetes-version "v$KAZ_VERSION" --image-repository "$KAZ_IMAGES" | grep '/pause:') ||
    { echo "kubeadm names no image for the sandboxes of pods"; return 1; }
  ! grep -qF "sandbox_image = \"$image\"" "$config" || return 0
  sed -i "s|^\( *sandbox_image = \).*|\1\"$image\"|" "$config" && systemctl restart containerd
}

# downloads brings the files of extensions that are elsewhere. Nothing is written whose checksum does not fit.
downloads() {
  local sum mode url path
  [ -e "$root/etc/kaz/downloads" ] || return 0
  while read -r sum mode url path; do
    curl -sSfL --retry 5 --retry-delay "${KAZ_RETRY_DELAY:-3}" --retry-all-errors -o "$state/download" "$url" ||
      { echo "$url cannot be read"; return 1; }
    echo "$sum  $state/download" | sha256sum -c --quiet - ||
      { echo "the file at $url has another checksum than the Extension says"; return 1; }
    mkdir -p "$(dirname "$root$path")" && install -m "$mode" "$state/download" "$root$path" && rm "$state/download" || return 1
  done < "$root/etc/kaz/downloads"
}

# registries lets the kubelet pull images with the identity of the machine if the image or an extension has brought the program for that.
registries() {
  local program config=/etc/kaz/credential-provider.yaml
  program=$(type -P acr-credential-provider)
  if [ ! -e "$root$config" ] || [ -z "$program" ]; then
    rm -f "$root/etc/kaz/kubelet.env"
    return 0
  fi
  program=$(dirname "${program#"$root"}")
  echo "KAZ_KUBELET_ARGS=--image-credential-provider-config=$config --image-credential-provider-bin-dir=$program" \
    > "$root/etc/kaz/kubelet.env"
}

# join-field NAME [FILE] prints the field of a join token: token or caCertHash. They go into other files, so their form is checked.
join-field() {
  local value form='^[a-z0-9]{6}\.[a-z0-9]{16}$'
  [ "$1" = token ] || form='^sha256:[0-9a-f]+$'
  value=$(json ".$1" < "${2:-$state/join.json}") && [[ $value =~ $form ]] ||
    { echo "the secret $KAZ_CLUSTER-bootstrap-token has no valid $1: want the form $form" >&2; return 1; }
  echo "$value"
}

# keys writes the certificate authorities of the cluster. Nodes have no right to read them.
keys() {
  umask 077
  secret "$KAZ_CLUSTER-bootstrap-token" > "$state/join.json" || return 1
  join-field token >/dev/null && join-field caCertHash >/dev/null || return 1
  [ "$KAZ_ROLE" = control-plane ] || return 0
  local item name file
  for item in pki-ca:ca pki-etcd-ca:etcd/ca pki-front-proxy-ca:front-proxy-ca pki-sa:sa; do
    name=${item%%:*} file=$kubernetes/pki/${item#*:}
    secret "$KAZ_CLUSTER-$name" > "$state/bundle" || return 1
    case $name in
      pki-sa) sed -n '/BEGIN PUBLIC KEY/,/END PUBLIC KEY/p' "$state/bundle" > "$file.pub" ;;
      *) sed -n '/BEGIN CERTIFICATE/,/END CERTIFICATE/p' "$state/bundle" > "$file.crt" ;;
    esac
    # A second private key is the next of a rotation, and nothing signs with it yet.
    sed -n '/BEGIN PRIVATE KEY/,/END PRIVATE KEY/p; /END PRIVATE KEY/q' "$state/bundle" > "$file.key"
    rm -f "$state/bundle"
    [ -s "$file.key" ] || { echo "the secret $name has no key"; return 1; }
  done
  encryption
}

# encryption lets the API server of a member encrypt Secrets with a key of the key vault. It can read Secrets of all keys there, and Secrets
# that are not encrypted. Without a key that encrypts, as before the first one is in use, it writes Secrets as they are.
encryption() {
  [ -n "${KAZ_ENCRYPTION:-}" ] || return 0
  local use name key first='' others='' identity='  - identity: {}' providers
  secret "$KAZ_CLUSTER-encryption" > "$state/encryption" || return 1
  while read -r use name key; do
    case $use in every|backups|'') continue ;; esac # notes of kaz
    [[ $use =~ ^(encrypts|reads|next)$ && $name =~ ^[a-z0-9-]+$ && $key =~ ^[A-Za-z0-9+/]{43}=$ ]] ||
      { rm -f "$state/encryption"; echo "the secret $KAZ_CLUSTER-encryption has a line that is no key of 32 bytes in base64"; return 1; }
    key="      - {name: $name, secret: $key}"$'\n'
    if [ "$use" = encrypts ]; then first+=$key; else others+=$key; fi
  done < <(cat "$state/encryption"; echo)
  rm -f "$state/encryption"
  [ -n "$first$others" ] || { echo "the secret $KAZ_CLUSTER-encryption has no key"; return 1; }
  providers="  - $KAZ_ENCRYPTION:"$'\n      keys:\n'"$first$others"
  if [ -n "$first" ]; then providers+=$identity; else providers=$identity$'\n'${providers%$'\n'}; fi
  printf 'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n%s\n' \
    "$providers" > "$kubernetes/pki/encryption.yaml" || return 1
  echo "[{op: add, path: /spec/containers/0/command/-, value: --encryption-provider-config=/etc/kubernetes/pki/encryption.yaml}]" \
    > "$root/etc/kaz/patches/kube-apiserver-kaz+json.yaml"
}

# rotating tells whether this member has certificate authorities of a rotation: ca.crt has two, and the first one issues.
rotating() {
  [ "$KAZ_ROLE" = control-plane ] && [ "$(grep -c 'BEGIN CERTIFICATE' "$kubernetes/pki/ca.crt" 2>/dev/null)" = 2 ]
}

# authorities prepares a member for kubeadm. The controller manager takes a file with one certificate for what it signs.
authorities() {
  local patch=$root/etc/kaz/patches/kube-controller-manager-kaz+json.yaml pki=/etc/kubernetes/pki
  rotating || { rm -f "$patch"; return 0; }
  sed '/END CERTIFICATE/q' "$kubernetes/pki/ca.crt" > "$kubernetes/pki/ca-issues.crt" || return 1
  echo "[{op: add, path: /spec/containers/0/command/-, value: --cluster-signing-cert-file=$pki/ca-issues.crt}]" > "$patch"
}

# trust puts both authorities of a rotation into the kubeconfigs of a member, into which kubeadm writes the first one only.
trust() {
  local name both
  rotating || return 0
  both=$(base64 -w0 "$kubernetes/pki/ca.crt") || return 1
  for name in admin super-admin controller-manager scheduler kubelet; do
    [ ! -e "$kubernetes/$name.conf" ] ||
      sed -i "s|^\( *certificate-authority-data:\).*|\1 $both|" "$kubernetes/$name.conf" || return 1
  done
}

# kubelet_request FILE makes the key and the request for the certificate of this machine's kubelet: FILE.key and FILE.csr. A key stays.
kubelet_request() {
  [ -s "$1.key" ] || openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:named_curve \
    -out "$1.key" || return 1
  openssl req -new -key "$1.key" -subj "/O=system:nodes/CN=system:node:$(hostname | tr '[:upper:]' '[:lower:]')" -out "$1.csr"
}

# kubelet_sign FILE signs FILE.csr with the authority of this member that issues.
kubelet_sign() {
  local issuer=$kubernetes/pki/ca.crt
  ! rotating || issuer=$kubernetes/pki/ca-issues.crt
  printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\n' > "$1.ext" &&
    openssl x509 -req -in "$1.csr" -CA "$issuer" -CAkey "$kubernetes/pki/ca.key" -set_serial "0x$(openssl rand -hex 15)" -days 365 \
      -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}

# kubelet_ask FILE asks the cluster for the certificate of FILE.csr. Its proof is the document in which the metadata service says which
# machine this is. The nonce makes the document good for this key alone.
kubelet_ask() {
  local call=(kubectl --kubeconfig "$kubernetes/bootstrap-kubelet.conf" --request-timeout 10s) nonce document name try answer
  local condition certificate message
  nonce=$(openssl pkey -in "$1.key" -pubout -outform DER | sha256sum | cut -c 1-32) || return 1
  document=$(curl -sS -f --retry 10 --retry-delay "${KAZ_RETRY_DELAY:-3}" --retry-all-errors --noproxy '*' -H Metadata:true \
    "$imds/metadata/attested/document?api-version=2021-02-01&nonce=$nonce" | json .signature) && [[ $document =~ ^[A-Za-z0-9+/=]+$ ]] ||
    { echo "the metadata service gives no signed document of this machine"; return 1; }
  name=$("${call[@]}" create --validate=false -o 'jsonpath={.metadata.name}' -f - <<JSON
{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
 "metadata": {"generateName": "kaz-node-", "annotations": {"kaz/attested-document": "$document"}},
 "spec": {"signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["digital signature", "client auth"],
  "request": "$(base64 -w0 "$1.csr")"}}
JSON
  ) || { echo "the cluster takes no request for a certificate: $name"; return 1; }
  for try in $(seq "${KAZ_TRIES:-60}"); do
    answer=$("${call[@]}" get certificatesigningrequest "$name" -o \
      'jsonpath={.status.conditions[*].type}|{.status.certificate}|{.status.conditions[*].message}')
    IFS='|' read -r condition certificate message <<< "$answer"
    case $condition in *Denied*|*Failed*) echo "the cluster refuses the request $name for a certificate: $message"; return 1 ;; esac
    [ -z "$certificate" ] || { base64 -d <<< "$certificate" > "$1.crt"; return; }
    sleep "${KAZ_RETRY_DELAY:-5}"
  done
  echo "nobody has decided about the request $name for a certificate yet: the cloud-controller-manager does"
  return 1
}

# identity gives the kubelet its certificate before it starts for the first time, when kubeadm has left a kubeconfig with the join token.
# A member signs the certificate itself. A node asks for it.
identity() {
  local from=$kubernetes/bootstrap-kubelet.conf to=$kubernetes/kubelet.conf pki=$root/var/lib/kubelet/pki new=$state/kubelet-identity pem
  [ -e "$from" ] && [ ! -e "$to" ] || return 0
  umask 077
  kubelet_request "$new" || return 1
  if [ "$KAZ_ROLE" = control-plane ]; then kubelet_sign "$new"; else kubelet_ask "$new"; fi || return 1
  pem=$pki/kubelet-client-$(date -u +%Y-%m-%d-%H-%M-%S).pem
  mkdir -p "$pki" && cat "$new.crt" "$new.key" > "$pem" && ln -sfn "$pem" "$pki/kubelet-client-current.pem" || return 1
  pem=/var/lib/kubelet/pki/kubelet-client-current.pem
  sed "s|^\( *\)token: .*|\1client-certificate: $pem\n\1client-key: $pem|" "$from" > "$to.new" &&
    grep -q client-certificate: "$to.new" && mv "$to.new" "$to" && rm -f "$new".*
}

# kubelet_certificate gives the kubelet of a member a certificate of the authority that issues. The controller manager of another member
# may have signed that with which it joined, and have the former authority.
kubelet_certificate() {
  local file=$root/var/lib/kubelet/pki/kubelet-client-current.pem pki=$kubernetes/pki new=$state/kubelet-client
  rotating && [ -e "$file" ] || return 0
  openssl verify -partial_chain -trusted "$pki/ca-issues.crt" "$file" >/dev/null 2>&1 && return 0
  umask 077
  kubelet_request "$new" && kubelet_sign "$new" && cat "$new.crt" "$new.key" > "$(readlink -f "$file")" && rm -f "$new".* ||
    { echo "the kubelet gets no certificate"; return 1; }
  systemctl restart kubelet
}

# elect decides which machine makes the cluster: the one that creates the blob. All others join, also a machine that was
# made anew with the name of the first one, because the blob names the machine by its unique id.
elect() {
  [ "$KAZ_ROLE" = control-plane ] || { echo join > "$state/decision"; return 0; }
  local bearer self status url=$KAZ_ELECTION_URL/initialized
  self=$(curl -sS -f --retry 10 --retry-delay "${KAZ_RETRY_DELAY:-3}" --retry-all-errors --noproxy '*' -H Metadata:true \
    "$imds/metadata/instance/compute/vmId?api-version=2021-02-01&format=text") || { echo "no instance metadata"; return 1; }
  bearer=$(token https://storage.azure.com/) || { echo "no token for the storage account"; return 1; }
  local try
  for try in $(seq "${KAZ_TRIES:-60}"); do
    status=$(curl -sS -o /dev/null -w '%{http_code}' -X PUT -H @<(echo "Authorization: Bearer $bearer") -H 'x-ms-version: 2021-08-06' \
      -H 'x-ms-blob-type: BlockBlob' -H 'If-None-Match: *' --data-binary "$self" "$url")
    case $status in
      201) echo init > "$state/decision"; return 0 ;;
      409|412)
        local winner
        winner=$(curl -sSf -H @<(echo "Authorization: Bearer $bearer") -H 'x-ms-version: 2021-08-06' "$url") ||
          { echo "cannot read $url"; return 1; }
        if [ "$winner" = "$self" ]; then echo init > "$state/decision"; else echo join > "$state/decision"; fi
        return 0 ;;
      403|404|429|5??|000) sleep "${KAZ_RETRY_DELAY:-10}" ;;
      *) break ;;
    esac
  done
  echo "the storage account answered $status for the election"
  return 1
}

# address prints the address of the default route.
address() {
  [ -z "${KAZ_ADDRESS:-}" ] || { echo "$KAZ_ADDRESS"; return 0; }
  local route
  route=$(ip -4 route get 192.0.2.1) && [[ $route =~ " src "([0-9.]+) ]] ||
    { echo "the machine has no default route: $route" >&2; return 1; }
  echo "${BASH_REMATCH[1]}"
}

# blob BEARER METHOD NAME [CURL ARGUMENTS] asks for a blob of the container, or for the container if NAME is empty, and prints the
# status.
blob() {
  local bearer=$1 method=$2 name=$3
  shift 3
  curl -sS -o "$state/blob" -w '%{http_code}' -X "$method" -H @<(echo "Authorization: Bearer $bearer") -H 'x-ms-version: 2021-08-06' \
    --retry 5 --retry-delay "${KAZ_RETRY_DELAY:-3}" "$@" "$KAZ_ELECTION_URL${name:+/$name}"
}

# whole FILE tells whether a backup of etcd has the hash at its end that fits.
whole() {
  local size sum
  size=$(($(stat -c %s "$1") - 32))
  [ "$size" -gt 0 ] && [ $((size % 512)) = 0 ] || return 1
  sum=$(head -c "$size" "$1" | sha256sum) || return 1
  [ "${sum%% *}" = "$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')" ]
}

# statement NAME FILE prints the text that the signature of a backup signs.
statement() {
  local sum
  sum=$(sha256sum < "$2") || return 1
  printf 'kaz backup of etcd\ncluster: %s\nname: %s\nsha256: %s\n' "$KAZ_CLUSTER" "$1" "${sum%% *}"
}

# genuine NAME FILE tells whether a certificate authority of this cluster's etcd has signed a backup, with the signature in the blob that
# was read last. During a rotation there are two authorities.
genuine() {
  local number text signed=1
  text=$(statement "$1" "$2") && base64 -d < "$state/blob" > "$state/signature" 2>/dev/null || return 1
  for number in 1 2; do
    awk -v number=$number '/BEGIN CERTIFICATE/ { n++ } n == number' "$kubernetes/pki/etcd/ca.crt" |
      openssl x509 -noout -pubkey > "$state/public" 2>/dev/null || continue
    openssl dgst -sha256 -verify "$state/public" -signature "$state/signature" <<< "$text" >/dev/null 2>&1 && signed=0
  done
  rm -f "$state/signature" "$state/public" "$state/blob"
  return $signed
}

# etcdutl runs the program of that name: that of the machine, or else that of etcd's image.
etcdutl() {
  local image program
  if program=$(type -P etcdutl); then
    "$program" "$@"
    return
  fi
  image=$(kubeadm config images list --kubernetes-version "v$KAZ_VERSION" | grep '/etcd:') || return 1
  [ -n "$(ctr -n k8s.io images ls -q "name==$image")" ] || ctr -n k8s.io images pull "$image" >/dev/null || return 1
  ctr -n k8s.io run --rm --mount "type=bind,src=$root/var/lib/etcddisk,dst=$root/var/lib/etcddisk,options=rbind:rw" "$image" kaz-etcdutl \
    etcdutl "$@"
}

# restore lets etcd begin with the backup that is marked in the container, on the machine that makes the cluster. The revisions go
# up, so that no program takes an object of before for a newer one.
restore() {
  [ "$KAZ_ROLE" = control-plane ] && [ "$(cat "$state/decision")" = init ] || return 0
  local disk=$root/var/lib/etcddisk bearer status name self own
  [ ! -e "$disk/etcd/member" ] || return 0
  bearer=$(token https://storage.azure.com/) || { echo "no token for the storage account"; return 1; }
  status=$(blob "$bearer" GET restore)
  [ "$status" != 404 ] || { rm -f "$state/blob"; return 0; }
  [ "$status" = 200 ] || { echo "the storage account answered $status for the mark of a restore"; return 1; }
  name=$(cat "$state/blob")
  status=$(blob "$bearer" GET "$name")
  [ "$status" = 200 ] || { echo "the storage account answered $status for the backup $name"; return 1; }
  mkdir -p "$disk/etcd"
  chmod 0700 "$disk/etcd"
  mv "$state/blob" "$disk/restore.db"
  whole "$disk/restore.db" || { echo "the backup $name is damaged: its hash does not fit"; return 1; }
  status=$(blob "$bearer" GET "$name.sig")
  case $status in 200|404) ;; *) echo "the storage account answered $status for the signature of the backup $name"; return 1 ;; esac
  [ "$status" = 200 ] && genuine "$name" "$disk/restore.db" || { echo "nothing proves that this cluster made the backup $name"; return 1; }
  self=$(hostname | tr '[:upper:]' '[:lower:]')
  own=$(address) || return 1
  rm -rf "$disk/restored"
  etcdutl snapshot restore "$disk/restore.db" --data-dir "$disk/restored" --name "$self" --bump-revision 1000000000 --mark-compacted \
    --initial-cluster "$self=https://$own:2380" --initial-advertise-peer-urls "https://$own:2380" || return 1
  mv "$disk/restored/member" "$disk/etcd/member" && rm -rf "$disk/restored" "$disk/restore.db" || return 1
  touch "$kubernetes/kaz-init-began" # kubeadm refuses data of etcd otherwise
}

# etcdctl runs the program of that name in the pod of this machine's etcd.
etcdctl() {
  local certs=/etc/kubernetes/pki/etcd
  kubectl --kubeconfig "$kubernetes/admin.conf" -n kube-system exec "etcd-$(hostname | tr '[:upper:]' '[:lower:]')" -- etcdctl \
    --endpoints https://127.0.0.1:2379 --cacert $certs/ca.crt --cert $certs/healthcheck-client.crt --key $certs/healthcheck-client.key "$@"
}

# backup stores a backup of etcd in the container. Of all members the leader of etcd does.
backup() {
  local file=/var/lib/etcddisk/etcd/kaz-backup.db bearer answer leader self revision name status signature
  answer=$(etcdctl endpoint status -w json) && leader=$(json .0.Status.leader <<< "$answer") &&
    self=$(json .0.Status.header.member_id <<< "$answer") && revision=$(json .0.Status.header.revision <<< "$answer") ||
    { echo "etcd does not answer"; return 1; }
  [ "$leader" = "$self" ] || { echo "another member leads etcd, and makes the backup"; return 0; }
  etcdctl snapshot save "$file" || return 1
  whole "$root$file" || { echo "the backup is damaged: its hash does not fit"; return 1; }
  name=etcd/$(date -u +%Y%m%dT%H%M%SZ)-$revision.db
  signature=$(statement "$name" "$root$file" | openssl dgst -sha256 -sign "$kubernetes/pki/etcd/ca.key" | base64 -w0) ||
    { echo "the backup cannot be signed"; return 1; }
  bearer=$(token https://storage.azure.com/) || { echo "no token for the storage account"; return 1; }
  status=$(blob "$bearer" PUT "$name" -H 'x-ms-blob-type: BlockBlob' -H 'If-None-Match: *' --data-binary @"$root$file")
  rm -f "$root$file"
  [ "$status" = 201 ] || { echo "the storage account answered $status for the backup $name"; return 1; }
  status=$(blob "$bearer" PUT "$name.sig" -H 'x-ms-blob-type: BlockBlob' --data-binary "$signature")
  [ "$status" = 201 ] || { echo "the storage account answered $status for the signature of the backup $name"; return 1; }
  status=$(blob "$bearer" PUT etcd/latest -H 'x-ms-blob-type: BlockBlob' --data-binary "$name")
  [ "$status" = 201 ] || { echo "the storage account answered $status for the name of the newest backup"; return 1; }
  echo "saved as $name"
}

# prune NUMBER deletes backups of etcd from the container, but the newest ones. With 0 all stay.
prune() {
  local bearer status marker='' names='' name
  [ "$1" -gt 0 ] || return 0
  bearer=$(token https://storage.azure.com/) || { echo "no token for the storage account"; return 1; }
  status=$(blob "$bearer" GET restore)
  [ "$status" != 200 ] || { echo "a restore has begun: no backup is deleted"; return 1; }
  [ "$status" = 404 ] || { echo "the storage account answered $status for the mark of a restore"; return 1; }
  while :; do
    status=$(blob "$bearer" GET '' -G --data-urlencode restype=container --data-urlencode comp=list --data-urlencode prefix=etcd/ \
      --data-urlencode "marker=$marker")
    [ "$status" = 200 ] || { echo "the storage account answered $status for the list of backups"; return 1; }
    names+=$(grep -oE '<Name>etcd/[0-9]{8}T[0-9]{6}Z-[0-9]+\.db</Name>' "$state/blob" | sed 's/<[^>]*>//g')$'\n'
    marker=$(sed -n 's/.*<NextMarker>\([^<]*\)<.*/\1/p' "$state/blob" | sed 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g')
    [ -n "$marker" ] || break
  done
  # Their names begin with their time, so their order is that of their age.
  for name in $(sort <<< "$names" | sed '/^$/d' | head -n "-$1"); do
    status=$(blob "$bearer" DELETE "$name.sig") # the list has backups only
    case $status in 202|404) ;; *) echo "the storage account answered $status for the signature of the old backup $name"; return 1 ;; esac
    status=$(blob "$bearer" DELETE "$name")
    [ "$status" = 202 ] || { echo "the storage account answered $status for the old backup $name"; return 1; }
    echo "deleted $name"
  done
}

# renew gives the control plane of this machine new certificates, 30 days before they expire. The kubelet starts a static pod anew
# when its manifest has gone and come back.
renew() {
  local name try manifests=$kubernetes/manifests
  openssl x509 -checkend "${KAZ_RENEW_BEFORE:-2592000}" -noout -in "$kubernetes/pki/apiserver.crt" >/dev/null && return 0
  kubeadm certs renew all && trust || return 1
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    mv "$manifests/$name.yaml" "$state/$name.yaml" || return 1
    for try in $(seq "${KAZ_TRIES:-60}"); do
      pgrep -f "^$name " >/dev/null || break
      sleep "${KAZ_RETRY_DELAY:-2}"
    done
    mv "$state/$name.yaml" "$manifests/$name.yaml" || return 1
  done
  for try in $(seq "${KAZ_TRIES:-60}"); do
    kubectl --kubeconfig "$kubernetes/admin.conf" get --raw /readyz >/dev/null 2>&1 && return 0
    sleep "${KAZ_RETRY_DELAY:-5}"
  done
  echo "the API server does not answer with its new certificates"
  return 1
}

# join-token lets the join token of the key vault be valid for another 36 hours. The cluster gets it if it has another one, as after a
# restore. Tokens that the vault no longer has run out.
join-token() {
  [ "$KAZ_ROLE" = control-plane ] || return 0
  umask 077
  local try token result=1
  secret "$KAZ_CLUSTER-bootstrap-token" > "$state/join-token.json" && token=$(join-field token "$state/join-token.json") &&
    cat > "$state/join-token.manifest" <<JSON &&
{"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
 "metadata": {"namespace": "kube-system", "name": "bootstrap-token-${token%.*}", "labels": {"kaz/join-token": "true"}},
 "stringData": {
  "token-id": "${token%.*}", "token-secret": "${token#*.}", "expiration": "$(date -u -d '+36 hours' +%Y-%m-%dT%H:%M:%SZ)",
  "description": "Machines of kaz cluster join with it.", "usage-bootstrap-authentication": "true",
  "usage-bootstrap-signing": "true", "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"}}
JSON
    for try in $(seq "${KAZ_TRIES:-60}"); do
      kubectl --kubeconfig "$kubernetes/admin.conf" apply --server-side --force-conflicts --field-manager kaz-join-token \
        -f "$state/join-token.manifest" && result=0 && break
      sleep "${KAZ_RETRY_DELAY:-5}" # the load balancer may not know the API server of this member yet
    done
  rm -f "$state/join-token.json" "$state/join-token.manifest"
  return "$result"
}

# configure fills in what only this machine knows.
configure() {
  umask 077
  local template=kubeadm-join.yaml text token hash own self
  [ "$(cat "$state/decision")" = init ] && template=kubeadm-init.yaml
  text=$(cat "$root/etc/kaz/$template") && token=$(join-field token) && hash=$(join-field caCertHash) && own=$(address) || return 1
  self=$(hostname | tr '[:upper:]' '[:lower:]')
  text=${text//@TOKEN@/"$token"}
  text=${text//@CA_HASH@/"$hash"}
  text=${text//@NODE@/"$self"}
  text=${text//@ADDRESS@/"$own"}
  printf '%s\n' "$text" > "$state/kubeadm.yaml"
}

# point sends the members of the control plane to their own API server: a load balancer does not answer its own members.
point() {
  [ -n "$KAZ_HAIRPIN" ] && [ "$KAZ_ROLE" = control-plane ] || return 0
  grep -q " $KAZ_HAIRPIN\$" "$root/etc/hosts" || echo "127.0.0.1 $KAZ_HAIRPIN" >> "$root/etc/hosts"
}

# join_member lets a member join. During a rotation kubeadm needs both authorities in admin.conf, with which it reaches other members.
join_member() {
  local skip=()
  if rotating; then
    [ -e "$kubernetes/admin.conf" ] || kubeadm join phase control-plane-prepare kubeconfig --config "$state/kubeadm.yaml" || return 1
    trust || return 1
    skip=(--skip-phases control-plane-prepare/kubeconfig)
  fi
  kubeadm join --config "$state/kubeadm.yaml" --ignore-preflight-errors="${KAZ_IGNORE_PREFLIGHT:-none}" "${skip[@]}" ||
    { cat "$state/identity.log" 2>/dev/null; return 1; }
}

join_cluster() {
  authorities || return 1
  if [ "$(cat "$state/decision")" = init ]; then
    point
    [ -e "$kubernetes/admin.conf" ] && kubectl --kubeconfig "$kubernetes/admin.conf" get --raw /readyz >/dev/null 2>&1 && return 0
    # kubeadm goes on with the files of an earlier try, and its checks would refuse them.
    local checks=${KAZ_IGNORE_PREFLIGHT:-none}
    [ -e "$kubernetes/kaz-init-began" ] && checks=all
    touch "$kubernetes/kaz-init-began"
    kubeadm init --config "$state/kubeadm.yaml" --ignore-preflight-errors="$checks" || return 1
    rotating || return 0
    trust && systemctl restart kubelet && rights
    return
  fi
  [ -e "$kubernetes/kubelet.conf" ] || join_member || return 1
  trust && kubelet_certificate || return 1
  [ "$KAZ_ROLE" != control-plane ] || rights || return 1
  point
}

# rights gives the cluster the access rules of this version, which the release before does not have: from 1.36 on, API servers need one
# to reach kubelets.
rights() {
  kubeadm upgrade apply phase bootstrap-token --help >/dev/null 2>&1 || return 0 # older than 1.32
  kubeadm upgrade apply phase bootstrap-token "v$KAZ_VERSION" --kubeconfig "$kubernetes/admin.conf" || return 1
  unbind
}

# unbind deletes the binding of kubeadm with which the join token is enough for the certificate of any node, if the cluster has the
# controller that checks which machine asks. That controller deletes it, too, a moment later.
unbind() {
  local call=(kubectl --kubeconfig "$kubernetes/admin.conf" --request-timeout 10s)
  "${call[@]}" get clusterrole system:cloud-controller-manager:node-approval -o name >/dev/null 2>&1 || return 0
  "${call[@]}" delete clusterrolebinding kubeadm:node-autoapprove-bootstrap --ignore-not-found || return 0
}

# upgrade brings the control plane of this machine to the version of its programs. kubeadm reads the configuration in the cluster.
upgrade() {
  authorities || return 1
  kubeadm upgrade node --patches "$root/etc/kaz/patches" --ignore-preflight-errors="${KAZ_IGNORE_PREFLIGHT:-none}" || return 1
  trust || return 1
  systemctl daemon-reload && systemctl restart kubelet || return 1
  rights
}

# addons applies the manifests of extensions. Only the first member does.
addons() {
  [ "$(cat "$state/decision")" = init ] || return 0
  local manifest try
  for manifest in "$root"/etc/kaz/manifests/*.yaml "$root/etc/kaz/applied.yaml"; do
    [ -e "$manifest" ] || continue
    for try in 1 2 3 4 5 failed; do # a kind may be known a moment after its CustomResourceDefinition
      [ "$try" != failed ] || return 1
      kubectl --kubeconfig "$kubernetes/admin.conf" apply --server-side --field-manager kaz -f "$manifest" && break
      sleep "${KAZ_RETRY_DELAY:-5}"
    done
  done
  unbind
}

commands() {
  local script
  for script in "$root"/etc/kaz/commands/*.sh; do
    [ -e "$script" ] || continue
    bash "$script" || { echo "the command ${script##*/} of an extension failed"; return 1; }
  done
}

# Timers of the control plane call the script with one of these, and a run command with upgrade.
case ${1:-} in
  backup|renew|join-token|prune) "$@"; exit ;;
  identity) # before the kubelet starts
    identity 2>&1 | tee "$state/identity.log"
    exit ;;
  upgrade)
    phase binaries 30 binaries
    phase upgrade 61 upgrade
    current=complete
    report false 0 ""
    exit ;;
esac

# complete says that the machine is a node: kaz-joined for later boots, too, and bootstrap-success for this one.
complete() {
  current=complete
  report false 0 ""
  touch "$kubernetes/kaz-joined" "$state/bootstrap-success"
}

[ -e "$state/bootstrap-success" ] && exit 0
phase disks 10 disks
phase system 15 system
# A node that boots again has joined: its kubelet starts what it had. While the machines were off, the join token may have run out.
if [ -e "$kubernetes/kaz-joined" ]; then
  complete
  join-token || echo "the join token is not renewed: kaz-join-token.timer tries again"
  exit 0
fi
phase runtime 20 runtime
phase binaries 30 binaries
phase downloads 31 downloads
phase registries 32 registries
phase keys 51 keys
phase election 52 elect
phase restore 53 restore
phase configuration 55 configure
phase join 60 join_cluster
phase join-token 65 join-token
phase manifests 70 addons
phase commands 90 commands
rm -f "$state/join.json" "$state/kubeadm.yaml" "$state/identity.log"
complete
