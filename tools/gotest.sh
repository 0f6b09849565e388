# Sourced by the scripts beside it: runs Go tests, keeps what each test took, and names the slowest.

# Results of test parts, a file of go's JSON events each.
results=$PWD/bin/tests
mkdir -p "$results"
touch "$results/begin"

# The tests of test/cluster that make test runs; tools/test-long.sh runs the others.
quick_clusters='^(TestCluster|TestContinue|TestDeploy|TestRefused|TestRefusedLoad|TestStateRefused|TestReal)$'
booted='^TestBooted(HA|Five|Outbound|Internal|Members|Rotation|Authorities|InPlace|Ignition|Closed)$'
conformance='^TestGatewayConformance$'
minors='^TestReleases$'

# compiles_c reports whether there is a C compiler that can link: the race detector needs cgo, and cgo needs that.
compiles_c() {
  local dir works=1
  dir=$(mktemp -d)
  printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' >"$dir/probe.c"
  $(go env CC) -o "$dir/probe" "$dir/probe.c" 2>/dev/null || works=0
  rm -r "$dir"
  ((works))
}

race=()
if compiles_c; then
  export CGO_ENABLED=1
  race=(-race)
else
  export CGO_ENABLED=0
fi

# Pure packages start no goroutines, so the race detector has nothing to find there and their tests run without it.
pure='^kaz/internal/((azure|plan|key|template|cloudconfig)(/|$)|cluster(/(addon|apimodel|boot|change|definition|delta|emit|finding|graph|health|limit|lint|naming|units))?$)'

# Packages with many tests in which one goroutine works at a time. The race detector makes them take eight times as long, so of the first
# three only the tests of "concurrent" run with it. Their names are below kaz/.
mostly_one='internal/cloudprovider/service internal/cluster/engine internal/cluster/deploy internal/cluster/preflight internal/cluster/doctor cmd/kaz/clustercommand'

# The tests of kaz cluster and of the Service controller in which several goroutines work.
concurrent='^(TestCanceled|TestDeploy|TestDestroy|TestLostLock|TestRestore|TestScale|TestTwoOperators|TestUpgrade'
concurrent+='|TestServiceScenarios|TestSchedules|TestExamples|TestSpeed|TestSeveralLoadBalancers|TestManyServicesShareTheWritesOfTheirDocuments'
concurrent+='|TestNodesChangeWhileServicesComeAndGo|TestNodesComeAndGo|TestALateServiceDoesNotWaitForAll|TestABusyLoadBalancerDelaysNoOther'
concurrent+='|TestTheLastGoodStateStays|TestMovesOutliveAController|TestAnyWriteOfMixedServicesCanGoWrong)$'

pure_packages() { go list ./... | grep -E "$pure"; }

component_packages() { go list ./... | grep -vE "$pure" | grep -vE "^kaz/(${mostly_one// /|})\$"; }

mostly_one_packages() { printf './%s\n' $mostly_one; }

# shortened FOLDER... prints a regular expression of the tests in the folders that -short leaves out or shortens: those that ask for it,
# and those that call a function that does.
shortened() {
  local files name names=()
  files=$(find "$@" -maxdepth 1 -name '*_test.go')
  while read -r name; do names+=("$name"); done < <(users 'testing[.]Short[(]' $files)
  for name in "${names[@]}"; do
    if [[ $name != Test* ]]; then while read -r name; do names+=("$name"); done < <(users "[^a-zA-Z.]$name[(]" $files); fi
  done
  printf '%s\n' "${names[@]}" | grep ^Test | sort -u | paste -sd '|' | sed 's/.*/^(&)$/'
}

# users PATTERN FILE... prints the names of the functions with a line that matches.
users() {
  local pattern=$1
  shift
  awk -v pattern="$pattern" '/^func /{name = $2; sub(/[(].*/, "", name); next} $0 ~ pattern {print name}' "$@" | sort -u
}

build_gotestsum() { CGO_ENABLED=0 go -C tools build -o ../bin/ gotest.tools/gotestsum; }

# tests NAME ARGUMENT... runs go test with the arguments and keeps the results under the name.
# The tests make much garbage and keep little, so the collector runs seldom.
tests() { GOGC=400 tests_in . "$@"; }

# tests_in MODULE NAME ARGUMENT... does so in another module of the repository.
tests_in() (
  local module=$1 name=$2 gotestsum=$PWD/bin/gotestsum
  shift 2
  cd "$module"
  "$gotestsum" --format pkgname-and-test-fails --format-hide-empty-pkg --jsonfile "$results/$name.json" -- -timeout 30m "$@"
)

long_clusters() {
  tests_in test/cluster clusters -count=1 -timeout 45m -skip "$quick_clusters|$booted|$conformance|$minors" ./...
}

clusters_with_names() { tests_in test/externaldns names -count=1 -run '^TestClusters$' .; }

# slowest prints the ten slowest tests of this run, in seconds.
slowest() {
  local file
  echo
  echo "The ten slowest tests:"
  for file in "$results"/*.json; do
    if [[ $file -nt $results/begin ]]; then
      bin/gotestsum tool slowest --threshold 1s --jsonfile "$file"
    fi
  done | awk '{t = $NF; s = 0; if (split(t, m, "m") > 1 && t !~ /ms$/) {s = 60 * m[1]; t = m[2]} sub("s$", "", t); printf "%8.1f  %s %s\n", s + t, $1, $2}' |
    sort -rn | sed -n 1,10p
}
