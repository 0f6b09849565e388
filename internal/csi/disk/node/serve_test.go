//go:build linux

package node_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"kaz/internal/csi"
	"kaz/internal/csi/disk/node"
)

// TestUnknownCalls checks the answer to calls that the driver does not have (187).
func TestUnknownCalls(t *testing.T) {
	endpoint := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	listener, err := csi.Listen(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- csi.Serve(ctx, listener, csi.Services{
			Identity: csispec.UnimplementedIdentityServer{}, Node: node.New(node.Config{}),
		}, slog.New(slog.DiscardHandler))
	}()
	client, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = csispec.NewGroupControllerClient(client).CreateVolumeGroupSnapshot(t.Context(), &csispec.CreateVolumeGroupSnapshotRequest{})
	want(t, "187: a service", err, codes.Unimplemented, "GroupController")
	_, err = csispec.NewNodeClient(client).NodeGetStorageHealth(t.Context(), &csispec.NodeGetStorageHealthRequest{})
	want(t, "187: a call", err, codes.Unimplemented, "NodeGetStorageHealth")
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
