package pullcredential

import (
	"strings"
	"testing"

	"kaz/internal/azure/registry"
)

func TestRegistryHosts(t *testing.T) {
	const suffix = "azurecr.local.corp"
	for image, want := range map[string]bool{
		"foo.azurecr.io/a/b:1":                          true,
		"foo.azurecr.io/a@sha256:0":                     true,
		"foo.azurecr.io":                                true,
		"foo.azurecr.cn/a":                              true,
		"foo.azurecr.de/a":                              true,
		"foo.azurecr.us/a":                              true,
		"FOO.AzureCR.io/a":                              true,
		"my-reg-abc.azurecr.io/a":                       true,
		"foo.eastus.geo.azurecr.io/a":                   true,
		"foo.azurecr.io:443/a":                          true,
		"reg.azurecr.local.corp/a:1":                    true,
		"reg.azurecr.local.corp:5000/a:1":               true,
		"foo.azurecr.io.evil.com/x":                     false,
		"evil.com/foo.azurecr.io/x":                     false,
		"evil.com/azurecr.io/x":                         false,
		"foo.azurecr.io.":                               false,
		"foo.azurecr.io./x":                             false,
		"foo.azurecr.iox/x":                             false,
		"foo-azurecr.io/x":                              false,
		"fooazurecr.io/x":                               false,
		"azurecr.io/x":                                  false,
		".azurecr.io/x":                                 false,
		"foo..azurecr.io/x":                             false,
		"-foo.azurecr.io/x":                             false,
		"foo-.azurecr.io/x":                             false,
		"foo_bar.azurecr.io/x":                          false,
		"evil.com@foo.azurecr.io/x":                     false,
		"foo.azurecr.io@evil.com/x":                     false,
		"foo.azurecr.io:443@evil.com/x":                 false,
		"foo.azurecr.io:/x":                             false,
		"foo.azurecr.io:0/x":                            false,
		"foo.azurecr.io:65536/x":                        false,
		"foo.azurecr.io:+443/x":                         false,
		"foo.azurecr.io:443:443/x":                      false,
		"foo.azurecr.io?x=/x":                           false,
		"foo.azurecr.io#/x":                             false,
		"foo.azurecr.io\\evil.com/x":                    false,
		"foo.azurecr.io%2eevil.com/x":                   false,
		"https://foo.azurecr.io/x":                      false,
		"evil.com#.azurecr.io/x":                        false,
		"evil.com\n.azurecr.io/x":                       false,
		"evil.com .azurecr.io/x":                        false,
		"foo.aꞏzurecr.io/x":                             false,
		"foo.azurecr.\u0131o/x":                         false, // a dotless i
		"foo.a\u200bzurecr.io/x":                        false,
		"ﬀ.azurecr.io/x":                                false,
		"*.azurecr.io/x":                                false,
		"reg.azurecr.local.corp.evil.com/x":             false,
		"azurecr.local.corp/x":                          false,
		"docker.io/library/nginx":                       false,
		"nginx":                                         false,
		"/foo.azurecr.io":                               false,
		"":                                              false,
		strings.Repeat("a", 63) + ".azurecr.io/x":       true,
		strings.Repeat("a", 64) + ".azurecr.io/x":       false,
		strings.Repeat("abcdefg.", 40) + "azurecr.io/x": false,
		"[::1].azurecr.io/x":                            false,
	} {
		if got := isRegistry(hostOf(image), suffix); got != want {
			t.Errorf("%q: registry %v, want %v", image, got, want)
		}
	}
}

// TestSuffixes checks that a cloud's domain may start with a dot and may be empty.
func TestSuffixes(t *testing.T) {
	for suffix, want := range map[string]bool{"azurecr.example": true, ".azurecr.example": true, "AzureCR.example": true, "": false,
		".": false, "example": true, "other.example": false} {
		if got := isRegistry("reg.azurecr.example", suffix); got != want {
			t.Errorf("%q: %v, want %v", suffix, got, want)
		}
	}
}

// FuzzImage searches for images that are taken for an Azure registry although a client would call
// another host.
func FuzzImage(f *testing.F) {
	for _, image := range []string{"foo.azurecr.io/a:1", "foo.azurecr.io.evil.com/x", "a@foo.azurecr.io/x", "foo.azurecr.io:443/x",
		"foo.azurecr.io", "reg.azurecr.local.corp/a"} {
		f.Add(image)
	}
	mirrors, _ := ParseMirrors("mcr.microsoft.com:foo.azurecr.io,a:b.azurecr.io/c")
	f.Fuzz(func(t *testing.T, image string) {
		from, _ := through(mirrors, image)
		host := hostOf(from)
		if !isRegistry(host, "azurecr.local.corp") {
			return
		}
		name, _, _ := strings.Cut(strings.ToLower(host), ":")
		ours := false
		for _, domain := range append(registry.Domains(), "azurecr.local.corp") {
			ours = ours || strings.HasSuffix(name, "."+domain)
		}
		if !ours || strings.ContainsAny(host, "/@?#%\\ \t\r\n[]*") {
			t.Errorf("%q: host %q", image, host)
		}
		// The recognized host is the requested one.
		if err := sameHost(host, "https://"+host+"/oauth2/token"); err != nil {
			t.Errorf("%q: %v", image, err)
		}
	})
}
