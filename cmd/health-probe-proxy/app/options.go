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

// options are the values of the flags.
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

// flags returns the flags in the groups that help shows.
func (o *options) flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	probes := sets.FlagSet("probes")
	probes.IntVar(&o.port, "health-check-port", o.port, "Port of the health probes of load balancers.")
	probes.IntVar(&o.targetPort, "target-port", o.targetPort, "Port of kube-proxy's health server on the same machine.")
	probes.StringVar(&o.bindAddress, "bind-address", o.bindAddress, "IP address to listen at. Empty means all addresses, IPv4 and IPv6.")
	probes.DurationVar(&o.timeout, "timeout", o.timeout, "Timeout of each step: the PROXY header, the request, and kube-proxy's response.")
	probes.StringVar(&o.metricsAddress, "metrics-bind-address", o.metricsAddress,
		"HOST:PORT of /metrics and /healthz of this program. :PORT listens on localhost only. Empty opens no port.")
	return sets
}

// validate returns all problems at once.
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
