package controlplane

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kaz/internal/host/process"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPortsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	first, err := openPorts(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range first.each() {
		seen[*p] = true
	}
	if len(seen) != len(first.each()) || seen[0] {
		t.Errorf("ports %+v are not all different", first)
	}
	again, err := openPorts(file)
	if err != nil {
		t.Fatal(err)
	}
	if first != again {
		t.Errorf("first %+v, then %+v", first, again)
	}
}

func TestATakenPortIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	first, err := openPorts(file)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", loopbackAddress(first.APIServer))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	second, err := openPorts(file)
	if err != nil {
		t.Fatal(err)
	}
	if second.APIServer == first.APIServer || second.APIServer == 0 {
		t.Errorf("the API server has port %d", second.APIServer)
	}
	second.APIServer = first.APIServer
	if first != second {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestADamagedPortsFileIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	write(t, file, "{")
	if _, err := openPorts(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

// group holds a new directory for the length of a test.
func group(t *testing.T) *process.Group {
	t.Helper()
	g, err := process.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.WithoutCancel(t.Context()), 10*time.Second) })
	return g
}

// everyBinary is a full set of binaries, all the same program.
func everyBinary(path string) Binaries {
	b := Binaries{}
	for _, name := range programs() {
		b[name] = path
	}
	return b
}

func TestBadConfigurations(t *testing.T) {
	g := group(t)
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "no process group given"},
		{Config{Processes: g}, "no binary of etcd given"},
		{Config{Processes: g, Without: []string{"calico"}},
			`no component "calico": want one of ` + strings.Join(programs(), ", ")},
		{Config{Processes: g, Without: []string{Etcd}}, "cannot leave out etcd: everything else needs it"},
		{Config{Processes: g, Binaries: everyBinary("x"), PodCIDRs: prefixes("10.0.0.0/28")},
			"pod range 10.0.0.0/28: want an IPv4 network of /24 or larger, such as 10.244.0.0/16"},
		{Config{Processes: g, Binaries: everyBinary("x"), ServiceCIDRs: prefixes("10.1.2.3/16")},
			"service range 10.1.2.3/16: want an IPv4 network of /24 or larger, such as 10.96.0.0/16"},
		{Config{Processes: g, Binaries: everyBinary("x"), PodCIDRs: prefixes("fd00:10:244::/48")},
			"pod range fd00:10:244::/48: want an IPv4 network of /24 or larger, such as 10.244.0.0/16"},
		{Config{Processes: g, Binaries: everyBinary("x"), PodCIDRs: prefixes("10.244.0.0/16", "10.245.0.0/16")},
			"pod range 10.245.0.0/16: want an IPv6 network of /64 or larger, such as fd00:10:244::/48"},
		{Config{Processes: g, Binaries: everyBinary("x"), PodCIDRs: prefixes("10.244.0.0/16", "fd00:10:244::/48", "fd01::/48")},
			"pod ranges 10.244.0.0/16,fd00:10:244::/48,fd01::/48: want one, or one of each family"},
		{Config{Processes: g, Binaries: everyBinary("x"), PodCIDRs: prefixes("10.244.0.0/16", "fd00:10:244::/48")},
			"pod ranges 10.244.0.0/16,fd00:10:244::/48, service ranges 10.96.0.0/16: want the same families"},
	} {
		_, err := Start(t.Context(), c.config)
		if want := "start the control plane: " + c.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func script(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAProgramThatEndsEarlyIsReportedWithItsLog(t *testing.T) {
	g := group(t)
	_, err := Start(t.Context(), Config{Processes: g, Binaries: everyBinary(script(t, "echo 'no space left'; exit 1"))})
	want := "start the control plane: etcd ended (exit status 1); its log is " +
		filepath.Join(g.Dir(), "logs", "etcd.log") + " and ends with:\nno space left"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAProgramThatIsNeverReadyIsReportedWithItsLog(t *testing.T) {
	g := group(t)
	log := filepath.Join(g.Dir(), "logs", "etcd.log")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { // the wait ends when the program has said something
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if text, err := os.ReadFile(log); ctx.Err() != nil || err == nil && len(text) > 0 {
				cancel()
				return
			}
		}
	}()
	_, err := Start(ctx, Config{Processes: g, Binaries: everyBinary(script(t, "echo 'waiting for the disk'; exec sleep 600"))})
	if err == nil || !strings.Contains(err.Error(), "etcd is not ready: context canceled") ||
		!strings.HasSuffix(err.Error(), log+" and ends with:\nwaiting for the disk") {
		t.Errorf("got %v", err)
	}
}

// TestArguments shows every flag that a program is started with.
func TestArguments(t *testing.T) {
	checkArguments(t, "arguments.txt", Config{Processes: group(t), Binaries: everyBinary("x"), AllocateNodeCIDRs: true})
}

func TestArgumentsOfADualStackCluster(t *testing.T) {
	checkArguments(t, "arguments-dualstack.txt", Config{
		Processes: group(t), Binaries: everyBinary("x"), AllocateNodeCIDRs: true,
		PodCIDRs: prefixes("10.244.0.0/16", "fd00:10:244::/48"), ServiceCIDRs: prefixes("10.96.0.0/16", "fd00:10:96::/108"),
	})
}

func checkArguments(t *testing.T, file string, c Config) {
	t.Helper()
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	r, err := prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, port := range r.ports.each() {
		*port = i + 1
	}
	r.server = secureURL(r.ports.APIServer)
	var got strings.Builder
	for _, p := range []struct {
		name string
		args []string
	}{
		{Etcd, r.etcdArguments()},
		{APIServer, r.apiServerArguments()},
		{ControllerManager, r.controllerManagerArguments()},
		{Scheduler, r.schedulerArguments()},
		{KWOK, r.kwokArguments()},
	} {
		fmt.Fprintf(&got, "%s\n  %s\n", p.name, strings.Join(p.args, "\n  "))
	}
	text := strings.ReplaceAll(got.String(), r.dir, "DIR")
	golden := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"PRIVATE KEY", "BEGIN"} {
		if strings.Contains(text, secret) {
			t.Errorf("an argument holds a secret (%s)", secret)
		}
	}
}

func TestOnlyTheLeasesOfAnEarlierKWOKAreReleased(t *testing.T) {
	var deleted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted = append(deleted, strings.TrimPrefix(r.URL.Path, leasesPath+"/"))
		}
		fmt.Fprint(w, `{"items":[
			{"metadata":{"name":"simulated"},"spec":{"holderIdentity":"host_1234"}},
			{"metadata":{"name":"real"},"spec":{"holderIdentity":"real"}},
			{"metadata":{"name":"unheld"},"spec":{}}]}`)
	}))
	defer server.Close()
	r := &run{server: server.URL, serverClient: &healthClient{client: server.Client()}}
	released, err := r.releaseLeases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]bool{"simulated": true, "unheld": true}; !maps.Equal(released, want) {
		t.Errorf("released are said to be %v, want %v", released, want)
	}
	if want := []string{"simulated", "unheld"}; !slices.Equal(deleted, want) {
		t.Errorf("released %v, want %v", deleted, want)
	}
}

