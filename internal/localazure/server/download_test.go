package server

import (
	"strings"
	"testing"
)

// Linked templates in storage accounts come from this local Azure itself, with its access control.
func TestDownloadFromStorage(t *testing.T) {
	a := startServer(t, Options{})
	for uri, want := range map[string]string{
		"https://acc.blob.core.windows.net/c/t.json": "401 ",
		"https://acc.file.core.windows.net/s/t.json": "404 ",
		a.Info().ARMHTTP + "/t.json":                 "cannot be reached",
	} {
		if text, err := a.download(t.Context(), uri); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", uri, text, err, want)
		}
	}
}
