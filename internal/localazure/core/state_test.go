package core_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// A restored Azure goes on where the saved one was, in the middle of operations.
func TestStateRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		a.must("PUT", table, `{"location":"eastus","properties":{"routes":[{"name":"r","properties":{"addressPrefix":"10.0.0.0/8"}}]}}`)
		hidden := a.must("PUT", account, `{"location":"eastus"}`)
		creating := a.must("PUT", address, `{"location":"eastus"}`)
		path := filepath.Join(t.TempDir(), "state.json")
		if err := a.SaveFile(path); err != nil {
			t.Fatal(err)
		}
		b := start(t, core.Options{Latency: 1})
		if err := b.LoadFile(path); err != nil {
			t.Fatal(err)
		}
		if got := b.poll(creating, "Azure-AsyncOperation"); got.body["status"] != "InProgress" {
			t.Errorf("the restored operation: %d %v", got.status, got.body)
		}
		if got := b.do("GET", account, ""); got.status != 404 {
			t.Errorf("a hidden account: %d", got.status)
		}
		<-time.After(5 * time.Minute)
		for name, first := range map[string]answer{"Azure-AsyncOperation": creating, "Location": hidden} {
			was, is := a.poll(first, name), b.poll(first, name)
			if was.status != 200 || is.status != 200 {
				t.Errorf("%s: %d before, %d restored", name, was.status, is.status)
			}
		}
		for _, id := range []string{group, table, address, account} {
			was, is := a.must("GET", id, ""), b.must("GET", id, "")
			behaviour.Remove(was.body, "etag") // drawn when the operation ended
			behaviour.Remove(is.body, "etag")
			if id == table && len(behaviour.Array(is.body, "properties.routes")) != 1 || state(is) != "Succeeded" {
				t.Errorf("%s restored: %v", id, is.body)
			}
			if id == group && !behaviour.Equal(was.body, is.body) {
				t.Errorf("%s: %v restored as %v", id, was.body, is.body)
			}
		}
		if got := b.do("GET", address, ""); behaviour.Text(got.body,
			"properties.ipAddress") != behaviour.Text(a.do("GET", address, "").body, "properties.ipAddress") {
			t.Error("the restored Azure draws other numbers")
		}
	})
}

func TestBadStatesAreRefusedAndKept(t *testing.T) {
	var saved bytes.Buffer
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", table, `{"location":"eastus"}`)
	if err := a.Save(&saved); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"cut off": {saved.String()[:saved.Len()/2], "not a state file: unexpected EOF"},
		"other format": {strings.Replace(saved.String(), "state 1", "state 9", 1),
			`format "kaz local azure state 9": want "kaz local azure state 1"`},
		"other type": {strings.ReplaceAll(saved.String(), "routeTables", "rootTables"),
			"its type Microsoft.Network/rootTables is not known"},
		"no id": {strings.Replace(saved.String(), `"id":"/subscriptions`, `"id":"subscriptions`, 1),
			"is not an Azure resource id"},
	} {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		b := start(t, core.Options{})
		err := b.LoadFile(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if got := b.do("GET", group, ""); got.status != 404 {
			t.Errorf("%s: something was loaded: %v", name, got.body)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != c.text {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	if err := start(t, core.Options{}).LoadFile(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("no file: %v", err)
	}
}
