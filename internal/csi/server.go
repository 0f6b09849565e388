package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Services are the gRPC services of a driver. Controller and Node are nil if the process does not serve them.
type Services struct {
	Identity   csispec.IdentityServer
	Controller csispec.ControllerServer
	Node       csispec.NodeServer
	Metrics    *Metrics // nil to measure nothing
}

// CheckEndpoint returns an error unless an endpoint is unix://PATH or tcp://HOST:PORT.
func CheckEndpoint(endpoint string) error {
	_, _, err := parseEndpoint(endpoint)
	return err
}

// parseEndpoint splits an endpoint. The path of a socket is absolute, also without a slash at its beginning. On Windows it can begin
// with a drive.
func parseEndpoint(endpoint string) (scheme, address string, err error) {
	scheme, address, _ = strings.Cut(endpoint, "://")
	scheme = strings.ToLower(scheme)
	if scheme == "tcp" {
		_, _, err = net.SplitHostPort(address)
	}
	if address == "" || scheme != "unix" && scheme != "tcp" || err != nil {
		return "", "", fmt.Errorf("endpoint %q: want unix://PATH or tcp://HOST:PORT", endpoint)
	}
	if scheme == "unix" {
		address = strings.TrimPrefix(filepath.ToSlash(address), "/")
		if filepath.VolumeName(address) == "" {
			address = "/" + address
		}
	}
	return scheme, address, nil
}

// Listen listens at an endpoint: unix://PATH or tcp://HOST:PORT. A socket that an earlier process left is removed.
func Listen(ctx context.Context, endpoint string) (net.Listener, error) {
	scheme, address, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if scheme == "unix" {
		if err := removeSocket(address); err != nil {
			return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, scheme, address)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	return listener, nil
}

// removeSocket removes a socket, and nothing else.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	return os.Remove(path)
}

// Serve serves until ctx ends, then lets the requests in flight end.
func Serve(ctx context.Context, listener net.Listener, s Services, log *slog.Logger) error {
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(s.Metrics.intercept, logged(log)))
	csispec.RegisterIdentityServer(server, s.Identity)
	if s.Controller != nil {
		csispec.RegisterControllerServer(server, s.Controller)
	}
	if s.Node != nil {
		csispec.RegisterNodeServer(server, s.Node)
	}
	stop := context.AfterFunc(ctx, server.GracefulStop)
	defer stop()
	return server.Serve(listener)
}

// logged logs each call with its duration and error. Requests are not logged: they can hold secrets.
func logged(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		began := time.Now()
		answer, err := handle(ctx, request)
		attributes := []slog.Attr{slog.String("method", filepath.Base(info.FullMethod)), slog.Duration("took", time.Since(began))}
		if v, ok := request.(interface{ GetVolumeId() string }); ok && v.GetVolumeId() != "" {
			attributes = append(attributes, slog.String("volume", v.GetVolumeId()))
		}
		level := slog.LevelDebug
		if err != nil {
			attributes = append(attributes, slog.String("code", status.Code(err).String()), slog.Any("error", err))
			level = levelOf(status.Code(err))
		}
		log.LogAttrs(ctx, level, "csi", attributes...)
		return answer, err
	}
}

// levelOf returns the level of a failed call: mistakes of callers are not the driver's.
func levelOf(code codes.Code) slog.Level {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.Unimplemented, codes.Aborted, codes.Canceled:
		return slog.LevelInfo
	}
	return slog.LevelError
}
