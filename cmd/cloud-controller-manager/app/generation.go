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

// generation is the cloud of one cloud configuration, and the controllers on it.
type generation struct {
	settings cloudconfig.Config
	config   *config.CompletedConfig
	// cloud is nil while disableCloudProvider keeps everything switched off.
	cloud       *cloudprovider.Cloud
	controllers map[string]frameworkapp.InitFunc
	gate        *gate           // nil where no other generation follows
	running     *sync.WaitGroup // controllers that have to be waited for
}

// generation makes the first generation of a configuration, or the next one. Nothing
// works on it yet.
func (p *program) generation(ctx context.Context, c *config.CompletedConfig, settings cloudconfig.Config) (*generation, error) {
	g := &generation{settings: settings, config: c, running: p.running}
	door := func(d reconcile.Azure) reconcile.Azure { return d }
	if p.source.reloading {
		if settings.DisableCloudProvider {
			return g, nil
		}
		g.gate = &gate{}
		door = g.gate.azure
		var err error
		if g.config, err = g.gate.kubernetes(c); err != nil {
			return nil, err
		}
	}
	if p.own.lock {
		lock, inner := lease.New(g.config.VersionedClient.CoordinationV1()), door
		door = func(d reconcile.Azure) reconcile.Azure { return lock.Door(inner(d)) }
	}
	var err error
	if g.cloud, err = p.open(ctx, g.config, settings, door); err != nil {
		return nil, err
	}
	filterNodes(g.config.SharedInformers, p.selector)
	g.controllers = frameworkapp.ConstructControllerInitializers(p.controllers, g.config, g.cloud)
	return g, nil
}

// finish waits until nothing of the generation is under way any more, its controllers'
// context having ended.
func (g *generation) finish() {
	if g.cloud == nil {
		return
	}
	g.cloud.Close()
	g.running.Wait()
	if g.gate != nil {
		g.gate.close()
		g.config.SharedInformers.Shutdown()
	}
}

// retire lets what has not finished in time do nothing more.
func (g *generation) retire() {
	if g.gate != nil {
		g.gate.refuse()
	}
}
