package app

import (
	"context"
	"sync"

	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"

	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/lease"
	"kaz/internal/reconcile"
)

// generation is the cloud of one version of the cloud configuration, with its controllers.
type generation struct {
	settings cloudconfig.Config
	config   *config.CompletedConfig
	// cloud is nil if disableCloudProvider is set: no controller runs.
	cloud       *cloudprovider.Cloud
	controllers map[string]frameworkapp.InitFunc
	guard       *requestGuard   // nil if the configuration is never reloaded
	running     *sync.WaitGroup // controllers to wait for
}

// generation creates the cloud and the controllers for a configuration. It starts nothing.
func (p *program) generation(ctx context.Context, c *config.CompletedConfig, settings cloudconfig.Config) (*generation, error) {
	g := &generation{settings: settings, config: c, running: p.running}
	wrap := func(c reconcile.Azure) reconcile.Azure { return c }
	if p.source.reloading {
		if settings.DisableCloudProvider {
			return g, nil
		}
		g.guard = &requestGuard{}
		wrap = g.guard.azure
		var err error
		if g.config, err = g.guard.kubernetes(c); err != nil {
			return nil, err
		}
	}
	if p.own.lock {
		lock, inner := lease.New(g.config.VersionedClient.CoordinationV1()), wrap
		wrap = func(c reconcile.Azure) reconcile.Azure { return lock.Client(inner(c)) }
	}
	var err error
	if g.cloud, err = p.open(ctx, g.config, settings, wrap); err != nil {
		return nil, err
	}
	filterNodes(g.config.SharedInformers, p.selector)
	g.controllers = frameworkapp.ConstructControllerInitializers(p.controllers, g.config, g.cloud)
	return g, nil
}

// finish waits until nothing of the generation is in flight. The context of its controllers must have
// ended.
func (g *generation) finish() {
	if g.cloud == nil {
		return
	}
	g.cloud.Close()
	g.running.Wait()
	if g.guard != nil {
		g.guard.close()
		g.config.SharedInformers.Shutdown()
	}
}

// retire rejects the requests of work that has not finished in time.
func (g *generation) retire() {
	if g.guard != nil {
		g.guard.refuse()
	}
}
