// Package traces exports the spans of a program as its flag --tracing-config-file says. Layer L4.
package traces

import (
	"context"
	"fmt"
	"log/slog"

	"kaz/internal/component/release"
	"kaz/internal/observe/tracing"
)

// Open starts the export. file is the value of the flag; "" exports nothing. The caller calls end, which exports the last spans.
func Open(ctx context.Context, file, program string) (end func(), err error) {
	traces, err := tracing.Open(ctx, file, program, release.Version())
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	return func() {
		if err := traces.Close(ctx); err != nil {
			slog.WarnContext(ctx, "tracing", "error", err)
		}
	}, nil
}
