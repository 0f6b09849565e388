package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// keepers are pods with a disk each, on different nodes if there is room.
const keepers = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: keeper}
spec:
  serviceName: keeper
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {fsGroup: 65534}
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 600}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 600}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: keeper}}}
      containers:
      - {name: tools, image: "kaz.local/tools:1", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// TestRealStorage ends machines of pods with disks in every way. The pods come back on other machines, with their data.
func TestRealStorage(t *testing.T) {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("disks are loop devices: %v", err)
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skipf("disks need file systems: %v", err)
	}
	needsReal(t)
	before := hostState(t)
	c := startUp(t, newDir(t), "--nodes-kind", "real", "--nodes", "4")
	c.routed() // before, the scheduler leaves nodes out
	began := time.Now()
	c.must(keepers, "apply", "-f", "-")
	c.must("", "rollout", "status", "statefulset/keeper", "--timeout=3m")
	t.Logf("three pods with new disks are ready after %s", short(time.Since(began)))
	s := &storage{failures: &failures{cluster: c}, pods: map[string]*keeper{}}
	for _, p := range c.pods("keeper") {
		sum, err := c.box(p, "fill", "/data/file", "16")
		if err != nil {
			t.Fatal(err)
		}
		s.pods[p.name] = &keeper{pod: p, sum: sum}
	}
	if nodes := s.nodesOfKeepers(); len(nodes) != 3 {
		t.Fatalf("the pods are on %v, want three nodes", nodes)
	}
	t.Run("kaz explain volume", func(t *testing.T) { s.in(t).explained() })
	t.Run("a larger disk while the pod uses it", func(t *testing.T) {
		needsResize(t)
		s.in(t).grown("keeper-0")
	})
	t.Run("a snapshot becomes another disk", func(t *testing.T) { s.in(t).restored("keeper-1") })
	t.Run("file shares", func(t *testing.T) { shares{c.in(t)}.work() })
	var together sync.WaitGroup
	for name, end := range map[string]func(*storage, azure.Resource[compute.Instance]){
		"keeper-0": (*storage).losePower, "keeper-1": (*storage).drainAndDelete, "keeper-2": (*storage).deallocate,
	} {
		together.Go(func() { t.Run(name, func(t *testing.T) { s.in(t).moves(name, end) }) })
	}
	together.Wait()
	s.removed()
	c.stop(syscall.SIGTERM)
	for what, had := range before {
		if has := hostState(t)[what]; has != had {
			t.Errorf("%s before:\n%s\nafter:\n%s", what, had, has)
		}
	}
}

// storage is a cluster with pods that have disks.
type storage struct {
	*failures
	pods map[string]*keeper // by name
}

// keeper is a pod with a disk, and the checksum of its data.
type keeper struct {
	pod pod
	sum string
}

func (s *storage) in(t *testing.T) *storage {
	return &storage{failures: s.failures.in(t), pods: s.pods}
}

func (s *storage) nodesOfKeepers() map[string]bool {
	nodes := map[string]bool{}
	for _, k := range s.pods {
		nodes[k.pod.node] = true
	}
	return nodes
}

// moves ends the machine of a pod, and waits until the pod has its data on another machine.
func (s *storage) moves(name string, end func(*storage, azure.Resource[compute.Instance])) {
	s.t.Helper()
	k := s.pods[name]
	for _, vm := range s.instances() {
		if nodeOf(vm) != k.pod.node {
			continue
		}
		began := time.Now()
		end(s, vm)
		ended := time.Since(began)
		var now corev1.Pod
		wait(s.t, 3*time.Minute, name+" on another node", func() string {
			if all := get[corev1.PodList](s.cluster, "pods", "--field-selector=metadata.name="+name).Items; len(all) == 1 {
				now = all[0]
			}
			if now.Spec.NodeName == k.pod.node || !podReady(now) {
				return fmt.Sprintf("node %q, phase %s, %v", now.Spec.NodeName, now.Status.Phase, s.events(name))
			}
			return ""
		})
		s.t.Logf("%s: the pod runs on another node %s after the end of its machine began, and %s after the last command", name,
			short(time.Since(began)), short(time.Since(began)-ended))
		s.hasData(pod{name: name, node: now.Spec.NodeName}, k.sum)
		return
	}
	s.t.Fatalf("no machine of node %s", k.pod.node)
}

func (s *storage) hasData(p pod, want string) {
	s.t.Helper()
	if sum, err := s.box(p, "sum", "/data/file"); err != nil || sum != want {
		s.t.Errorf("%s on %s has data with the checksum %q, %v, want %q", p.name, p.node, sum, err, want)
	}
}

