package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kaz/internal/healthproxy"
)

// options are what the flags say.
type options struct {
	port           int
	targetPort     int
	bindAddress    string
	metricsAddress string
	timeout        time.Duration
	logging        *logsapi.LoggingConfiguration
}

func newOptions() *options {
	return &options{port: 10356, targetPort: 10256, timeout: healthproxy.Patience, logging: logsapi.NewLoggingConfiguration()}
}

// flags has the flags in the groups in which help shows them.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	probes := sets.FlagSet("probes")
	probes.IntVar(&o.port, "health-check-port", o.port, "Port at which load balancers ask.")
	probes.IntVar(&o.targetPort, "target-port", o.targetPort, "Port of kube-proxy's health server on this machine.")
	probes.StringVar(&o.bindAddress, "bind-address", o.bindAddress, "IP address to listen at. Empty is all addresses, IPv4 and IPv6.")
	probes.DurationVar(&o.timeout, "timeout", o.timeout, "How long a PROXY header may take, then the request, then kube-proxy's answer.")
	probes.StringVar(&o.metricsAddress, "metrics-bind-address", o.metricsAddress, "HOST:PORT of /metrics and /healthz of this program; :PORT is this machine only. Empty opens no port.")
	return sets
}

// validate reports all problems at once.
func (o *options) validate() error {
	var problems []error
	note := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, p := range []struct {
		flag string
		port int
	}{{"--health-check-port", o.port}, {"--target-port", o.targetPort}} {
		if p.port < 1 || p.port > 65535 {
			note("%s %d: must be between 1 and 65535", p.flag, p.port)
		}
	}
	if o.port == o.targetPort {
		note("--health-check-port %d: must be another than --target-port, which is kube-proxy's", o.port)
	}
	if o.timeout <= 0 {
		note("--timeout %s: must be more than 0", o.timeout)
	}
	if o.bindAddress != "" && net.ParseIP(o.bindAddress) == nil {
		note("--bind-address %q: must be an IP address", o.bindAddress)
	}
	if o.metricsAddress != "" {
		_, port, err := net.SplitHostPort(o.metricsAddress)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			note("--metrics-bind-address %q: must be HOST:PORT or :PORT: %w", o.metricsAddress, err)
		}
	}
	return errors.Join(problems...)
}
