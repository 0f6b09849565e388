package controlplane

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestDefinitions checks that the definitions of other projects come from the pinned modules, without other kinds.
func TestDefinitions(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := SnapshotCRDs(t.Context(), goCommand)
	if err != nil {
		t.Fatal(err)
	}
	gateways, err := GatewayCRDs(t.Context(), goCommand)
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