// TestRunningPodsAreShown checks which pods showPods shows to KWOK after a restart. The pods run, have an address, and are
// on a simulated node with a lease of an earlier process. The node "leaving" is deleted meanwhile, so KWOK makes no lease
// for it.
func TestRunningPodsAreShown(t *testing.T) {
	var patched sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case r.Method == http.MethodPatch:
			body, _ := io.ReadAll(r.Body)
			patched.Store(path+" "+r.Header.Get("Content-Type"), string(body))
			if strings.Contains(path, "deleted") {
				w.WriteHeader(http.StatusNotFound)
			}
		case path == "/api/v1/nodes":
			fmt.Fprint(w, `{"items":[{"metadata":{"name":"old"}},{"metadata":{"name":"new"}},{"metadata":{"name":"leaving"}}]}`)
		case path == "/api/v1/pods":
			fmt.Fprint(w, `{"items":[
				{"metadata":{"namespace":"a","name":"runs"},"spec":{"nodeName":"old"},"status":{"podIP":"10.244.0.1"}},
				{"metadata":{"namespace":"a","name":"deleted"},"spec":{"nodeName":"old"},"status":{"podIP":"10.244.0.2"}},
				{"metadata":{"namespace":"a","name":"without"},"spec":{"nodeName":"old"}},
				{"metadata":{"namespace":"a","name":"elsewhere"},"spec":{"nodeName":"new"},"status":{"podIP":"10.244.0.3"}},
				{"metadata":{"namespace":"a","name":"leaves"},"spec":{"nodeName":"leaving"},"status":{"podIP":"10.244.0.4"}}]}`)
		case path != leasesPath+"/old":
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	r := &run{server: server.URL, serverClient: &healthClient{client: server.Client()}}
	if err := r.showPods(t.Context(), map[string]bool{"old": true, "off": true, "leaving": true}); err != nil {
		t.Fatal(err)
	}
	var got []string
	patched.Range(func(path, body any) bool {
		if !strings.Contains(body.(string), `"lastProbeTime":"20`) {
			t.Errorf("%s: %s", path, body)
		}
		got = append(got, path.(string))
		return true
	})
	slices.Sort(got)
	const kind = "/status application/strategic-merge-patch+json"
	if want := []string{"/api/v1/namespaces/a/pods/deleted" + kind, "/api/v1/namespaces/a/pods/runs" + kind}; !slices.Equal(got, want) {
		t.Errorf("patched %q, want %q", got, want)
	}
}
