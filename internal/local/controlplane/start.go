package controlplane

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/local/process"
)

// program is one of the control plane's processes.
type program struct {
	name   string
	args   []string
	asker  *asker
	health string // the URL that answers 200 when the program is ready
}

// start runs the store, then the API server, then everything that needs the API server, side by side.
func (r *run) start(ctx context.Context) error {
	first := []program{
		{Etcd, r.etcdArguments(), r.store, secureURL(r.ports.Etcd) + "/health"},
		{APIServer, r.apiServerArguments(), r.cluster, r.server + "/readyz"},
	}
	for _, p := range first {
		if err := r.launch(ctx, p); err != nil {
			return err
		}
	}
	clients := []program{
		{ControllerManager, r.controllerManagerArguments(), r.cluster, secureURL(r.ports.ControllerManager) + "/healthz"},
		{Scheduler, r.schedulerArguments(), r.cluster, secureURL(r.ports.Scheduler) + "/readyz"},
		{KWOK, r.kwokArguments(), r.cluster, "http://" + loopbackAddress(r.ports.KWOK) + "/healthz"},
	}
	if !slices.Contains(r.config.Without, KWOK) {
		if err := r.releaseLeases(ctx); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range clients {
		if !slices.Contains(r.config.Without, p.name) {
			g.Go(func() error { return r.launch(ctx, p) })
		}
	}
	return g.Wait()
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
	if err := p.asker.await(ctx, running, p.health); err != nil {
		return err
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	r.config.Started(p.name, time.Since(began))
	return nil
}

// environment keeps the user's own settings (a proxy, a KUBECONFIG, kwok's defaults in the home directory) away from
// the programs.
func (r *run) environment() []string {
	return []string{"HOME=" + r.dir, "PATH=/usr/local/bin:/usr/bin:/bin", "KWOK_WORKDIR=" + filepath.Join(r.dir, "kwok")}
}
