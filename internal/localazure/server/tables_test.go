package server

import (
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// Tables and their entities are there after a restart with the same state.
func TestTablesAfterRestart(t *testing.T) {
	dir := t.TempDir()
	o := Options{State: filepath.Join(dir, "state.json"), CAFile: filepath.Join(dir, "ca.pem"), Log: slog.New(slog.DiscardHandler)}
	send := func(a *Server, method, path, body string) (int, string) {
		token, err := a.tokens.Issue(a.owner, "", "https://storage.azure.com", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(method, "https://acc.table.core.windows.net"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token.Text)
		w := httptest.NewRecorder()
		a.tables.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	first, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	makeGroup(t, first, "rg")
	if err := first.Emulator().Do(func(w behaviour.World) error {
		return w.Apply(behaviour.Itself(), azure.GroupID(first.Info().Subscription, "rg").Resource(storage.AccountType, "acc"),
			behaviour.Object{"location": "westeurope", "kind": "StorageV2", "sku": behaviour.Object{"name": "Standard_LRS"}})
	}); err != nil {
		t.Fatal(err)
	}
	if status, text := send(first, "POST", "/Tables", `{"TableName":"People"}`); status != 201 {
		t.Fatalf("create: %d %s", status, text)
	}
	if status, text := send(first, "POST", "/People", `{"PartitionKey":"p","RowKey":"r","N":1}`); status != 201 {
		t.Fatalf("insert: %d %s", status, text)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, o)
	if status, text := send(second, "GET", "/People(PartitionKey='p',RowKey='r')", ""); status != 200 || !strings.Contains(text, `"N":1`) {
		t.Errorf("after a restart: %d %s", status, text)
	}
}
