package file_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/share"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const gib = 1 << 30

// driverCluster is a cluster and the controller of a file driver.
type driverCluster struct {
	*testkit.Azure
	*file.Controller
	t       *testing.T
	secrets secrets
	volumes []file.Claimed
	config  file.Config
	dirOf   func(volume string) string // of the content of a share
}

// secrets are the Secrets of a cluster by namespace and name.
type secrets struct {
	mu     sync.Mutex
	values map[string]map[string]string
}

func (s *secrets) Put(_ context.Context, namespace, name string, c file.Credentials) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[namespace+"/"+name] = file.SecretOf(c)
	return nil
}

// Check refuses a Secret with the key of another account.
func (s *secrets) Check(_ context.Context, namespace, name, account string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok, _ := file.ReadSecret(s.values[namespace+"/"+name]); ok && c.Account != account {
		return status.Error(codes.FailedPrecondition, "it has the key of storage account "+c.Account)
	}
	return nil
}

func newDriverCluster(t *testing.T, o core.Options) *driverCluster {
	t.Helper()
	w := &driverCluster{Azure: testkit.NewAzure(t, o, 0), t: t}
	w.secrets.values = map[string]map[string]string{}
	w.config = file.Config{
		Name: file.DefaultName, Version: "test", Azure: fresh{w.Client.Fresh(), w.Client}, Secrets: &w.secrets,
		Volumes: func(context.Context) ([]file.Claimed, error) { return w.volumes, nil },
		Cluster: cluster(), Log: slog.New(slog.DiscardHandler),
	}
	w.Controller = file.NewController(w.config)
	w.Forget()
	return w
}

// again returns a controller without memory, as a new process has it.
func (w *driverCluster) again() *file.Controller { return file.NewController(w.config) }

func cluster() share.Cluster {
	return share.Cluster{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		VNetGroup: testkit.ResourceGroup, VNet: "vnet", Subnet: "nodes", Suffix: "core.windows.net",
	}
}

// fresh reads past the cache.
type fresh struct {
	azure.Reader
	azure.Writer
}

// mounted is the capability of a volume with an access mode.
func mounted(mode csispec.VolumeCapability_AccessMode_Mode) *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode},
	}
}

const everywhere = csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER

// request is a CreateVolume request for 10 GiB with parameters, given as key and value in turns.
func request(name string, parameters ...string) *csispec.CreateVolumeRequest {
	r := &csispec.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csispec.VolumeCapability{mounted(everywhere)},
		CapacityRange: &csispec.CapacityRange{RequiredBytes: 10 * gib}, Parameters: map[string]string{},
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		r.Parameters[parameters[i]] = parameters[i+1]
	}
	return r
}

// volume creates a volume and returns it.
func (w *driverCluster) volume(name string, parameters ...string) *csispec.Volume {
	w.t.Helper()
	answer, err := w.CreateVolume(w.t.Context(), request(name, parameters...))
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.GetVolume()
}

// share reads the share of a volume.
func (w *driverCluster) share(volume string) storage.Share {
	w.t.Helper()
	v, err := share.ParseVolume(volume)
	if err != nil {
		w.t.Fatal(err)
	}
	return testkit.Must[storage.Share](w.Azure, cluster().ShareID(v)).Properties
}

// accounts returns the accounts of the cluster's group.
func (w *driverCluster) accounts() []azure.Resource[storage.Account] {
	return testkit.List[storage.Account](w.Azure, testkit.Group, storage.Accounts)
}

// calls counts the requests to Azure by method and kind of resource, such as "PUT shares" or "POST listKeys".
func (w *driverCluster) calls() map[string]int {
	counts := map[string]int{}
	for _, r := range w.Requests() {
		parts := strings.Split(strings.Trim(r.Path, "/"), "/")
		kind := parts[len(parts)-1]
		if r.Method != http.MethodPost && len(parts)%2 == 0 {
			kind = parts[len(parts)-2]
		}
		counts[r.Method+" "+kind]++
	}
	return counts
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %s (%v), want %s", what, got, err, want)
	}
}

// account creates a storage account.
func (w *driverCluster) account(name, sku, kind string, properties map[string]any, tags map[string]any) azure.ID {
	w.t.Helper()
	id := testkit.Group.Resource(storage.Accounts, name)
	all := map[string]any{"allowBlobPublicAccess": false, "supportsHttpsTrafficOnly": true}
	maps.Copy(all, properties)
	w.Put(id, map[string]any{"location": testkit.Location, "kind": kind, "sku": map[string]any{"name": sku}, "tags": tags, "properties": all})
	return id
}
