package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/host/freeport"
	"kaz/internal/localazure/server"
)

// leases has the lease of replicas as an API server has it, and the Ingresses that they list.
type leases struct {
	mu      sync.Mutex
	lease   *coordination.Lease
	version int
	second  bool // there is a second Ingress
}

// answer answers requests for the lease, and for the Ingresses.
func (l *leases) answer(w http.ResponseWriter, r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/ingresses") && r.URL.RawQuery != "" && r.URL.Query().Get("watch") == "" &&
		r.URL.Query().Get("sendInitialEvents") == "" && l.second:
		items := anIngress + "," + strings.NewReplacer(`"web","uid":"1"`, `"more","uid":"9"`, "a.example.com", "c.example.com").Replace(anIngress)
		_, _ = io.WriteString(w, `{"apiVersion":"networking.k8s.io/v1","kind":"IngressList","metadata":{"resourceVersion":"1"},"items":[`+items+`]}`)
		return true
	case !strings.Contains(r.URL.Path, "/leases"):
		return false
	}
	if r.Method != http.MethodGet && !l.write(w, r) {
		return true
	}
	if l.lease == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return true
	}
	_ = json.NewEncoder(w).Encode(l.lease)
	return true
}

// write keeps a lease unless another version is there.
func (l *leases) write(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return false
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, ok := decoded.(*coordination.Lease)
	if err != nil || !ok {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return false
	}
	if l.lease != nil && lease.ResourceVersion != l.lease.ResourceVersion || l.lease == nil && r.Method == http.MethodPut {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return false
	}
	l.version++
	lease.APIVersion, lease.Kind, lease.ResourceVersion = "coordination.k8s.io/v1", "Lease", strconv.Itoa(l.version)
	l.lease = lease
	return true
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
	})
}

// holder is the replica with the lease, "" for none.
func (l *leases) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.lease.Spec.HolderIdentity
}

// replica is the program in a process.
type replica struct {
	*exec.Cmd
	log bytes.Buffer
}

func startReplica(t *testing.T, local *server.Server, config, kubeconfig string, gate azure.ID) *replica {
	t.Helper()
	ports, err := freeport.Choose("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{Cmd: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "--cloud-config="+config, "--kubeconfig="+kubeconfig,
		"--metrics-address="+ports[0], "--gateway-api=false",
		"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=500ms")}
	r.Env = []string{asProgram + "=1", "SSL_CERT_FILE=" + local.Info().CAFile, "APPGW_RESOURCE_ID=" + string(gate)}
	r.Stderr = &r.log
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// until waits until a condition holds, and reports whether it does.
func until(holds func() bool) bool {
	late, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-late:
			return false
		case <-tick.C:
		}
	}
	return true
}

// writes returns how often the request log has a write of the gateway.
func writes(t *testing.T, log string, gate azure.ID) (n int) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "PUT") && strings.Contains(strings.ToLower(line), strings.ToLower(string(gate))) {
			n++
		}
	}
	return n
}

// TestReplicas kills the leader of two replicas during its first write, which does not release the lease. The other one takes over: it
// does not write again what is written, and serves the Ingress that came meanwhile.
func TestReplicas(t *testing.T) {
	log := filepath.Join(t.TempDir(), "requests.log")
	local, config := serveAzure(t, func(o *server.Options) { o.RequestLog, o.Latency = log, "0.05" })
	group := azure.GroupID(local.Info().Subscription, "kaz")
	gate := group.Resource(network.ApplicationGateways, "gate")
	client := layDocuments(t, local, group, gate)
	before := writes(t, log, gate)
	lease := &leases{}
	kube := &api{statuses: map[string]chan string{"ingresses": make(chan string, 100)}, first: lease.answer}
	kubeconfig := kube.serve(t)
	first := startReplica(t, local, config, kubeconfig, gate)
	if !until(func() bool { return lease.holder() != "" }) {
		t.Error("the first replica does not lead")
	}
	leader := lease.holder()
	second := startReplica(t, local, config, kubeconfig, gate)
	if !until(func() bool { return writes(t, log, gate) == before+1 }) {
		t.Error("the first replica does not write")
	}
	if err := first.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = first.Wait() // it was killed
	lease.mu.Lock()
	lease.second = true
	lease.mu.Unlock()
	served := func(host string) bool {
		doc, err := client.Get(t.Context(), gate)
		return err == nil && strings.Contains(string(doc), host) && strings.Contains(string(doc), `"provisioningState":"Succeeded"`)
	}
	if !until(func() bool { return served("c.example.com") }) || !served("a.example.com") || lease.holder() == leader {
		t.Errorf("the second replica has not taken over from %s: the lease is held by %s", leader, lease.holder())
	}
	if n := writes(t, log, gate) - before; n != 2 {
		t.Errorf("%d writes, want one of each replica", n)
	}
	if err := errors.Join(second.Process.Signal(syscall.SIGTERM), second.Wait()); err != nil {
		t.Error(err)
	}
	if n := writes(t, log, gate) - before; n != 2 {
		t.Errorf("%d writes in the end, want one of each replica", n)
	}
	if t.Failed() {
		t.Logf("first:\n%s\nsecond:\n%s", first.log.String(), second.log.String())
	}
}