func (s *storage) events(name string) string {
	text, _ := s.kubectl("", "events", "--for=pod/"+name, "--no-headers") // for the message of a failure only
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

func podReady(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// losePower takes the power of a machine away. Kubernetes detaches the disks of a node that it does not hear of only if a
// person says that the machine is off.
func (s *storage) losePower(vm azure.Resource[compute.Instance]) {
	s.t.Helper()
	s.do("powerOff?skipShutdown=true", vm)
	s.isOff(nodeOf(vm))
	s.must("", "taint", "node", nodeOf(vm), "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
}

func (s *storage) drainAndDelete(vm azure.Resource[compute.Instance]) {
	s.t.Helper()
	s.must("", "drain", nodeOf(vm), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=1m")
	s.delete(vm.ID)
}

func (s *storage) deallocate(vm azure.Resource[compute.Instance]) {
	s.t.Helper()
	s.act("deallocate", vm)
}

// needsResize skips a test where the kernel does not let this process grow a mounted ext4 file system.
func needsResize(t *testing.T) {
	t.Helper()
	const resource = 24 // CAP_SYS_RESOURCE
	for line := range bytes.Lines(readFile(t, "/proc/self/status")) {
		if text, ok := bytes.CutPrefix(line, []byte("CapEff:")); ok {
			effective, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			if effective>>resource&1 == 0 {
				t.Skip("growing a mounted ext4 file system needs the capability CAP_SYS_RESOURCE")
			}
		}
	}
}

// explained runs kaz explain volume for each claim, as the guides do. The machines are instances of a Uniform scale set.
func (s *storage) explained() {
	s.t.Helper()
	for name, k := range s.pods {
		out, errs, err := output(s.t, "", kaz(), "explain", "volume", "default/data-"+name, "--dir", s.dir)
		if err != nil {
			s.t.Errorf("kaz explain volume default/data-%s: %v\n%s%s", name, err, out, errs)
		}
		for _, want := range []string{"state Attached", "at LUN ", "node " + k.pod.node, "nothing is pending"} {
			if !strings.Contains(out, want) {
				s.t.Errorf("kaz explain volume default/data-%s: %q is missing in:\n%s", name, want, out)
			}
		}
	}
}

// grown grows a disk that is in use.
func (s *storage) grown(name string) {
	s.t.Helper()
	began := time.Now()
	s.must("", "patch", "pvc", "data-"+name, "-p", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	wait(s.t, 2*time.Minute, "the larger file system", func() string {
		claim := get[corev1.PersistentVolumeClaim](s.cluster, "pvc", "data-"+name)
		if got := claim.Status.Capacity[corev1.ResourceStorage]; got.String() != "3Gi" {
			return fmt.Sprintf("%s, conditions %v", got.String(), claim.Status.Conditions)
		}
		return ""
	})
	s.t.Logf("grown after %s", short(time.Since(began)))
	if _, err := s.box(s.pods[name].pod, "fill", "/data/more", "1500"); err != nil {
		s.t.Errorf("the file system has no room for 1,500 MiB: %v", err)
	}
}

// restored makes a snapshot of a disk, and a pod with a disk from it.
func (s *storage) restored(name string) {
	s.t.Helper()
	began := time.Now()
	s.must(fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: then}
spec: {volumeSnapshotClassName: csi-azuredisk-vsc, source: {persistentVolumeClaimName: data-%s}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: copy}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: then}
---
apiVersion: v1
kind: Pod
metadata: {name: copy}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {fsGroup: 65534}
  containers:
  - {name: tools, image: "kaz.local/tools:1", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}
  volumes: [{name: data, persistentVolumeClaim: {claimName: copy}}]
`, name), "apply", "-f", "-")
	s.must("", "wait", "--for=condition=Ready", "pod/copy", "--timeout=2m")
	s.t.Logf("a pod with a disk from a snapshot runs after %s", short(time.Since(began)))
	s.hasData(pod{name: "copy"}, s.pods[name].sum)
	s.must("", "delete", "pod/copy", "pvc/copy", "volumesnapshot/then", "--timeout=1m")
}

// removed deletes the pods and their claims. Azure has no disk of them then.
func (s *storage) removed() {
	s.t.Helper()
	s.must("", "delete", "statefulset/keeper", "--timeout=1m")
	s.must("", "delete", "pvc", "-l", "app=keeper", "--timeout=2m")
	wait(s.t, 3*time.Minute, "the end of the disks", func() string {
		docs, err := s.azure.List(s.t.Context(), azure.Query{Scope: s.group(), Type: compute.Disks})
		if err != nil {
			return err.Error()
		}
		var left []string
		for _, d := range docs {
			disk, err := azure.Decode[compute.Disk](d)
			if err != nil {
				return err.Error()
			}
			if strings.HasPrefix(disk.ID.Name(), "pvc-") {
				left = append(left, disk.ID.Name())
			}
		}
		return strings.Join(left, " ")
	})
}
