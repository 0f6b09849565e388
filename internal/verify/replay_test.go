package verify_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/verify/cassette"
	"kaz/internal/verify/replay"
)

// taped runs probes, writes a cassette, and reads it.
func taped(t *testing.T, through way, only ...string) (string, []cassette.Exchange) {
	t.Helper()
	w := newTarget(t, through, only...)
	w.run(t)
	var file bytes.Buffer
	if err := cassette.Write(&file, w.options.Recorder.From(0)); err != nil {
		t.Fatal(err)
	}
	text := file.String()
	exchanges, err := cassette.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return text, exchanges
}

func played(t *testing.T, exchanges []cassette.Exchange) replay.Result {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	result, err := replay.Run(t.Context(), exchanges, replay.Target{Transport: e.Transport(), Subscription: core.DefaultSubscription})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestReplayOfTheLocalAzure plays what a local Azure answered against another one: nothing differs, and the cassette has no secret.
func TestReplayOfTheLocalAzure(t *testing.T) {
	text, exchanges := taped(t, straight)
	for _, secret := range []string{core.DefaultSubscription, core.DefaultTenant, "Bearer", "kaz-[A-Z2-7]{26}", "sig=[^R]"} {
		if found := regexp.MustCompile(secret).FindString(text); found != "" {
			at := strings.Index(text, found)
			t.Errorf("the cassette has %s: %s", found, text[max(at-200, 0):at+100])
		}
	}
	result := played(t, exchanges)
	var b strings.Builder
	if err := result.Text(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(result.Compared, result.Folded, result.Skipped)
	if len(result.Differences) > 0 || result.Compared < 300 {
		t.Error(b.String())
	}
}

// TestReplayOfAnotherAzure plays what an Azure answered that differs from the local one.
func TestReplayOfAnotherAzure(t *testing.T) {
	wrong := lies()
	for probe, want := range map[string]string{
		"create-only":      "status: recorded 200; local 412",
		"record-limits":    "status: recorded 200; local 400",
		"disk-attach":      "shape: recorded nothing else; local datadisks (list)",
		"capacity-patch":   "status: recorded 200; local 412",
		"what-if-invalid":  "code: recorded InvalidTemplate; local none",
		"account-versions": "shape: recorded nothing else; local properties.networkacls (object)",
	} {
		_, exchanges := taped(t, wrong[probe], probe)
		var b strings.Builder
		if err := played(t, exchanges).Text(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "("+probe+")") {
			t.Errorf("%s: want %s\n%s", probe, want, b.String())
		}
	}
}
