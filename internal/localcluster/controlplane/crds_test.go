package controlplane

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// TestDefinitions checks that the definitions of other projects come from the pinned modules, without other kinds.
func TestDefinitions(t *testing.T) {
	snapshots, err := SnapshotCRDs(t.Context(), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gateways, err := GatewayCRDs(t.Context(), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text  []byte
		want  int
		names string
	}{
		{snapshots, 3, "volumesnapshotclasses.snapshot.storage.k8s.io volumesnapshots.snapshot.storage.k8s.io"},
		{gateways, 10, "gatewayclasses.gateway.networking.k8s.io gateways.gateway.networking.k8s.io httproutes.gateway.networking.k8s.io"},
	} {
		kinds := bytes.Count(test.text, []byte("\nkind: "))
		if got := bytes.Count(test.text, []byte("\nkind: CustomResourceDefinition\n")); got != test.want || kinds != got {
			t.Errorf("%d definitions and %d objects, want %d of both", got, kinds, test.want)
		}
		for name := range strings.FieldsSeq(test.names) {
			if !bytes.Contains(test.text, []byte("\n  name: "+name+"\n")) {
				t.Errorf("no definition of %s", name)
			}
		}
	}
	const (
		version = "\n    gateway.networking.k8s.io/bundle-version: v1.6.3\n"
		channel = "\n    gateway.networking.k8s.io/channel: standard\n"
	)
	if n, m := bytes.Count(gateways, []byte(version)), bytes.Count(gateways, []byte(channel)); n != 10 || m != 10 {
		t.Errorf("of the definitions of Gateway API %d have the version and %d the channel, want 10", n, m)
	}
}

// TestPrebuiltDefinitions checks that a machine without the go command reads the definitions that another machine kept.
func TestPrebuiltDefinitions(t *testing.T) {
	dir := t.TempDir()
	if err := KeepDefinitions(t.Context(), BuildOptions{CacheDir: dir}); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(context.Context, BuildOptions) ([]byte, error){"snapshots": SnapshotCRDs, "gateways": GatewayCRDs} {
		downloaded, err := read(t.Context(), BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := read(t.Context(), BuildOptions{Prebuilt: dir, Go: "/no/such/go"})
		if err != nil || !bytes.Equal(kept, downloaded) {
			t.Errorf("%s: %d bytes kept, %d downloaded, %v", name, len(kept), len(downloaded), err)
		}
		if _, err := read(t.Context(), BuildOptions{Prebuilt: t.TempDir(), Go: "/no/such/go"}); !errors.Is(err, ErrNoGo) {
			t.Errorf("%s of an empty folder: %v", name, err)
		}
	}
}
