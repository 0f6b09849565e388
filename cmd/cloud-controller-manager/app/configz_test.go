package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/component-base/configz"
)

// TestConfigIsShown checks that /configz shows the program's options.
func TestConfigIsShown(t *testing.T) {
	settings := &config.Config{}
	settings.ComponentConfig.ServiceController.ConcurrentServiceSyncs = 7
	settings.ComponentConfig.KubeCloudShared.ClusterName = "harbour"
	t.Cleanup(func() { configz.Delete(frameworkapp.ConfigzName) })
	if err := (&manager{config: settings.Complete()}).showConfig(); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/configz", nil))
	for _, want := range []string{`"` + frameworkapp.ConfigzName + `"`, `"kind":"CloudControllerManagerConfiguration"`,
		`"ConcurrentServiceSyncs":7`, `"ClusterName":"harbour"`} {
		if !strings.Contains(strings.ReplaceAll(w.Body.String(), " ", ""), want) {
			t.Errorf("%s is missing in %s", want, w.Body)
		}
	}
}
