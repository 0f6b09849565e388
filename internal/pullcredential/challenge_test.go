package pullcredential

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChallenges(t *testing.T) {
	bearer := func(params map[string]string) []challenge { return []challenge{{"bearer", params}} }
	for header, want := range map[string][]challenge{
		`Bearer realm="https://r/oauth2/token",service="r"`: bearer(map[string]string{"realm": "https://r/oauth2/token",
			"service": "r"}),
		`bearer  Realm = "https://r/t" , SERVICE= "r" ,`: bearer(map[string]string{"realm": "https://r/t", "service": "r"}),
		`Bearer realm=https://r/oauth2/token,service=r`: bearer(map[string]string{"realm": "https://r/oauth2/token",
			"service": "r"}),
		`Bearer realm=https://r/t?a=b,service=r`: bearer(map[string]string{"realm": "https://r/t?a=b", "service": "r"}),
		`Bearer realm="a, b=\"c\"",scope="repository:x:pull,push"`: bearer(map[string]string{"realm": `a, b="c"`,
			"scope": "repository:x:pull,push"}),
		`Bearer realm="not ended`: bearer(map[string]string{"realm": "not ended"}),
		`Basic realm="x", Bearer realm="y",service=z`: {{"basic", map[string]string{"realm": "x"}},
			{"bearer", map[string]string{"realm": "y", "service": "z"}}},
		`Bearer`:                      bearer(map[string]string{}),
		`Negotiate, Bearer service=z`: {{"negotiate", map[string]string{}}, {"bearer", map[string]string{"service": "z"}}},
		`realm="x"`:                   nil,
		`="x" "y"=`:                   nil,
		``:                            nil,
		`,,, `:                        nil,
	} {
		if diff := cmp.Diff(want, parseChallenges(header), cmp.AllowUnexported(challenge{})); diff != "" {
			t.Errorf("%s:\n%s", header, diff)
		}
	}
}

// TestService checks that only a challenge of the registry itself is accepted, because the token is
// sent to its realm.
func TestService(t *testing.T) {
	for header, want := range map[string]string{
		`Bearer realm="https://foo.azurecr.io/oauth2/token",service="foo.azurecr.io"`:                                          "",
		`Bearer realm="https://FOO.azurecr.io:443/oauth2/token",service="foo.azurecr.io"`:                                      "",
		`Basic realm="x", Bearer realm=https://foo.azurecr.io/oauth2/token,service=foo.azurecr.io`:                             "",
		`Bearer realm="https://evil.com/oauth2/token",service="foo.azurecr.io"`:                                                "not at foo.azurecr.io",
		`Bearer realm="https://foo.azurecr.io.evil.com/",service="foo.azurecr.io"`:                                             "not at foo.azurecr.io",
		`Bearer realm="https://foo.azurecr.io@evil.com/",service="foo.azurecr.io"`:                                             "without a user",
		`Bearer realm="https://bar.azurecr.io/oauth2/token",service="foo.azurecr.io"`:                                          "not at foo.azurecr.io",
		`Bearer realm="http://foo.azurecr.io/oauth2/token",service="foo.azurecr.io"`:                                           "https",
		`Bearer realm="//foo.azurecr.io/oauth2/token",service="foo.azurecr.io"`:                                                "https",
		`Bearer realm="https://foo.azurecr.io:8443/oauth2/token",service="foo.azurecr.io"`:                                     "not at",
		`Bearer realm=":",service="foo.azurecr.io"`:                                                                            "not a URL",
		`Bearer realm="https://foo.azurecr.io/oauth2/token",service="bar.azurecr.io"`:                                          `service "bar.azurecr.io"`,
		`Bearer realm="https://foo.azurecr.io/oauth2/token"`:                                                                   "no realm or no service",
		`Bearer service="foo.azurecr.io"`:                                                                                      "no realm or no service",
		`Bearer`:                                                                                                               "no realm or no service",
		`Basic realm="x"`:                                                                                                      "0 Bearer challenges",
		`Bearer realm="https://foo.azurecr.io/",service="foo.azurecr.io", Bearer realm="https://evil.com/",service="evil.com"`: "2 Bearer challenges",
		``: "0 Bearer challenges",
	} {
		got, err := service("foo.azurecr.io", http.Header{"Www-Authenticate": {header}})
		switch {
		case want == "" && (err != nil || got != "foo.azurecr.io"):
			t.Errorf("%s: %q %v", header, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %q %v, want %q", header, got, err, want)
		}
	}
	if got, err := service("foo.local:5000",
		http.Header{"Www-Authenticate": {`Bearer realm="https://foo.local:5000/oauth2/token",service="foo.local"`}}); err != nil ||
		got != "foo.local" {
		t.Errorf("with a port: %q %v", got, err)
	}
	two := http.Header{"Www-Authenticate": {`Bearer realm="https://foo.azurecr.io/",service="foo.azurecr.io"`,
		`Bearer realm="https://foo.azurecr.io/",service="foo.azurecr.io"`}}
	if _, err := service("foo.azurecr.io", two); err == nil {
		t.Error("two headers were taken")
	}
}

// FuzzChallenge parses any header.
func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer realm="https://foo.azurecr.io/oauth2/token",service="foo.azurecr.io"`)
	f.Add(`Bearer realm=a"b\`)
	f.Add(`"=,`)
	f.Fuzz(func(t *testing.T, header string) {
		for _, c := range parseChallenges(header) {
			if c.scheme == "" || strings.ContainsAny(c.scheme, "\"=, \t") {
				t.Errorf("scheme %q", c.scheme)
			}
		}
		name, err := service("foo.azurecr.io", http.Header{"Www-Authenticate": {header}})
		if err == nil && !strings.EqualFold(name, "foo.azurecr.io") {
			t.Errorf("service %q", name)
		}
	})
}
