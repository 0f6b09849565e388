package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/site"
	"kaz/internal/plan/nodes"
)

// asProgram has the test binary be the program, in a process of its own with the environment of a container.
const asProgram = "KAZ_TEST_AS_PROGRAM"

// program is the path of the program that tests start instead of the test binary.
var program = flag.String("program", "", "path of azuredisk-csi-driver")

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if err := Command(os.LookupEnv).ExecuteContext(context.Background()); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const nodeName = "nodes0-000000"

// driverSite is a local Azure with access control, served over TLS, and an API server with one Node.
type driverSite struct {
	t          *testing.T
	azure      *server.Server
	dir        string
	group      azure.ID
	config     string // azure.json
	kubeconfig string
	objects    map[string][]any // of the API server by resource
	programs   int
}

const (
	driverID     = "aaaaaaaa-0000-4000-8000-00000000000d"
	driverSecret = "driver-secret"
)

// newDriverSite starts a local Azure in which the driver signs in as a contributor.
func newDriverSite(t *testing.T) *driverSite { return newWorldWith(t, "off") }

// newWorldWith is newDriverSite with a latency of the local Azure.
func newWorldWith(t *testing.T, latency string) *driverSite {
	t.Helper()
	w := &driverSite{t: t, dir: t.TempDir(), objects: map[string][]any{}}
	identities := w.file("identities.yaml", fmt.Sprintf(`
applications:
- {clientId: %s, secrets: [%s], roleAssignments: [{role: Contributor}]}
`, driverID, driverSecret))
	var err error
	w.azure, err = server.Start(t.Context(), server.Options{
		AccessControl: "on", Identities: identities, Latency: latency, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.azure.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := w.azure.Client()
	if err != nil {
		t.Fatal(err)
	}
	info := w.azure.Info()
	cluster := site.New(info.Tenant, info.Subscription, 1)
	if err := cluster.Create(t.Context(), client, 1, false, func(azure.ID, time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	w.group = cluster.Group()
	c := cluster.CloudConfig(info.ARM)
	c["useManagedIdentityExtension"], c["aadClientId"], c["aadClientSecret"] = false, driverID, driverSecret
	w.config = w.json("azure.json", c)
	w.kubeconfig = w.startAPIServer(cluster.ScaleSet("nodes0").Child("virtualMachines", "0"))
	return w
}

func (w *driverSite) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *driverSite) json(name string, content any) string {
	w.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.file(name, string(text))
}

// kubeconfigOf returns the path of a kubeconfig for an API server.
func (w *driverSite) kubeconfigOf(url string) string {
	w.t.Helper()
	return w.json("kubeconfig", map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": url}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{}}},
	})
}

// startAPIServer serves one Node and the objects of the test, and returns a kubeconfig.
func (w *driverSite) startAPIServer(machine azure.ID) string {
	w.t.Helper()
	provider, err := nodes.ProviderID(machine)
	if err != nil {
		w.t.Fatal(err)
	}
	w.objects["nodes"] = []any{
		corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: corev1.NodeSpec{ProviderID: provider}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		refuse := func(code int, reason metav1.StatusReason) {
			rw.WriteHeader(code)
			_ = json.NewEncoder(rw).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
		}
		kinds := map[string]string{"nodes": "NodeList", "persistentvolumes": "PersistentVolumeList",
			"volumeattachments": "VolumeAttachmentList"}
		name := filepath.Base(r.URL.Path)
		version := strings.TrimPrefix(strings.TrimPrefix(filepath.Dir(r.URL.Path), "/apis/"), "/api/")
		switch query := r.URL.Query(); {
		case query.Has("sendInitialEvents"):
			refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		case query.Get("watch") != "":
			rw.WriteHeader(http.StatusOK)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		case kinds[name] == "":
			refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		default:
			items := append([]any{}, w.objects[name]...)
			_ = json.NewEncoder(rw).Encode(map[string]any{"kind": kinds[name], "apiVersion": version,
				"metadata": map[string]any{"resourceVersion": "1"}, "items": items})
		}
	}))
	w.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return w.kubeconfigOf(server.URL)
}

// soon is how often the tests look whether a program serves: gRPC itself waits a second after its first attempt.
var soon = backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond}

// start runs the program until the test ends, and returns a connection to its socket and the way to end it.
func (w *driverSite) start(args ...string) (*grpc.ClientConn, func() error) {
	w.t.Helper()
	connection, _, stop := w.startProcess(args...)
	return connection, stop
}

