package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/record"
)

// members answer run commands, as machines of Azure with Debian do.
type members struct {
	next http.RoundTripper

	mu sync.Mutex
	// df is what a machine prints, [roomy] if nothing is here.
	df    map[string]string
	asked map[string]int
}

const roomy = "KAZ-DISK /var/lib/etcddisk 65737856 62316428\nKAZ-DISK / 64915344 60140284\n"

// message is the output of a run command as Azure gives it.
func message(output string) map[string]any {
	return map[string]any{"value": []any{map[string]any{"code": "ProvisioningState/succeeded", "level": "Info",
		"displayStatus": "Provisioning succeeded", "message": "Enable succeeded: \n[stdout]\n" + output + "\n[stderr]\n"}}}
}

// RoundTrip implements http.RoundTripper.
func (m *members) RoundTrip(r *http.Request) (*http.Response, error) {
	machine, isCommand := strings.CutSuffix(r.URL.Path, "/runCommand")
	if !isCommand {
		return m.next.RoundTrip(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := azure.ID(machine).Name()
	m.asked[name]++
	output, has := m.df[name]
	if !has {
		output = roomy
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(message(output))
	return w.Result(), err
}

// TestDisks checks scenario 40: a finding names each member with a disk of etcd that is full, nearly full or not mounted, and
// its remedy.
func TestDisks(t *testing.T) {
	w := open(t)
	w.df["prod-cp-0"] = "KAZ-DISK /var/lib/etcddisk 65737856 0\nKAZ-DISK / 64915344 3140284\n"
	w.df["prod-cp-1"] = "KAZ-DISK /var/lib/etcddisk 0 0\nKAZ-DISK / 64915344 60140284\n"
	w.df["prod-cp-2"] = "bash: df: command not found\n"
	r := w.examine(t)
	for _, want := range []string{
		"✘ disk: the disk of etcd of member prod-cp-0 is full, so the member cannot write: 0 MiB of 64197 MiB free\n  remedy: delete files",
		"kaz cluster repair prod cp-0; for a greater disk set spec.controlPlane.etcdDisk.sizeGiB",
		"⚠ disk: the disk of the operating system of member prod-cp-0 is nearly full, and the kubelet evicts pods: 3066 MiB of 63393 MiB free",
		"✘ disk: the disk of etcd of member prod-cp-1 is not mounted at /var/lib/etcddisk",
		"⚠ disk: the disks of member prod-cp-2 cannot be read: its run command told of no disk",
	} {
		if !strings.Contains(r.Findings.Error(), want) {
			t.Errorf("got\n%v\nwant %s", r.Findings, want)
		}
	}
	stop := azure.Request{Verb: azure.Post, ID: w.plan.Names.Group().Resource(record.MachineType, "prod-cp-2"), Action: "deallocate"}
	if _, err := azure.Do(t.Context(), w.Azure, stop); err != nil {
		t.Fatal(err)
	}
	w.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, http.ErrServerClosed
	})
	asked := w.asked["prod-cp-2"]
	if r := w.examine(t); !strings.Contains(r.Findings.Error(), "the disk of etcd of member prod-cp-0 is full") || w.asked["prod-cp-2"] != asked {
		t.Errorf("without an API server, and with a machine that is off: %v, asked %v", r.Findings, w.asked)
	}
}

// TestFixNeedsRoom checks that etcd is not defragmented on a disk that has no room for it.
func TestFixNeedsRoom(t *testing.T) {
	w := open(t)
	w.etcd.members[0].Size, w.etcd.members[0].InUse = 1000<<20, 400<<20
	w.df["prod-cp-0"] = "KAZ-DISK /var/lib/etcddisk 65737856 300000\n"
	_, err := w.Fix(t.Context(), w.plan.Names)
	if want := "member prod-cp-0 has no room for a defragmentation, which writes the database anew: 292 MiB of 64197 MiB free, want 400 MiB"; err ==
		nil || !strings.Contains(err.Error(), want) || len(w.etcd.done) > 0 {
		t.Errorf("%v, done %v", err, w.etcd.done)
	}
	w.df["prod-cp-0"] = "" // is not known
	if did, err := w.Fix(t.Context(), w.plan.Names); !did || err != nil {
		t.Error(did, err)
	}
}

// TestPressure checks that nodes are named which are short of something.
func TestPressure(t *testing.T) {
	w := open(t)
	short := node("prod-cp-1")
	short.Status.Conditions = append(short.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
		corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse})
	if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), short, ""); err != nil {
		t.Fatal(err)
	}
	if r := w.examine(t); !strings.Contains(r.Findings.Error(), "⚠ nodes: they evict pods: prod-cp-1 (DiskPressure)\n") {
		t.Error(r.Findings)
	}
}

// TestDiskScript runs the script on this machine, whose root is a file system and which has no disk of etcd.
func TestDiskScript(t *testing.T) {
	for _, program := range []string{"mountpoint", "df", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("this machine has no %s", program)
		}
	}
	output, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", diskScript).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	text, err := json.Marshal(message(string(output)))
	if err != nil {
		t.Fatal(err)
	}
	disks, err := readDisks(text)
	if err != nil || len(disks) != 2 || disks[0] != (health.Disk{Path: health.EtcdDisk}) || disks[1].Path != string(filepath.Separator) ||
		disks[1].Size <= disks[1].Free || disks[1].Free < 0 {
		t.Errorf("%v %+v\n%s", err, disks, output)
	}
}

// FuzzDisks reads answers to run commands: sizes are never negative.
func FuzzDisks(f *testing.F) {
	for _, output := range []string{roomy, "", "KAZ-DISK / -1 5", "KAZ-DISK a b c", "KAZ-DISK / 9223372036854775807 1"} {
		text, err := json.Marshal(message(output))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		disks, err := readDisks(text)
		if err != nil && len(disks) > 0 {
			t.Errorf("%v and %v", err, disks)
		}
		for _, d := range disks {
			if d.Size < 0 || d.Free < 0 {
				t.Errorf("%+v", d)
			}
		}
	})
}

// TestReadDisks reads an answer of Azure.
func TestReadDisks(t *testing.T) {
	text, err := json.Marshal(message(roomy))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readDisks(text)
	want := []health.Disk{{Path: "/var/lib/etcddisk", Size: 65737856 << 10, Free: 62316428 << 10},
		{Path: "/", Size: 64915344 << 10, Free: 60140284 << 10}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
