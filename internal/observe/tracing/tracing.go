// Package tracing exports the spans of [kaz/internal/observe/trace] to an OpenTelemetry collector.
// Layer L2: programs enable it.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// Tracing is an enabled export of spans.
type Tracing struct{ provider tracing.TracerProvider }

// Open reads a TracingConfiguration file (apiserver.config.k8s.io/v1) and starts to export spans to
// its collector. An empty path disables tracing. A process has at most one Tracing; the caller closes
// it.
func Open(ctx context.Context, path, program, version string) (*Tracing, error) {
	if path == "" {
		return &Tracing{tracing.NewNoopTracerProvider()}, nil
	}
	c, err := readConfiguration(path)
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
	// The instrumentation of gRPC keeps metrics that nothing reads: go.opentelemetry.io/contrib issue 5190.
	otel.SetMeterProvider(metricnoop.NewMeterProvider())
	return &Tracing{provider}, nil
}

// readConfiguration reads a TracingConfiguration as the API server does. It does not call the API server's own
// function. The package of that function is most of an API server, and makes a program larger by 15 MB of resident
// memory.
func readConfiguration(path string) (*tracingapi.TracingConfiguration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var c apiserver.TracingConfiguration
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	if err := runtime.DecodeInto(decoder, text, &c); err != nil {
		return nil, fmt.Errorf("decode %s: %w", path, err)
	}
	return &c.TracingConfiguration, nil
}

// Close exports the remaining spans, for at most a few seconds, and ends tracing.
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
