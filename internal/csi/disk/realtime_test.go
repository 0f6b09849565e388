package disk_test

import (
	"context"
	"flag"
	"path/filepath"
	"sync"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
)

// Without the flag, TestRealTime needs seconds instead of minutes. Then an operation ends before the burst does on a busy
// machine, so the times and the numbers of writes mean nothing.
var latency = flag.Float64("latency", 0.02, "latency of TestRealTime, 1 for Azure's own")

// TestRealTime measures what no simulated time shows: the calls of a burst arrive milliseconds apart. All changes of a machine
// share one write nevertheless, and the driver takes little longer than Azure's slowest operation.
func TestRealTime(t *testing.T) {
	b := newBursts(t, core.Options{Latency: *latency})
	b.serve()
	const slack = 1500 * time.Millisecond // of a phase; other programs use the processors too. The aim is 1 s.
	requests := 0
	for _, r := range b.rows() {
		got := b.measure(r)
		requests += got.reads + got.polls + got.writes + got.refused
		t.Logf("%s: %s, of which Azure's own operations %.1f s; the usual driver %.1f s", r.what, got, got.azure.Seconds(), r.usual.Seconds())
		if *latency == 1 && got.writes != r.writes {
			t.Errorf("%s: %d writes, want %d", r.what, got.writes, r.writes)
		}
		if most := time.Duration(r.phases) * slack; *latency == 1 && r.phases > 0 && got.beyond() > most {
			t.Errorf("%s: %.1f s beyond Azure's own operations, want at most %s", r.what, got.beyond().Seconds(), most)
		}
	}
	t.Logf("%d requests in all; the usual driver %d", requests, mostRequests)
	if requests > mostRequests {
		t.Errorf("%d requests, want at most %d", requests, mostRequests)
	}
}

// serve starts the driver and calls it over gRPC.
func (b *bursts) serve() {
	b.t.Helper()
	config := b.start()
	for b.uses.Synced(b.t.Context()) != nil {
		<-time.After(time.Millisecond)
	}
	listener, err := csi.Listen(b.t.Context(), "unix://"+filepath.Join(b.t.TempDir(), "csi.sock"))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.t.Context())
	var served sync.WaitGroup
	served.Go(func() {
		services := csi.Services{Identity: &disk.Identity{Config: config}, Controller: b.driver}
		if err := csi.Serve(ctx, listener, services, config.Log); err != nil {
			b.t.Error(err)
		}
	})
	connection, err := grpc.NewClient("unix://"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		connection.Close()
		stop()
		served.Wait()
	})
	client := csispec.NewControllerClient(connection)
	b.calls = calls{
		create: func(ctx context.Context, r *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error) {
			return client.CreateVolume(ctx, r)
		},
		publish: func(ctx context.Context, r *csispec.ControllerPublishVolumeRequest) (*csispec.ControllerPublishVolumeResponse, error) {
			return client.ControllerPublishVolume(ctx, r)
		},
		unpublish: func(ctx context.Context, r *csispec.ControllerUnpublishVolumeRequest) (
			*csispec.ControllerUnpublishVolumeResponse, error,
		) {
			return client.ControllerUnpublishVolume(ctx, r)
		},
	}
}
