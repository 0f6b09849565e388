package cluster

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
)

// Usual values of probes.
const (
	probeHost      = "localhost"
	probeInterval  = 30
	probeThreshold = 3
	mostThreshold  = 20
)

// Healthy returns the usual health probe: / answers 200 to 399.
func Healthy(protocol string) network.GatewayProbe {
	return network.GatewayProbe{
		Protocol: protocol, Host: probeHost, Path: "/", Interval: probeInterval, Timeout: probeInterval,
		UnhealthyThreshold: probeThreshold, Match: &network.GatewayProbeMatch{StatusCodes: []string{"200-399"}},
	}
}

// Like makes a probe like that of the pods, as far as an application gateway can. It returns false for pods with a probe that is no
// httpGet.
func (p Port) Like(b *network.GatewayProbe) bool {
	if p.Probe == nil {
		return true
	}
	get := p.Probe.HTTPGet
	if get == nil {
		b.Path = "/"
	} else {
		b.Host, b.Path, b.Port = cmp.Or(get.Host, b.Host), cmp.Or(get.Path, "/"), get.Port.IntVal
		if get.Scheme == corev1.URISchemeHTTPS {
			b.Protocol = network.GatewayHTTPS
		}
		if !strings.HasPrefix(b.Path, "/") {
			b.Path = "/" + b.Path
		}
		b.Path, _, _ = strings.Cut(b.Path, "?")
	}
	b.Interval = cmp.Or(p.Probe.PeriodSeconds, b.Interval)
	b.Timeout = min(cmp.Or(p.Probe.TimeoutSeconds, b.Timeout), b.Interval)
	b.UnhealthyThreshold = min(cmp.Or(p.Probe.FailureThreshold, b.UnhealthyThreshold), mostThreshold)
	return get != nil
}
