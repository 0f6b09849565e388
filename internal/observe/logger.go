package observe

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"k8s.io/klog/v2"
)

// NewLogger returns a logger that writes records at level and above to w, as text (key=value) or json
// (one object per line). With a [slog.LevelVar], the level can change while the program runs.
func NewLogger(w io.Writer, level slog.Leveler, format string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("log format %q: must be one of text, json", format)
}

// ParseLevel parses a level: debug, info, warn or error, in any case.
func ParseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q: must be one of debug, info, warn, error", name)
}

// UseForKubernetes sends the logs of the Kubernetes libraries to logger. Their verbosity n becomes
// level -n, so 4 is debug; klog must also allow that verbosity (-v). It sets a global of klog: call
// it once, after the flags are parsed and before anything else runs.
func UseForKubernetes(logger *slog.Logger) { klog.SetSlogLogger(logger) }
