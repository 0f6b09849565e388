package component

import (
	"fmt"
	"log/slog"

	"kaz/internal/cloudconfig"
)

// CloudConfig reads azure.json, logs the warnings about it, and validates it. source names it in logs and errors.
func CloudConfig(log *slog.Logger, source string, from cloudconfig.Sources) (cloudconfig.Config, error) {
	c, warnings, err := cloudconfig.Read(from)
	return CheckCloudConfig(log, source, c, warnings, err)
}

// CheckCloudConfig is [CloudConfig] for a configuration that was read in another way, with its warnings and its error.
func CheckCloudConfig(log *slog.Logger, source string, c cloudconfig.Config, warnings []cloudconfig.Warning, err error) (
	cloudconfig.Config, error,
) {
	LogWarnings(log, source, warnings)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return c, fmt.Errorf("cloud configuration %s: %w", source, err)
	}
	return c, nil
}

// LogWarnings logs the warnings about a cloud configuration.
func LogWarnings(log *slog.Logger, source string, warnings []cloudconfig.Warning) {
	for _, w := range warnings {
		log.Warn("cloud configuration", "source", source, "key", w.Key, "message", w.Message)
	}
}
