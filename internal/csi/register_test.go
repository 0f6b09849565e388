package csi_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"kaz/internal/csi"
)

// kubelet connects to a registration socket as the kubelet does.
func kubelet(t *testing.T, dir string) registration.RegistrationClient {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+filepath.Join(dir, "disk.example-reg.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return registration.NewRegistrationClient(connection)
}

// register registers a driver and returns the channel with the end of the registration.
func register(ctx context.Context, dir string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- csi.Registration{
			Driver: "disk.example", Socket: "/plugins/disk.example/csi.sock", Dir: dir, Log: slog.New(slog.DiscardHandler),
		}.Register(ctx)
	}()
	return ended
}

func TestKubeletFindsDriver(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	call, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "plugins_registry")
	ended := register(ctx, dir)
	k := kubelet(t, dir)
	info, err := k.GetInfo(call, &registration.InfoRequest{})
	if err != nil || info.GetType() != "CSIPlugin" || info.GetName() != "disk.example" ||
		info.GetEndpoint() != "/plugins/disk.example/csi.sock" || info.GetSupportedVersions()[0] != "1.0.0" {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := k.NotifyRegistrationStatus(call, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the socket stays, and the kubelet would call it: %v, %v", left, err)
	}
}

func TestKubeletRefusesDriver(t *testing.T) {
	call, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	ended := register(t.Context(), dir)
	status := &registration.RegistrationStatus{Error: "version 9 is not supported"}
	if _, err := kubelet(t, dir).NotifyRegistrationStatus(call, status); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "version 9 is not supported") {
		t.Error(err)
	}
}