// startProcess is start that also returns the process.
func (w *driverSite) startProcess(args ...string) (*grpc.ClientConn, *os.Process, func() error) {
	w.t.Helper()
	w.programs++
	socket := filepath.Join(w.dir, fmt.Sprintf("csi%d.sock", w.programs))
	cmd := exec.Command(cmp.Or(*program, os.Args[0]), append([]string{
		"--endpoint=unix://" + socket, "--cloud-config=" + w.config, "--kubeconfig=" + w.kubeconfig, "-v=4",
	}, args...)...)
	cmd.Env = []string{asProgram + "=1", "SSL_CERT_FILE=" + w.azure.Info().CAFile, "PATH=" + os.Getenv("PATH")}
	log := w.file(fmt.Sprintf("log%d", w.programs), "")
	out, err := os.OpenFile(log, os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		err := <-ended
		ended <- err
		return err
	}
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: time.Second}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = connection.Close()
		_ = stop()
		_ = out.Close()
		text, err := os.ReadFile(log)
		if w.t.Failed() {
			w.t.Logf("the program wrote: %s%v", text, err)
		}
		if strings.Contains(string(text), driverSecret) {
			w.t.Error("the secret is in the log")
		}
	})
	return connection, cmd.Process, stop
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// awaitReady waits until Probe says that the driver is ready.
func awaitReady(t *testing.T, identity csispec.IdentityClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		answer, err := identity.Probe(ctx, &csispec.ProbeRequest{}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetReady().GetValue() {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the driver is not ready after a minute")
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestProgram drives the controller in a process of its own over its socket: a volume's whole life, and what the program
// tells of itself.
func TestProgram(t *testing.T) {
	w := newDriverSite(t)
	address := freeAddress(t)
	connection, stop := w.start("--mode=controller", "--metrics-address="+address, "--profiling")
	identity, controller := csispec.NewIdentityClient(connection), csispec.NewControllerClient(connection)
	awaitReady(t, identity)
	info, err := identity.GetPluginInfo(t.Context(), &csispec.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "disk.csi.azure.com" {
		t.Errorf("%v, %v", info, err)
	}
	w.liveOfAVolume(controller)
	_, metrics := get(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`kaz_csi_operation_duration_seconds_count{code="OK",method="CreateVolume"} 1`,
		`kaz_csi_operation_duration_seconds_count{code="InvalidArgument",method="CreateVolume"} 1`,
		`kaz_csi_operations_in_flight{method="CreateVolume"} 0`,
		`kaz_csi_attach_batch_changes_count 2`, `kaz_csi_attach_wait_seconds_count 2`,
		`azuredisk_csi_driver_operations_total{operation="controller_publish_volume",success="true"} 1`,
		`azuredisk_csi_driver_operations_total{operation="controller_create_volume",success="false"} 1`,
		`kaz_arm_operation_duration_seconds_count{result="ok",type="microsoft.compute/disks",verb="put"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, ours(metrics))
		}
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK,
		"/debug/pprof/goroutine?debug=1": http.StatusOK, "/debug/pprof/cmdline": http.StatusNotFound} {
		if code, text := get(t, "http://"+address+path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}

// ours are the lines of metrics of kaz.
func ours(metrics string) string {
	var lines []string
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, "csi") || strings.HasPrefix(line, "kaz_") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// liveOfAVolume creates a volume, attaches it to the node's machine, detaches and deletes it.
func (w *driverSite) liveOfAVolume(controller csispec.ControllerClient) {
	t := w.t
	t.Helper()
	capability := writer()
	request := &csispec.CreateVolumeRequest{Name: "pvc-1", VolumeCapabilities: []*csispec.VolumeCapability{capability},
		Parameters: map[string]string{"skuname": "none"}}
	if _, err := controller.CreateVolume(t.Context(), request); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("a wrong SKU: %v", err)
	}
	request.Parameters["skuname"] = "Premium_LRS"
	made, err := controller.CreateVolume(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	if want := w.group.Resource(compute.Disks, "pvc-1"); !azure.ID(id).Equal(want) {
		t.Errorf("%s, want %s", id, want)
	}
	published, err := controller.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: id, NodeId: nodeName, VolumeCapability: capability, VolumeContext: made.GetVolume().GetVolumeContext(),
	})
	if err != nil || published.GetPublishContext()["LUN"] != "0" {
		t.Errorf("attached: %v, %v", published, err)
	}
	if _, err := controller.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id}); err == nil {
		t.Error("an attached disk was deleted")
	}
	if _, err := controller.ControllerUnpublishVolume(t.Context(), &csispec.ControllerUnpublishVolumeRequest{
		VolumeId: id, NodeId: nodeName,
	}); err != nil {
		t.Error(err)
	}
	if _, err := controller.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Error(err)
	}
	client, err := w.azure.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), azure.ID(id)); !azure.IsNotFound(err) {
		t.Errorf("the disk remains: %v", err)
	}
}

// TestProgramThatCannotSignIn checks that the driver serves and says that it is not ready.
func TestProgramThatCannotSignIn(t *testing.T) {
	w := newDriverSite(t)
	var config map[string]any
	text, err := os.ReadFile(w.config)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	config["aadClientSecret"] = "wrong"
	w.config = w.json("wrong.json", config)
	address := freeAddress(t)
	connection, _ := w.start("--mode=controller", "--metrics-address="+address)
	answer, err := csispec.NewIdentityClient(connection).Probe(t.Context(), &csispec.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil || answer.GetReady().GetValue() {
		t.Errorf("%v, %v, want not ready", answer, err)
	}
	code, body := get(t, "http://"+address+"/readyz")
	if code != http.StatusInternalServerError || !strings.Contains(body, "sign in to Azure") || !strings.Contains(body, "AADSTS7000215") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get(t, "http://"+address+"/healthz"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}

// TestControllerWithoutAPIServer checks row 200: a controller that cannot watch the Kubernetes API serves its socket at once,
// and reports that it is not ready. It answers Unavailable where it needs a Node. It still creates and deletes volumes.
func TestControllerWithoutAPIServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are never accepted
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, address := range map[string]string{"refuses connections": freeAddress(t), "does not answer": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			w := newDriverSite(t)
			w.kubeconfig = w.kubeconfigOf("http://" + address)
			began := time.Now()
			connection, stop := w.start("--mode=controller")
			answer, err := csispec.NewIdentityClient(connection).Probe(t.Context(), &csispec.ProbeRequest{}, grpc.WaitForReady(true))
			served := time.Since(began)
			if err != nil || answer.GetReady().GetValue() {
				t.Errorf("%v, %v, want not ready", answer, err)
			}
			limit := 2 * time.Second
			if raceDetector() {
				limit *= 5 // the other driver waits 30 s
			}
			if t.Logf("served after %s", served); served > limit {
				t.Errorf("served after %s, want at most %s", served, limit)
			}
			controller := csispec.NewControllerClient(connection)
			id := w.create(controller, "pvc-1")
			ctx, end := context.WithTimeout(t.Context(), attacherTimeout)
			defer end()
			_, attachErr := controller.ControllerPublishVolume(ctx, &csispec.ControllerPublishVolumeRequest{
				VolumeId: id, NodeId: nodeName, VolumeCapability: writer(), VolumeContext: map[string]string{"requestedsizegib": "1"},
			})
			_, detachErr := controller.ControllerUnpublishVolume(ctx, &csispec.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: nodeName})
			for what, err := range map[string]error{"attach": attachErr, "detach": detachErr} {
				if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "not been read from the Kubernetes API yet") {
					t.Errorf("%s: %v, want Unavailable", what, err)
				}
			}
			// Another PersistentVolume may use the disk, which only the API server knows.
			_, err = controller.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id})
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "persistent volumes are not read yet") {
				t.Errorf("delete: %v, want Unavailable", err)
			}
			if err := stop(); err != nil {
				t.Errorf("SIGTERM: %v", err)
			}
		})
	}
}

// attacherTimeout is the deadline that external-attacher gives its requests.
const attacherTimeout = 15 * time.Second

// TestNodeProgram checks that the node service needs neither a cloud configuration nor Azure to serve.
func TestNodeProgram(t *testing.T) {
	w := newDriverSite(t)
	w.config = filepath.Join(w.dir, "none.json")
	connection, stop := w.start("--mode=node", "--nodeid="+nodeName, "--volume-attach-limit=7", "--support-zone=false")
	awaitReady(t, csispec.NewIdentityClient(connection))
	info, err := csispec.NewNodeClient(connection).NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != nodeName || info.GetMaxVolumesPerNode() != 7 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := csispec.NewControllerClient(connection).DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: "x"}); err == nil ||
		!strings.Contains(err.Error(), "Unimplemented") {
		t.Errorf("%v, want no controller", err)
	}
	if err := stop(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}
