#!/usr/bin/env bash
# Runs Kubernetes' end-to-end tests on a local cluster with three real nodes. The tests and the images that they need are
# built from Go modules (test/e2e/go.mod) and Debian packages.
#   FOCUS  regular expression of the tests; the default is four tests, all of conformance is '\[Conformance\]', those of
#          disks are 'External.Storage' (test/e2e/azuredisk.yaml says what the driver can do)
#   SKIP   regular expression of tests to leave out
#   PROCS  number of tests at a time
#   OUT    directory of the results, in TestGrid's layout
#   KEEP   1 leaves the cluster running for the next run; kaz local down --dir bin/e2e/cluster stops it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/steps.sh

short='AdmissionWebhook .* should be able to deny pod and configmap creation'
short+='|Aggregator Should be able to support the .* Sample API Server'
short+='|DNS should provide DNS for services'
short+='|Services should serve a basic endpoint from pods'
focus=${FOCUS:-$short}
skip=${SKIP:-}
procs=${PROCS:-4}
work=$PWD/bin/e2e
out=$(realpath -m "${OUT:-bin/e2e/results}")
cluster=$work/cluster
programs=$work/programs
archive=$work/images.tar
export CGO_ENABLED=0 GOWORK=off

# program NAME PACKAGE builds a program of a module in test/e2e/go.mod.
program() { go -C test/e2e build -buildvcs=false -ldflags '-s -w' -o "$programs/$1" "$2"; }

build_programs() {
  local kubernetes
  mkdir -p "$programs" && kubernetes=$(go -C test/e2e list -m -f '{{.Dir}}' k8s.io/kubernetes) &&
    install -m 0644 -t "$programs" "$kubernetes"/test/images/agnhost/porter/localhost.{crt,key} &&
    go -C test/e2e test -c -vet=off -ldflags '-s -w' -o "$programs/e2e.test" k8s.io/kubernetes/test/e2e &&
    program ginkgo github.com/onsi/ginkgo/v2/ginkgo &&
    program agnhost k8s.io/kubernetes/test/images/agnhost &&
    program nonewprivs k8s.io/kubernetes/test/images/nonewprivs &&
    program sample-apiserver k8s.io/sample-apiserver
}

# control_plane_programs copies programs that kaz built, and that images need too.
control_plane_programs() {
  local built name
  built=$(dirname "$(dirname "$(kubectl_path)")") || return 1
  for name in etcd coredns; do
    cp "$(ls -t "$built/$name"-*/"$name" | head -n 1)" "$programs/$name" || return 1
  done
}

kubectl_path() { bin/kaz local status --dir "$cluster" -o json | sed -n 's/^ *"kubectl": "\(.*\)",$/\1/p'; }

build_images() {
  local inputs
  inputs=$(cat test/e2e/*.go "$programs"/{agnhost,localhost.crt,nonewprivs,sample-apiserver,etcd,coredns} | sha256sum)
  if [[ -f $archive && $inputs == "$(cat "$archive.inputs" 2>/dev/null)" ]]; then
    echo "$archive is up to date"
    return
  fi
  go -C test/e2e run . -programs "$programs" -packages "$work/packages" -out "$archive" && echo "$inputs" >"$archive.inputs"
}

start_cluster() { bin/kaz local up --dir "$cluster" --detach --nodes 3 --nodes-kind real; }

# import_images imports the images into each node.
import_images() {
  local node
  for node in $("$(kubectl_path)" --kubeconfig "$cluster/kubeconfig" get nodes -o name); do
    bin/kaz local ssh --dir "$cluster" "${node#node/}" -- ctr --address /run/containerd/containerd.sock --namespace k8s.io \
      images import --all-platforms=false "$archive" >/dev/null || return 1
  done
}

# prepare_disks installs the programs of file systems that the tests of disks use, and creates their class.
prepare_disks() {
  if ! command -v mkfs.xfs >/dev/null || ! command -v mkfs.btrfs >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends xfsprogs btrfs-progs >/dev/null || return 1
  fi
  "$(kubectl_path)" --kubeconfig "$cluster/kubeconfig" apply -f test/e2e/azuredisk-classes.yaml
}

# write_json FILE KEY VALUE... writes an object; the values are JSON.
write_json() {
  local file=$1 comma=''
  shift
  {
    printf '{'
    while (($#)); do
      printf '%s"%s": %s' "$comma" "$1" "$2"
      comma=', '
      shift 2
    done
    printf '}\n'
  } >"$file"
}

run_tests() {
  local passed=true result='"SUCCESS"' args=()
  rm -rf "$out" && mkdir -p "$out/artifacts" || return 1
  write_json "$out/started.json" timestamp "$(date +%s)"
  if [[ -n $skip ]]; then args+=(--skip="$skip"); fi
  PATH=$programs:$PATH "$programs/ginkgo" --nodes="$procs" --focus="$focus" "${args[@]}" --no-color --silence-skips --timeout=24h \
    --poll-progress-after=10m "$programs/e2e.test" -- --kubeconfig="$cluster/kubeconfig" --provider=skeleton \
    --kubectl-path="$(kubectl_path)" --storage.testdriver="$PWD/test/e2e/azuredisk.yaml" --report-dir="$out/artifacts" \
    --report-complete-junit=false >"$out/artifacts/e2e.log" 2>&1 ||
    passed=false result='"FAILURE"'
  write_json "$out/finished.json" timestamp "$(date +%s)" passed "$passed" result "$result"
  sed -n -e '/^Summarizing/,$p' -e '/^Ran [0-9]/,$p' "$out/artifacts/e2e.log"
  echo "Results: $out"
  [[ $passed == true ]]
}

step "programs that real nodes need" bash tools/node-programs.sh
step "build: kaz" make --no-print-directory build
running=0
if bin/kaz local status --dir "$cluster" >/dev/null; then
  running=1
else
  step "cluster with three nodes" start_cluster
fi
step "build: tests and programs of images" build_programs
step "build: programs of the control plane" control_plane_programs
step "images: build" build_images
step "images: import into the nodes" import_images
if [[ $focus == *External* ]]; then
  step "disks: file systems and class" prepare_disks
fi
step "tests" run_tests
if ((!running)) && [[ ${KEEP:-} != 1 ]]; then
  step "cluster: down" bin/kaz local down --dir "$cluster"
fi
steps_done "End-to-end tests"
