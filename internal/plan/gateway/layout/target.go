package layout

import (
	"fmt"
	"math"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// target is where a rule sends requests.
type target struct{ pool, settings, redirect, rewrite, distribution *azure.Reference }

// target returns where a route sends requests, and makes the children for it.
func (b *builder) target(l *listener, r route.Route) target {
	t := target{rewrite: b.rewrite(r)}
	switch {
	case r.Target.Status != 0:
		return b.answer(r.Object, r.Target.Status)
	case r.Target.Redirect != nil:
		return target{redirect: b.toURL(r)}
	case len(r.Target.Shares) > 0:
		return b.shared(r)
	case r.Target.Backend == nil:
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
	if back.Variant != "" {
		parts = append(parts, back.Variant)
	}
	name, probe := b.prefix.Child("bp", parts...), b.prefix.Child("pb", parts...)
	if _, known := b.settings[name]; !known {
		properties := back.Settings
		properties.Probe, properties.TrustedRoots = b.ref("probes", probe), []azure.Reference{}
		for _, root := range back.Roots {
			properties.TrustedRoots = append(properties.TrustedRoots, *b.ref("trustedRootCertificates", root))
		}
		for _, root := range back.Authorities {
			properties.TrustedRoots = append(properties.TrustedRoots, *b.authority(o, root))
		}
		b.settings[name] = azure.Child[network.GatewaySettings]{Name: name, Properties: properties}
		b.probes[probe] = azure.Child[network.GatewayProbe]{Name: probe, Properties: back.Probe}
		b.needs(name, o)
		b.needs(probe, o)
	}
	return b.ref("backendHttpSettingsCollection", name)
}

// authority returns a trusted root certificate. Its content is in its name; one that the gateway has is not sent again.
func (b *builder) authority(o route.Object, root route.Root) *azure.Reference {
	name := b.prefix.Child("root", root.Hash)
	child := azure.Child[network.GatewayTrustedRoot]{Name: name}
	if !live.Has(b.live.Properties.TrustedRoots, name) {
		child.Properties.Data = root.Data
	}
	b.roots[name] = child
	b.needs(name, o)
	return b.ref("trustedRootCertificates", name)
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

// toURL returns a redirect to a URL.
func (b *builder) toURL(r route.Route) *azure.Reference {
	to := r.Target.Redirect
	name := b.prefix.Child("rd", to.Type, to.URL, fmt.Sprint(to.KeepsPath))
	b.redirects[name] = azure.Child[network.GatewayRedirect]{Name: name, Properties: network.GatewayRedirect{
		Type: to.Type, URL: to.URL, KeepsPath: to.KeepsPath, KeepsQuery: true,
	}}
	b.needs(name, r.Object)
	return b.ref("redirectConfigurations", name)
}

// shared shares the requests of a route among backends. A weight is that of all members of a pool; Azure wants that of each one, between 1
// and 100.
func (b *builder) shared(r route.Route) target {
	const most = 100
	var highest float64
	each := make([]float64, len(r.Target.Shares))
	parts := []string{r.Object.Key(), fmt.Sprint(r.Rank)}
	for i, s := range r.Target.Shares {
		each[i] = float64(s.Weight) / float64(max(1, len(s.Pool.Addresses)))
		highest = max(highest, each[i])
		parts = append(parts, s.Namespace, s.Service, s.Port)
	}
	name := b.prefix.Child("ld", parts...)
	policy := network.GatewayDistribution{Algorithm: network.RoundRobin}
	for i, s := range r.Target.Shares {
		pool := b.pool(r.Object, s.Backend)
		policy.Targets = append(policy.Targets, azure.Child[network.GatewayDistributionTarget]{
			Name: pool.ID.Name(), Properties: network.GatewayDistributionTarget{
				Weight: int32(max(1, math.Round(each[i]/highest*most))), Pool: pool,
			},
		})
	}
	b.distributions[name] = azure.Child[network.GatewayDistribution]{Name: name, Properties: policy}
	b.needs(name, r.Object)
	return target{distribution: b.ref("loadDistributionPolicies", name), settings: b.setting(r.Object, r.Target.Shares[0].Backend)}
}

// answer is the target of requests that get a status code. Without anything that answers, they get 502.
func (b *builder) answer(o route.Object, status int) target {
	if b.answers == nil {
		return b.nowhere()
	}
	back := *b.answers
	code := fmt.Sprint(status)
	settings, probe := b.prefix.Child("bp", "answer", code), b.prefix.Child("pb", "answer")
	properties := back.Settings
	properties.Path, properties.Probe, properties.TrustedRoots = "/"+code+"/", b.ref("probes", probe), []azure.Reference{}
	b.settings[settings] = azure.Child[network.GatewaySettings]{Name: settings, Properties: properties}
	b.probes[probe] = azure.Child[network.GatewayProbe]{Name: probe, Properties: back.Probe}
	b.needs(settings, o)
	b.needs(probe, o)
	return target{pool: b.pool(o, &back), settings: b.ref("backendHttpSettingsCollection", settings)}
}

const (
	plainPort      = 80
	defaultTimeout = 30
)

// nowhere is the target of requests that no route takes: a pool without backends, which answers 502.
func (b *builder) nowhere() target {
	settings := b.prefix.Child("bp", "nowhere")
	b.settings[settings] = azure.Child[network.GatewaySettings]{Name: settings, Properties: network.GatewaySettings{
		Port: plainPort, Protocol: network.GatewayHTTP, CookieBasedAffinity: network.SwitchedOff, RequestTimeout: defaultTimeout,
		TrustedRoots: []azure.Reference{},
	}}
	return target{pool: b.nowherePool(), settings: b.ref("backendHttpSettingsCollection", settings)}
}

// nowherePool makes the pool without backends.
func (b *builder) nowherePool() *azure.Reference {
	name := b.prefix.Child("pool", "nowhere")
	b.pools[name] = azure.Child[network.GatewayPool]{Name: name, Properties: network.GatewayPool{Addresses: []network.GatewayAddress{}}}
	return b.ref("backendAddressPools", name)
}

// placeholder makes the least that a gateway must have: a listener with a rule that leads nowhere.
func (b *builder) placeholder() {
	_, public := b.live.Frontend(false)
	h := &host{hostKey: hostKey{private: !public, port: plainPort}}
	l := b.newListener(h, nil)
	b.child(l)
	b.prioritize()
}
