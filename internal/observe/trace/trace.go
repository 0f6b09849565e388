// Package trace records spans of a program's work, such as a commit with its Azure requests. It costs
// almost nothing unless spans are collected. Layer L2; [kaz/internal/observe/tracing] collects them.
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

// scope is the instrumentation scope of the spans.
const scope = "kaz"

// Span is a traced operation.
type Span struct{ span trace.Span }

// Start starts a span, as a child of the span in ctx if there is one. The caller must end it.
// Attributes must not contain secrets.
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

// End ends a span, with an error if the operation failed.
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
