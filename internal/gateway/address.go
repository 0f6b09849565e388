package gateway

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/live"
)

// addresses are the addresses of an application gateway.
type addresses struct {
	publicID        azure.ID
	public, private string
	known           bool // they have been read, or there is no application gateway
}

func (w *worker) addresses() addresses {
	w.state.Lock()
	defer w.state.Unlock()
	return w.state.address
}

// learnAddresses reads the addresses before the first decision about Gateways: the status of a Gateway says by its address which
// application gateway it has.
func (w *worker) learnAddresses(ctx context.Context) {
	if w.kube.api == nil || w.addresses().known {
		return
	}
	doc, err := w.config.Azure.Fresh().Get(ctx, w.id)
	var g live.Gateway
	if err == nil {
		g.Resource, err = azure.Decode[network.ApplicationGateway](doc)
	}
	switch {
	case azure.IsNotFound(err):
		w.note(addresses{known: true})
	case err != nil:
		w.config.Log.Warn("cannot read the addresses of the application gateway", "gateway", w.id, "error", err)
	default:
		w.readAddresses(ctx, g)
	}
}

// readAddresses reads the addresses of the application gateway. The public one is read again when there is another public IP.
func (w *worker) readAddresses(ctx context.Context, g live.Gateway) {
	was := w.addresses()
	f, _ := g.Frontend(true)
	now := addresses{private: f.Properties.PrivateIPAddress, known: true}
	f, _ = g.Frontend(false)
	now.publicID = f.Properties.PublicIPAddress.To()
	switch {
	case now.publicID == "":
	case now.publicID.Equal(was.publicID) && was.public != "":
		now.public = was.public
	default:
		doc, err := w.config.Azure.Fresh().Get(ctx, now.publicID)
		var ip azure.Resource[network.PublicIPAddress]
		if err == nil {
			ip, err = azure.Decode[network.PublicIPAddress](doc)
		}
		if err != nil {
			w.config.Log.Warn("cannot read the address of the application gateway", "public_ip", now.publicID, "error", err)
			now.publicID, now.public, now.known = was.publicID, was.public, was.known
			break
		}
		now.public = ip.Properties.IPAddress
	}
	w.note(now)
}

// note notes addresses. Other ones change the choice of application gateways, and the statuses.
func (w *worker) note(now addresses) {
	w.state.Lock()
	was := w.state.address
	w.state.address = now
	w.state.Unlock()
	if was == now || w.kube.api == nil {
		return
	}
	w.assign()
	if was.known {
		w.mark(everything)
	}
}
