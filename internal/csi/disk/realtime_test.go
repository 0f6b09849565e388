package disk_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kaz/internal/azure"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// Without the flag, TestRealTime needs seconds instead of minutes. Then an operation ends before the burst does on a busy
// machine, so the times and the numbers of writes mean nothing.
var latency = flag.Float64("latency", 0.02, "latency of TestRealTime, 1 for Azure's own")

// The scene of TestRealTime: disks on machines, and the time between two calls of a burst. The usual driver needs up to
// mostRequests in all.
const (
	liveMachines = 4
	liveDisks    = 32
	apart        = 2 * time.Millisecond
	mostRequests = 383
)

// live is a driver that serves gRPC in real time, as external-provisioner and external-attacher call it.
type live struct {
	*world
	client  csispec.ControllerClient
	nodes   []string
	volumes []*csispec.Volume
}

// TestRealTime measures what no simulated time shows: the calls of a burst arrive milliseconds apart. All changes of a machine
// share one write nevertheless, and the driver takes little longer than Azure's slowest operation.
func TestRealTime(t *testing.T) {
	l := newLive(t)
	const slack = 3 * time.Second // other programs use the processors too; the aim is 1 s
	type row struct {
		what   string
		writes int
		usual  time.Duration // the time of the usual driver
		do     func() []error
	}
	at := func(n, shift int) string { return l.nodes[(n+shift)%len(l.nodes)] }
	rows := []row{
		{"create", liveDisks, 70 * time.Second, func() []error { return l.burst(l.create) }},
		{"attach one", 1, 15 * time.Second, func() []error { return []error{l.attach(0, at(0, 0))} }},
		{"detach one", 1, 16 * time.Second, func() []error { return []error{l.detach(0, at(0, 0))} }},
		{"attach all", liveMachines, 17800 * time.Millisecond, func() []error {
			return l.burst(func(n int) error { return l.attach(n, at(n, 0)) })
		}},
		{"move all", 2 * liveMachines, 35300 * time.Millisecond, func() []error {
			return l.burst(func(n int) error {
				if err := l.detach(n, at(n, 0)); err != nil {
					return err
				}
				return l.attach(n, at(n, 1))
			})
		}},
		{"detach all", liveMachines, 16300 * time.Millisecond, func() []error {
			return l.burst(func(n int) error { return l.detach(n, at(n, 1)) })
		}},
	}
	requests := 0
	for _, r := range rows {
		var got cost
		took, own := l.azures(func() { got = l.measured(func() { noErrors(t, r.do()) }) })
		requests += got.reads + got.polls + got.writes + got.refused
		slowest := time.Duration(0)
		for _, d := range own {
			slowest = max(slowest, d)
		}
		t.Logf("%s: %s, of which Azure's slowest machine %.1f s; the usual driver %.1f s", r.what, got, slowest.Seconds(), r.usual.Seconds())
		if *latency == 1 && got.writes != r.writes {
			t.Errorf("%s: %d writes, want %d", r.what, got.writes, r.writes)
		}
		if beyond := took - slowest; *latency == 1 && slowest > 0 && beyond > slack {
			t.Errorf("%s: %.1f s beyond Azure's slowest machine, want at most %s", r.what, beyond.Seconds(), slack)
		}
	}
	t.Logf("%d requests in all; the usual driver %d", requests, mostRequests)
	if requests > mostRequests {
		t.Errorf("%d requests, want at most %d", requests, mostRequests)
	}
}

// newLive returns a driver at a local Azure with Azure's latency and limits. The machines are made before, without them.
func newLive(t *testing.T) *live {
	t.Helper()
	w := newWorld(t, core.Options{})
	l := &live{world: w, volumes: make([]*csispec.Volume, liveDisks)}
	for n := range liveMachines {
		name := fmt.Sprintf("node%d", n)
		id := w.AddMachine(testkit.VirtualMachine{Name: name})
		_, err := azure.Do(t.Context(), w.Client, azure.Request{Verb: azure.Patch, ID: id,
			Body: []byte(`{"properties":{"hardwareProfile":{"vmSize":"Standard_D32s_v5"}}}`)})
		if err != nil {
			t.Fatal(err)
		}
		w.nodes.of[name], l.nodes = id, append(l.nodes, name)
	}
	w.Azure = w.Restarted(core.Options{Latency: *latency, Throttle: true})
	config := disk.Config{
		Name: disk.DefaultName, Azure: fresh{w.Client.Fresh(), w.Client}, Nodes: &w.nodes, Cluster: cluster(),
		Limit: func(context.Context, string) int { return room }, Log: slog.New(slog.DiscardHandler),
	}
	controller := disk.NewController(config)
	t.Cleanup(controller.Close)
	endpoint := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	listener, err := csi.Listen(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() {
		services := csi.Services{Identity: &disk.Identity{Config: config}, Controller: controller}
		if err := csi.Serve(ctx, listener, services, config.Log); err != nil {
			t.Error(err)
		}
	})
	connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		connection.Close()
		stop()
		served.Wait()
	})
	l.client = csispec.NewControllerClient(connection)
	return l
}

// burst does the same to all disks, with some milliseconds between two calls.
func (l *live) burst(do func(n int) error) []error {
	all := make([]int, liveDisks)
	for n := range all {
		all[n] = n
	}
	return spread(all, apart, do)
}

func (l *live) create(n int) error {
	answer, err := l.client.CreateVolume(l.t.Context(), request(fmt.Sprintf("pvc-%d", n)))
	l.volumes[n] = answer.GetVolume()
	return err
}

func (l *live) attach(n int, node string) error {
	_, err := l.client.ControllerPublishVolume(l.t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: l.volumes[n].GetVolumeId(), NodeId: node, VolumeCapability: writer(), VolumeContext: l.volumes[n].GetVolumeContext(),
	})
	return err
}

func (l *live) detach(n int, node string) error {
	_, err := l.client.ControllerUnpublishVolume(l.t.Context(), &csispec.ControllerUnpublishVolumeRequest{
		VolumeId: l.volumes[n].GetVolumeId(), NodeId: node,
	})
	return err
}
