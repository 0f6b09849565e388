package controlplane

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/host/process"
)

// program is one of the control plane's processes.
type program struct {
	name   string
	args   []string
	client *healthClient
	health string // URL that returns status 200 when the program is ready
}

// start runs etcd, then the API server, then the clients of the API server in parallel.
func (r *run) start(ctx context.Context) error {
	first := []program{
		{Etcd, r.etcdArguments(), r.etcdClient, secureURL(r.ports.Etcd) + "/health"},
		{APIServer, r.apiServerArguments(), r.serverClient, r.server + "/readyz"},
	}
	for _, p := range first {
		if err := r.launch(ctx, p); err != nil {
			return err
		}
	}
	clients := []program{
		{ControllerManager, r.controllerManagerArguments(), r.serverClient, secureURL(r.ports.ControllerManager) + "/healthz"},
		{Scheduler, r.schedulerArguments(), r.serverClient, secureURL(r.ports.Scheduler) + "/readyz"},
		{KWOK, r.kwokArguments(), r.serverClient, "http://" + loopbackAddress(r.ports.KWOK) + "/healthz"},
	}
	var released map[string]bool
	if !slices.Contains(r.config.Without, KWOK) {
		var err error
		if released, err = r.releaseLeases(ctx); err != nil {
			return err
		}
	}
	g, within := errgroup.WithContext(ctx)
	for _, p := range clients {
		if !slices.Contains(r.config.Without, p.name) {
			g.Go(func() error { return r.launch(within, p) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return r.showPods(ctx, released)
}

// launch starts a program and waits until it is ready.
func (r *run) launch(ctx context.Context, p program) error {
	began := time.Now()
	running, err := r.config.Processes.Start(process.Spec{
		Name: p.name,
		Path: r.config.Binaries[p.name],
		Args: p.args,
		Env:  r.environment(),
	})
	if err != nil {
		return err
	}
	if err := p.client.wait(ctx, running, p.health); err != nil {
		return err
	}
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.config.Started(p.name, time.Since(began))
	return nil
}

// environment returns the environment of the programs. It has none of the user's settings, such as a proxy, KUBECONFIG, or
// kwok's defaults in the home directory.
func (r *run) environment() []string {
	return []string{"HOME=" + r.dir, "PATH=/usr/local/bin:/usr/bin:/bin", "KWOK_WORKDIR=" + filepath.Join(r.dir, "kwok")}
}
