package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	plan "kaz/internal/plan/check"
)

// paths asks each endpoint. An answer of any status says that it is reached.
func (g *gatherer) paths(ctx context.Context) error {
	add := func(name, at string, err error) {
		p := plan.Path{Name: name, At: at}
		if err != nil {
			p.Fault, p.Obstacle = err.Error(), obstacle(err)
		}
		g.facts.Paths = append(g.facts.Paths, p)
	}
	add("API server", g.APIServer, g.reachAPIServer(ctx))
	for _, e := range g.Endpoints {
		one, cancel := context.WithTimeout(ctx, longestPath)
		add(e.Name, e.URL, g.Reach(one, e.URL))
		cancel()
	}
	return nil
}

// reachAPIServer asks the API server for its version, unless it is known not to answer.
func (g *gatherer) reachAPIServer(ctx context.Context) error {
	if g.silent {
		return fmt.Errorf("it did not answer an earlier read in time: %w", context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(ctx, longestPath)
	defer cancel()
	err := g.version(ctx)
	if _, answered := errors.AsType[*apierrors.StatusError](err); answered {
		return nil
	}
	return err
}

// obstacle returns the kind of an error of a request.
func obstacle(err error) plan.Obstacle {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return plan.NoName
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return plan.NoCertificate
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return plan.NoCertificate
	}
	if waited, ok := errors.AsType[net.Error](err); ok && waited.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return plan.NoAnswer
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return plan.NoConnection
	}
	return ""
}
