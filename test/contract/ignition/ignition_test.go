// Package ignition judges generated boot files with the library of Ignition.
package ignition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	stderrors "errors"
	"io"
	"os"
	"testing"

	"github.com/coreos/ignition/v2/config/shared/errors"
	config "github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_3/types"
	"github.com/vincent-petithory/dataurl"

	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/definition"
)

// load returns the definition of example files. Its control plane boots with Ignition, too.
func load(t *testing.T, names ...string) definition.Definition {
	t.Helper()
	var layers []definition.Layer
	for _, name := range names {
		text, err := os.ReadFile("../../../docs/example-manifests/cluster/" + name)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, definition.Layer{Name: name, Text: text})
	}
	d, err := definition.Load(layers...)
	if err != nil {
		t.Fatal(err)
	}
	d.Cluster.Spec.ControlPlane.BootFormat = definition.Ignition
	return d
}

// parse reads a config as Ignition does. It fails with any finding, also a warning.
func parse(t *testing.T, text []byte) types.Config {
	t.Helper()
	c, report, err := config.Parse(text)
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("%v\n%s", err, report.String())
	}
	return c
}

// TestIgnition checks that Ignition takes the generated configs without a warning, and finds the same in the custom data. A disk that
// has a file system is never formatted again.
func TestIgnition(t *testing.T) {
	for _, layers := range [][]string{{"dev.yaml", "flatcar.yaml"}, {"ha.yaml", "team-a.yaml", "flatcar.yaml"}} {
		files, err := boot.Build(load(t, layers...))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"control plane": files.ControlPlane, "pool": files.Pools["flatcar"]} {
			c := parse(t, text)
			disks := 0
			for _, f := range c.Storage.Filesystems {
				disks++
				if f.Device != "/dev/disk/azure/scsi1/lun0" || *f.Label != "etcd_disk" || f.WipeFilesystem == nil || *f.WipeFilesystem {
					t.Errorf("%s: the file system %+v", name, f)
				}
			}
			if want := map[string]int{"control plane": 1}[name]; disks != want {
				t.Errorf("%s: %d file systems, want %d", name, disks, want)
			}
			data, err := boot.CustomData(text)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				t.Fatal(err)
			}
			inner := parse(t, raw).Ignition.Config.Replace
			url, err := dataurl.DecodeString(*inner.Source)
			if err != nil || *inner.Compression != "gzip" {
				t.Fatalf("%s: %v, compression %v", name, err, inner.Compression)
			}
			if got := gunzip(t, url.Data); string(got) != string(text) {
				t.Errorf("%s: the custom data has another config:\n%s", name, got)
			}
		}
	}
	if _, _, err := config.Parse([]byte("#cloud-config\n")); !stderrors.Is(err, errors.ErrInvalid) {
		t.Errorf("a file of cloud-init: %v, want %v", err, errors.ErrInvalid)
	}
}

func gunzip(t *testing.T, zipped []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
