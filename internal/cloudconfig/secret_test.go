package cloudconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	const text = "correct horse battery"
	c := Default()
	c.AADClientSecret = NewSecret(text)
	c.AADClientCertPassword = NewSecret(text)
	hiddenInside := struct{ config Config }{c}

	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	logger.Info("config", "secret", c.AADClientSecret, "config", c, "inside", hiddenInside)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("config", "secret", c.AADClientSecret, "config", c)
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"slog": logged.String(), "json": string(asJSON), "yaml": string(asYAML)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%T"} {
		shown[verb] = fmt.Sprintf(verb+" "+verb+" "+verb, c.AADClientSecret, c, hiddenInside)
	}
	for how, output := range shown {
		if strings.Contains(output, text) || strings.Contains(output, fmt.Sprintf("%x", text)) {
			t.Errorf("%s shows it: %s", how, output)
		}
	}
	for _, how := range []string{"slog", "json", "yaml", "%v", "%+v", "%#v", "%d"} {
		if !strings.Contains(shown[how], redacted) {
			t.Errorf("%s does not say that it is hidden: %s", how, shown[how])
		}
	}
}

func TestSecretRevealsItself(t *testing.T) {
	if s := NewSecret("x"); s.Reveal() != "x" || s.IsZero() || !s.Equal(NewSecret("x")) || s.Equal(NewSecret("y")) {
		t.Error(s)
	}
	if s := NewSecret(""); s.Reveal() != "" || !s.IsZero() || s.String() != "" || s != (Secret{}) {
		t.Error(s)
	}
}
