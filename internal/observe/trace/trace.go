// Package trace says what a program is doing at the moment, as spans that belong
// together: a commit and the requests to Azure that it costs. It costs next to nothing
// while nobody collects them. Layer L2; who collects is the business of
// [kaz/internal/observe/tracing].
package trace

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// scope is who makes these spans.
const scope = "kaz"

// Span is something that takes a while.
type Span struct{ span trace.Span }

// Start begins a span, within the one in ctx if there is one. The caller ends it.
// Attributes are for people who look for one thing among many; secrets are none.
func Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, Span) {
	ctx, span := otel.Tracer(scope).Start(ctx, name)
	s := Span{span}
	s.Set(attributes...)
	return ctx, s
}

// Set adds attributes.
func (s Span) Set(attributes ...slog.Attr) {
	if !s.span.IsRecording() {
		return
	}
	all := make([]attribute.KeyValue, 0, len(attributes))
	for _, a := range attributes {
		all = append(all, keyValue(a))
	}
	s.span.SetAttributes(all...)
}

// End ends a span that went well or, with an error, did not.
func (s Span) End(err error) {
	if err != nil && s.span.IsRecording() {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}

func keyValue(a slog.Attr) attribute.KeyValue {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return attribute.String(a.Key, v.String())
	case slog.KindInt64:
		return attribute.Int64(a.Key, v.Int64())
	case slog.KindFloat64:
		return attribute.Float64(a.Key, v.Float64())
	case slog.KindBool:
		return attribute.Bool(a.Key, v.Bool())
	case slog.KindDuration:
		return attribute.Float64(a.Key+"_seconds", v.Duration().Seconds())
	default:
		return attribute.String(a.Key, fmt.Sprint(v.Any()))
	}
}
