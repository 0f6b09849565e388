// Package tracing sends what the spans of [kaz/internal/observe/trace] tell to a
// collector of OpenTelemetry. Layer L2, for programs: they switch it on.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// Tracing is what a program has switched on.
type Tracing struct{ provider tracing.TracerProvider }

// Open reads a file of the kind TracingConfiguration (apiserver.config.k8s.io/v1), as
// Kubernetes' own programs do, and begins to send spans to the collector that it
// names. An empty path is no tracing. There is one for a process; the caller closes it.
func Open(ctx context.Context, path, program, version string) (*Tracing, error) {
	if path == "" {
		return &Tracing{tracing.NewNoopTracerProvider()}, nil
	}
	c, err := options.ReadTracingConfiguration(path)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if problems := tracingapi.ValidateTracingConfiguration(c, nil, nil); len(problems) > 0 {
		return nil, fmt.Errorf("tracing: %s: %w", path, errors.Join(problems.ToAggregate().Errors()...))
	}
	provider, err := tracing.NewProvider(ctx, c, nil, []resource.Option{resource.WithAttributes(
		attribute.String("service.name", program), attribute.String("service.version", version),
	)})
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetTracerProvider(provider)
	return &Tracing{provider}, nil
}

// Close sends what has not been sent yet, for a few seconds, and ends tracing.
func (t *Tracing) Close(ctx context.Context) error {
	const longest = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	otel.SetTracerProvider(noop.NewTracerProvider())
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("tracing: send the last spans: %w", err)
	}
	return nil
}
