package server

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// The address of a machine's console serves the log of the machine with its computer name.
func TestConsole(t *testing.T) {
	dir := t.TempDir()
	a := startServer(t, Options{ProxyAddress: "127.0.0.1:0", ConsoleLog: func(name string) string { return filepath.Join(dir, name) }})
	machine := azure.GroupID(a.Info().Subscription, "rg").Resource("Microsoft.Compute/virtualMachines", "vm")
	var answer any
	if err := a.Emulator().Do(func(w behaviour.World) (err error) {
		w.Put(machine, behaviour.Object{"location": "westeurope", "properties": behaviour.Object{
			"vmId": "12345678-1234-1234-1234-123456789abc", "osProfile": behaviour.Object{"computerName": "Web"},
			"diagnosticsProfile": behaviour.Object{"bootDiagnostics": behaviour.Object{"enabled": true}}}})
		answer, err = w.Act(behaviour.Itself(), machine, "retrieveBootDiagnosticsData", nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	blobs, _ := answer.(behaviour.Object)
	get := func() (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, behaviour.Text(blobs, "serialConsoleLogBlobUri"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := clientOf(t, a, true).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(text)
	}
	if status, text := get(); status != http.StatusNotFound {
		t.Errorf("before the machine has run: %d %s", status, text)
	}
	if err := os.WriteFile(filepath.Join(dir, "web"), []byte("login: "), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := get(); status != http.StatusOK || text != "login: " {
		t.Errorf("console: %d %q", status, text)
	}
}
