package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Registration is what the kubelet is told about a driver with a node service. The kubelet finds the registration socket
// in its directory of plugins, so that no other program is needed beside the driver.
type Registration struct {
	// Driver is the name of the driver.
	Driver string
	// Socket is the path of the driver's socket, as the kubelet sees it.
	Socket string
	// Dir is the kubelet's directory of registration sockets, as the driver sees it.
	Dir string
	Log *slog.Logger
}

// Register offers a driver to the kubelet until ctx ends. If the kubelet refuses the driver, Register returns an error.
func (r Registration) Register(ctx context.Context) error {
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return fmt.Errorf("register driver %s: %w", r.Driver, err)
	}
	path := filepath.Join(r.Dir, r.Driver+"-reg.sock")
	listener, err := Listen(ctx, "unix://"+path)
	if err != nil {
		return fmt.Errorf("register driver %s: %w", r.Driver, err)
	}
	offer := &offer{registration: r, refused: make(chan error, 1)}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, offer)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err = <-ended:
		return fmt.Errorf("register driver %s: %w", r.Driver, err)
	case err = <-offer.refused:
	case <-ctx.Done():
	}
	server.GracefulStop() // it removes the socket
	return errors.Join(err, <-ended)
}

// offer answers the kubelet.
type offer struct {
	registration.UnimplementedRegistrationServer
	registration Registration
	refused      chan error
}

// GetInfo implements [registration.RegistrationServer].
func (o *offer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: o.registration.Driver, Endpoint: o.registration.Socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus implements [registration.RegistrationServer].
func (o *offer) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (
	*registration.RegistrationStatusResponse, error,
) {
	if s.GetPluginRegistered() {
		o.registration.Log.Info("the kubelet has registered the driver", "driver", o.registration.Driver)
		return &registration.RegistrationStatusResponse{}, nil
	}
	select {
	case o.refused <- fmt.Errorf("the kubelet did not register driver %s: %s", o.registration.Driver, s.GetError()):
	default: // it was refused before
	}
	return &registration.RegistrationStatusResponse{}, nil
}
