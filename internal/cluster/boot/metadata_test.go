package boot

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/cluster/definition"
)

// TestPodMetadata checks that every machine has the rule that keeps pods from what Azure tells the machine, unless the definition
// allows it, and that the kubelet does not start without the rule.
func TestPodMetadata(t *testing.T) {
	for _, format := range []string{"CloudInit", definition.Ignition} {
		for _, access := range []string{"", "Denied", "Allowed"} { // a definition that was recorded before the field has none
			d := example(t, "ha.yaml")
			d.Cluster.Spec.Network.PodMetadata, d.Cluster.Spec.Kubernetes.PodNetwork = access, "None"
			d.Cluster.Spec.ControlPlane.BootFormat, d.Pools[0].Spec.BootFormat = format, format
			files, err := Build(d)
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string][]byte{"a member": files.ControlPlane, "a node": files.Pools["general"]} {
				for _, want := range []string{"metadata.nft", "kaz-metadata.service", "30-metadata.conf"} {
					if has := strings.Contains(string(text), want); has != (access != "Allowed") {
						t.Errorf("%s, %s, %q: %s is there: %v", format, name, access, want, has)
					}
				}
			}
		}
	}
}

// attempts tries to reach Azure's addresses from a pod and from its machine. Nothing listens there, so a packet that arrives is refused.
// Each network has a namespace of its own.
const attempts = `set -e
unshare -n sleep 60 & pod=$!
unshare -n sleep 60 & azure=$!
trap 'kill $pod $azure' EXIT
own=$(readlink /proc/$$/ns/net)
until [ "$(readlink /proc/$pod/ns/net)" != "$own" ] && [ "$(readlink /proc/$azure/ns/net)" != "$own" ]; do :; done
ip link add pod0 type veth peer name eth0 netns $pod
ip link add azure0 type veth peer name eth0 netns $azure
ip addr add 10.244.0.1/24 dev pod0 && ip link set pod0 up
ip addr add 10.225.0.4/24 dev azure0 && ip link set azure0 up
sysctl -qw net.ipv4.ip_forward=1
nsenter -t $pod -n sh -c 'ip addr add 10.244.0.2/24 dev eth0; ip link set eth0 up; ip route add default via 10.244.0.1'
nsenter -t $azure -n sh -c 'ip link set lo up; ip addr add 10.225.0.1/24 dev eth0; ip link set eth0 up; ip route add default via 10.225.0.4
  ip addr add 169.254.169.254/32 dev lo; ip addr add 168.63.129.16/32 dev lo'
ip route add default via 10.225.0.1
nft -f "$1"
nft -f "$1" # as a restart of the unit does
try() {
  timeout 5 bash -c "echo > /dev/tcp/$1/$2" 2>&1 | grep -q 'Connection refused' && echo "$3 reaches $1:$2" || echo "$3 does not reach $1:$2"
}
export -f try
for at in '169.254.169.254 80' '168.63.129.16 80' '168.63.129.16 32526' '168.63.129.16 53'; do
  nsenter -t $pod -n bash -c "try $at pod"
  try $at machine
done
`

// TestPodMetadataRule loads the rule in a network of its own. Pods of it reach neither the metadata nor the secrets of the machine, but
// the resolver at the same address. The machine reaches all.
func TestPodMetadataRule(t *testing.T) {
	for _, program := range []string{"unshare", "nsenter", "ip", "nft", "sysctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the test needs %s", program)
		}
	}
	if err := exec.CommandContext(t.Context(), "unshare", "-rnp", "--fork", "nft", "list", "tables").Run(); err != nil {
		t.Skip("this machine makes no network namespaces")
	}
	rules := filepath.Join(t.TempDir(), "metadata.nft")
	if err := os.WriteFile(rules, []byte(metadataRules), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "unshare", "-rn", "bash", "-c", attempts, "bash", rules).CombinedOutput()
	const want = `pod does not reach 169.254.169.254:80
machine reaches 169.254.169.254:80
pod does not reach 168.63.129.16:80
machine reaches 168.63.129.16:80
pod does not reach 168.63.129.16:32526
machine reaches 168.63.129.16:32526
pod reaches 168.63.129.16:53
machine reaches 168.63.129.16:53
`
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
