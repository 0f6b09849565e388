// Package persistentvolumes_test checks the manifests of volumes and of clusters against the drivers and the types of Kubernetes.
package persistentvolumes_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"kaz/internal/plan/disk"
	"kaz/internal/plan/share"
)

const manifests = "../../example-manifests"

// The drivers.
const (
	disks  = "disk.csi.azure.com"
	shares = "file.csi.azure.com"
)

// readers has for each driver what reads the parameters of classes and the attributes of volumes.
var readers = map[string]struct {
	class, mutable, snapshot, attributes func(map[string]string) error
	handle                               func(string) error
}{
	disks: {
		class:      func(p map[string]string) error { _, err := disk.ReadParameters(p, nil); return err },
		mutable:    func(p map[string]string) error { _, err := disk.ReadMutable(p); return err },
		snapshot:   func(p map[string]string) error { _, err := disk.ReadSnapshotParameters(p); return err },
		attributes: func(p map[string]string) error { _, err := disk.ReadProfile(p); return err },
		handle: func(id string) error {
			if !strings.Contains(id, "/providers/Microsoft.Compute/disks/") {
				return errors.New("want the id of a disk")
			}
			return nil
		},
	},
	shares: {
		class:      func(p map[string]string) error { _, err := share.ReadClass(p, nil); return err },
		mutable:    func(p map[string]string) error { _, err := share.ReadMutable(p); return err },
		snapshot:   func(p map[string]string) error { _, err := share.ReadSnapshotClass(p); return err },
		attributes: func(p map[string]string) error { _, err := share.ReadAttributes(p); return err },
		handle:     func(id string) error { _, err := share.ParseVolume(id); return err },
	},
}

// documents returns the documents of a YAML file.
func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		one, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
}

// object decodes a document strictly. Types that Kubernetes' own library does not have stay as they are.
func object(t *testing.T, text []byte) runtime.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if group := u.GroupVersionKind().Group; group == "snapshot.storage.k8s.io" || group == "kubeadm.k8s.io" {
		return u
	}
	o, err := runtime.Decode(serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer(), text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return o
}

// check reports whether the driver takes an object, and returns the driver that it names.
func check(o runtime.Object) (driver string, err error) {
	switch o := o.(type) {
	case *storagev1.StorageClass:
		return o.Provisioner, readers[o.Provisioner].class(o.Parameters)
	case *storagev1.VolumeAttributesClass:
		return o.DriverName, readers[o.DriverName].mutable(o.Parameters)
	case *corev1.PersistentVolume:
		csi := o.Spec.CSI
		return csi.Driver, errors.Join(readers[csi.Driver].attributes(csi.VolumeAttributes), readers[csi.Driver].handle(csi.VolumeHandle))
	case *corev1.Pod:
		csi := o.Spec.Volumes[0].CSI
		return csi.Driver, readers[csi.Driver].attributes(csi.VolumeAttributes)
	case *unstructured.Unstructured:
		if o.GetKind() != "VolumeSnapshotClass" {
			return "", nil
		}
		driver, _, _ := unstructured.NestedString(o.Object, "driver")
		parameters, _, err := unstructured.NestedStringMap(o.Object, "parameters")
		return driver, errors.Join(err, readers[driver].snapshot(parameters))
	}
	return "", nil
}

// TestManifests checks that the drivers take the manifests of volumes, and that a page names each of them.
func TestManifests(t *testing.T) {
	for folder, driver := range map[string]string{"azuredisk": disks, "azurefile": shares} {
		page, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(manifests, "persistentvolumes", folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if !strings.Contains(string(page), "("+filepath.ToSlash(filepath.Join("..", "..", "..", "example-manifests", "persistentvolumes",
				folder, filepath.Base(file)))+")") {
				t.Errorf("%s is not on the page of %s", file, folder)
			}
			for _, text := range documents(t, file) {
				switch named, err := check(object(t, text)); {
				case err != nil:
					t.Errorf("%s: %v", file, err)
				case named != "" && named != driver:
					t.Errorf("%s: driver %s, want %s", file, named, driver)
				}
			}
		}
	}
}

// TestOutOfTree checks that the manifests of a cluster's programs have the types of Kubernetes.
func TestOutOfTree(t *testing.T) {
	for _, name := range []string{"kube-controller-manager.yaml", "kubeadm.yaml"} {
		for _, text := range documents(t, filepath.Join(manifests, "out-of-tree", name)) {
			object(t, text)
		}
	}
}
