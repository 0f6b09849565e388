package driver

import (
	"context"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
)

// Cloud is Azure as the cloud configuration describes it.
type Cloud struct {
	Config      cloudconfig.Config
	Environment cloudconfig.Environment
	Client      *access.Clients
	// Azure reads what Azure has now: drivers decide on that alone.
	Azure azure.Access
}

// OpenAzure opens Azure. A controller is ready when it has signed in.
func (p *Process) OpenAzure(ctx context.Context) (c Cloud, err error) {
	if c.Config, err = p.CloudConfig(ctx); err != nil {
		return c, err
	}
	c.Client, c.Environment, err = access.Open(ctx, c.Config, access.ClientOptions{
		TTL: map[string]time.Duration{"": 0}, Registerer: legacyregistry.Registerer(), Finish: time.Minute,
	})
	if err != nil {
		return c, err
	}
	c.Azure = azure.Access{Reader: c.Client.Fresh(), Writer: c.Client}
	if p.Options.HasController() {
		p.Ready.Add("sign in to Azure", c.Client.SignIn)
	}
	return c, nil
}
