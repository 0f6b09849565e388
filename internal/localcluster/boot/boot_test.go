package boot

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kaz/internal/host/process"
	"kaz/internal/localcluster/machine"
)

// A machine finds its host name, its administrator and its custom data where cloud-init looks for them, and no other user.
func TestProvision(t *testing.T) {
	root := t.TempDir()
	if err := provision(root, Spec{Host: "one", User: "ops", CustomData: "aGk="}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "var/lib/cloud/seed/azure/ovf-env.xml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Set struct {
			Host string `xml:"HostName"`
			User string `xml:"UserName"`
			Data string `xml:"CustomData"`
		} `xml:"ProvisioningSection>LinuxProvisioningConfigurationSet"`
	}
	if err := xml.Unmarshal(text, &got); err != nil || got.Set.Host != "one" || got.Set.User != "ops" || got.Set.Data != "aGk=" {
		t.Errorf("%v %v\n%s", err, got, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("custom data can have secrets: %v %v", info, err)
	}
}

// The files of container images are shared by machines, and their databases are copied: each machine writes its own.
func TestFillStore(t *testing.T) {
	store, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"content/blob": "b", "meta.db": "m"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(store, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(store, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := Spec{Place: machine.Place{Name: "one", Dir: dir}, Image: Image{Store: store}}
	for range 2 { // a second boot keeps what the first one left
		if err := fillStore(s); err != nil {
			t.Fatal(err)
		}
	}
	same := func(name string) bool {
		a, err := os.Stat(filepath.Join(store, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.Stat(filepath.Join(dir, "var/lib/containerd", name))
		if err != nil {
			t.Fatal(err)
		}
		return os.SameFile(a, b)
	}
	if !same("content/blob") || same("meta.db") {
		t.Errorf("content shared: %v, database shared: %v", same("content/blob"), same("meta.db"))
	}
}

// A spec says all that it lacks.
func TestSpecCheck(t *testing.T) {
	file, err := Spec{Place: machine.Place{Name: "one", Dir: t.TempDir()}}.Write()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Read(file)
	for _, want := range []string{"namespace", "no layers", "host is missing", "azureCA is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %q", err, want)
		}
	}
}

// An image is made once. A failed attempt leaves nothing.
func TestCatalogueOnce(t *testing.T) {
	c := Catalogue{Dir: t.TempDir()}
	made := 0
	layer := func(fail error) (string, error) {
		return c.once(t.Context(), "layer", []string{"input"}, func(dir string) error {
			made++
			return cmpOr(fail, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		})
	}
	if _, err := layer(os.ErrInvalid); err == nil {
		t.Error("a failure was not reported")
	}
	first, err := layer(nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := layer(nil)
	if err != nil || first != second || made != 2 {
		t.Errorf("%v: %s and %s, made %d times", err, first, second, made)
	}
	if _, err := os.Stat(filepath.Join(first, "file")); err != nil {
		t.Error(err)
	}
}

// Of the directories that change with every build those used last stay, and those in use.
func TestCatalogueLatest(t *testing.T) {
	c := Catalogue{Dir: t.TempDir()}
	var dirs []string
	var locks []*process.Lock
	for build := range 8 {
		dir, lock, err := c.latest(t.Context(), "store", []string{strconv.Itoa(build)}, func(string) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		dirs, locks = append(dirs, dir), append(locks, lock)
		at := time.Unix(int64(1000*(build+1)), 0)
		if err := os.Chtimes(dir+used, at, at); err != nil {
			t.Fatal(err)
		}
	}
	other, err := c.once(t.Context(), "store-other", nil, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	dirs = append(dirs, other)
	present := func() string {
		var all []string
		for i, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				all = append(all, strconv.Itoa(i))
			}
		}
		return strings.Join(all, " ")
	}
	if got := present(); got != "0 1 2 3 4 5 6 7 8" {
		t.Errorf("while all are in use: %s", got)
	}
	for _, build := range []int{0, 2, 3, 4, 5, 7} {
		locks[build].Release()
	}
	if err := c.tidy("store"); err != nil {
		t.Fatal(err)
	}
	if got := present(); got != "1 4 5 6 7 8" {
		t.Errorf("left: %s, want 1 and 6, which are in use, the last three others, and the one with another name", got)
	}
	again, _, err := c.latest(t.Context(), "store", []string{"0"}, func(string) error { return nil })
	if err != nil || again != dirs[0] {
		t.Errorf("made again: %s, %v", again, err)
	}
}

func cmpOr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
