package layout

import (
	"fmt"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/route"
)

// target is where a rule sends requests.
type target struct{ pool, settings, redirect, rewrite *azure.Reference }

// target returns where a route sends requests, and makes the children for it.
func (b *builder) target(l *listener, r route.Route) target {
	t := target{rewrite: b.rewrite(r)}
	if r.Target.Backend == nil {
		name := b.prefix.Child("sslr", l.redirect.parts...)
		b.redirects[name] = azure.Child[network.GatewayRedirect]{Name: name, Properties: network.GatewayRedirect{
			Type: network.PermanentRedirect, Listener: b.ref("httpListeners", l.redirect.name), KeepsPath: true, KeepsQuery: true,
		}}
		b.needs(name, r.Object)
		t.redirect, t.rewrite = b.ref("redirectConfigurations", name), nil
		return t
	}
	back := r.Target.Backend
	t.pool = b.pool(r.Object, back)
	t.settings = b.setting(r.Object, back)
	return t
}

func (b *builder) pool(o route.Object, back *route.Backend) *azure.Reference {
	name := b.prefix.Child("pool", back.Namespace, back.Service, back.Port, fmt.Sprint(back.Settings.Port))
	b.pools[name] = azure.Child[network.GatewayPool]{Name: name, Properties: back.Pool}
	b.needs(name, o)
	return b.ref("backendAddressPools", name)
}

// setting returns the backend settings of an object for a port of a Service, with their probe.
func (b *builder) setting(o route.Object, back *route.Backend) *azure.Reference {
	parts := []string{o.Kind, o.Namespace, o.Name, back.Namespace, back.Service, back.Port}
	name, probe := b.prefix.Child("bp", parts...), b.prefix.Child("pb", parts...)
	if _, known := b.settings[name]; !known {
		properties := back.Settings
		properties.Probe, properties.TrustedRoots = b.ref("probes", probe), []azure.Reference{}
		for _, root := range back.Roots {
			properties.TrustedRoots = append(properties.TrustedRoots, *b.ref("trustedRootCertificates", root))
		}
		b.settings[name] = azure.Child[network.GatewaySettings]{Name: name, Properties: properties}
		b.probes[probe] = azure.Child[network.GatewayProbe]{Name: probe, Properties: back.Probe}
		b.needs(name, o)
		b.needs(probe, o)
	}
	return b.ref("backendHttpSettingsCollection", name)
}

func (b *builder) rewrite(r route.Route) *azure.Reference {
	switch {
	case r.Rewrite.Installed != "":
		return b.ref("rewriteRuleSets", r.Rewrite.Installed)
	case r.Rewrite.Name == "":
		return nil
	}
	name := b.prefix.Child("crd", r.Rewrite.Namespace, r.Rewrite.Name)
	b.rewrites[name] = azure.Child[network.GatewayRewriteSet]{Name: name, Properties: r.Rewrite.Set}
	b.needs(name, r.Object)
	return b.ref("rewriteRuleSets", name)
}

const (
	plainPort      = 80
	defaultTimeout = 30
)

// nowhere is the target of requests that no route takes: a pool without backends, which answers 502.
func (b *builder) nowhere() target {
	pool, settings := b.prefix.Child("pool", "nowhere"), b.prefix.Child("bp", "nowhere")
	b.pools[pool] = azure.Child[network.GatewayPool]{Name: pool, Properties: network.GatewayPool{Addresses: []network.GatewayAddress{}}}
	b.settings[settings] = azure.Child[network.GatewaySettings]{Name: settings, Properties: network.GatewaySettings{
		Port: plainPort, Protocol: network.GatewayHTTP, CookieBasedAffinity: network.SwitchedOff, RequestTimeout: defaultTimeout,
		TrustedRoots: []azure.Reference{},
	}}
	return target{pool: b.ref("backendAddressPools", pool), settings: b.ref("backendHttpSettingsCollection", settings)}
}

// placeholder makes the least that a gateway must have: a listener with a rule that leads nowhere.
func (b *builder) placeholder() {
	_, public := b.live.Frontend(false)
	h := &host{hostKey: hostKey{private: !public, port: plainPort}}
	l := b.newListener(h, nil)
	b.child(l)
	b.prioritize()
}
