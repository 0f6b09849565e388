package cluster_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	azurestorage "kaz/internal/azure/storage"
)

// sharer is a claim of a class with two pods that write it, on different nodes if there is room.
const sharer = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec: {storageClassName: %[1]s, accessModes: [ReadWriteMany], resources: {requests: {storage: 100Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {fsGroup: 65534}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: %[1]s}}}
      containers:
      - {name: tools, image: "kaz.local/tools:1", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: %[1]s}}]
`

// shares is a cluster with pods that have file shares.
type shares struct{ *cluster }

// work has shares created, grown, copied and deleted. Pods get them where the kernel has a client for them; elsewhere the node says
// that it has none.
func (s shares) work() {
	if _, err := exec.LookPath("smbd"); err != nil {
		s.t.Skipf("file shares need samba: %v", err)
	}
	for class, client := range map[string]string{"azurefile-csi": "cifs", "azurefile-csi-nfs": "nfs"} {
		began := time.Now()
		s.must(fmt.Sprintf(sharer, class), "apply", "-f", "-")
		s.must("", "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/"+class, "--timeout=1m")
		s.t.Logf("%s: the share is there after %s", class, short(time.Since(began)))
		if hasClient(s.t, client) {
			s.shared(class)
		} else {
			s.refusedMount(class, client)
		}
		s.must("", "patch", "pvc", class, "-p", `{"spec":{"resources":{"requests":{"storage":"200Gi"}}}}`)
		s.must("", "wait", "--for=jsonpath={.status.capacity.storage}=200Gi", "pvc/"+class, "--timeout=1m")
		s.must("", "delete", "deployment/"+class, "--timeout=1m")
	}
	s.copied("azurefile-csi")
	s.must("", "delete", "pvc/azurefile-csi", "pvc/azurefile-csi-nfs", "--timeout=2m")
	wait(s.t, time.Minute, "the end of the shares", func() string { return strings.Join(s.inAzure(), " ") })
}

// hasClient reports whether the kernel of this machine has a client, which is loaded or could be.
func hasClient(t *testing.T, client string) bool {
	t.Helper()
	return bytes.Contains(readFile(t, "/proc/filesystems"), []byte("\t"+client+"\n")) ||
		exec.CommandContext(t.Context(), "modprobe", "--dry-run", "--quiet", client).Run() == nil
}

// shared checks that what one pod writes another one reads.
func (s shares) shared(class string) {
	s.t.Helper()
	s.must("", "rollout", "status", "deployment/"+class, "--timeout=2m")
	all := s.pods(class)
	sum, err := s.box(all[0], "fill", "/data/file", "4")
	if err != nil {
		s.t.Fatal(err)
	}
	if got, err := s.box(all[1], "sum", "/data/file"); err != nil || got != sum {
		s.t.Errorf("%s on %s reads the checksum %q, %v, and %s wrote %q", all[1].name, all[1].node, got, err, all[0].name, sum)
	}
}

// refusedMount waits until the events of a pod say that the kernel has no client.
func (s shares) refusedMount(class, client string) {
	s.t.Helper()
	wait(s.t, time.Minute, "the message about the kernel", func() string {
		text := s.must("", "events", "--for=pod/"+s.pods(class)[0].name, "--no-headers")
		if strings.Contains(text, "the kernel of the node has no module for "+client) {
			return ""
		}
		return text
	})
}

// copied makes a snapshot of a share, and a share from it.
func (s shares) copied(class string) {
	s.t.Helper()
	s.must(fmt.Sprintf(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: share}
spec: {volumeSnapshotClassName: csi-azurefile-vsc, source: {persistentVolumeClaimName: %[1]s}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: restored}
spec:
  storageClassName: %[1]s
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 200Gi}}
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: share}
`, class), "apply", "-f", "-")
	s.must("", "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/restored", "--timeout=2m")
	s.must("", "delete", "pvc/restored", "volumesnapshot/share", "--timeout=1m")
}

// inAzure returns the names of the shares of all storage accounts.
func (s shares) inAzure() []string {
	s.t.Helper()
	accounts, err := s.azure.List(s.t.Context(), azure.Query{Scope: s.group(), Type: azurestorage.Accounts})
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, a := range accounts {
		docs, err := s.azure.List(s.t.Context(), azure.Query{Scope: azurestorage.FileServiceOf(a.ID()), Type: azurestorage.Shares})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, d := range docs {
			all = append(all, d.ID().Name())
		}
	}
	return all
}
