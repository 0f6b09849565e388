package loadbalancer

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

func probes() behaviour.Type {
	return schema.Inside("loadBalancers/probes", probesPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillProbe,
	})
}

func fillProbe(c *behaviour.Call) error {
	// Azure requires that a probe notices a failure in less than two minutes.
	const shortest, tooLong = 5, 120
	if behaviour.At(c.Doc, "properties.port") == nil {
		return schema.Missing(c, "properties.port")
	}
	err := schema.FirstError(
		func() error { return schema.Required(c, "properties.protocol", "Tcp", "Http", "Https") },
		func() error { return schema.Number(c, "properties.port", -1, 1, highestPort) },
		func() error { return schema.Number(c, "properties.intervalInSeconds", 15, shortest, tooLong-1) },
		func() error { return schema.Number(c, "properties.numberOfProbes", 2, 1, tooLong) },
		func() error { return schema.Number(c, "properties.probeThreshold", 1, 1, 100) },
	)
	if err != nil {
		return err
	}
	interval, _ := behaviour.Int(c.Doc, "properties.intervalInSeconds")
	if threshold, _ := behaviour.Int(c.Doc, "properties.probeThreshold"); interval*threshold >= tooLong {
		return behaviour.Invalid("LoadBalancerProbeInvalidInterval",
			"Probe %s is invalid: intervalInSeconds %d times probeThreshold %d must be less than %d seconds.", c.ID, interval,
			threshold, tooLong)
	}
	return checkRequestPath(c)
}

func checkRequestPath(c *behaviour.Call) error {
	path, protocol := behaviour.Text(c.Doc, "properties.requestPath"), behaviour.Text(c.Doc, "properties.protocol")
	switch {
	case protocol == "Tcp" && path != "":
		return behaviour.Invalid("LoadBalancerProbeRequestPathNotAllowed",
			"Probe %s must not have a requestPath: its protocol is Tcp.", c.ID)
	case protocol != "Tcp" && path == "":
		return behaviour.Invalid("LoadBalancerProbeMissingRequestPath", "Probe %s must have a requestPath: its protocol is %s.",
			c.ID, protocol)
	case protocol == "Https" && behaviour.Text(c.Parent, "sku.name") == "Basic":
		return behaviour.Invalid("LoadBalancerProbeHttpsNotSupported",
			"Probe %s must not have the protocol Https: the load balancer has sku Basic.", c.ID)
	}
	return nil
}
