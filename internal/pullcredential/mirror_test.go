package pullcredential

import (
	"slices"
	"testing"
)

func TestMirrors(t *testing.T) {
	for text, want := range map[string]struct {
		mirrors  []Mirror
		problems int
	}{
		"":                                   {},
		"mcr.microsoft.com:x.azurecr.io":     {[]Mirror{{"mcr.microsoft.com", "x.azurecr.io"}}, 0},
		" a.b : c.d ,  e.f:g.h ,":            {[]Mirror{{"a.b", "c.d"}, {"e.f", "g.h"}}, 0},
		"a.b:5000:c.d":                       {[]Mirror{{"a.b:5000", "c.d"}}, 0},
		"a.b:c.d:5000":                       {[]Mirror{{"a.b", "c.d:5000"}}, 0},
		"a.b:5000:c.d:5001":                  {[]Mirror{{"a.b:5000", "c.d:5001"}}, 0},
		"a.b:5000/x:c.d/y":                   {[]Mirror{{"a.b:5000/x", "c.d/y"}}, 0},
		"a.b/:c.d/":                          {[]Mirror{{"a.b", "c.d"}}, 0},
		"a.b:c.d,a.b/long:e.f,z.z.z.z.z:g.h": {[]Mirror{{"z.z.z.z.z", "g.h"}, {"a.b/long", "e.f"}, {"a.b", "c.d"}}, 0},
		"a.b":                                {nil, 1},
		"a.b:":                               {nil, 1},
		":a.b":                               {nil, 1},
		"a.b:c.d:e.f,g.h:i.j":                {[]Mirror{{"g.h", "i.j"}}, 1},
		"https://a.b:c.d":                    {nil, 1},
		"a b@c:d,e_f:g.h":                    {nil, 2},
	} {
		mirrors, problems := ParseMirrors(text)
		if !slices.Equal(mirrors, want.mirrors) || len(problems) != want.problems {
			t.Errorf("%q: %v %v, want %v and %d problems", text, mirrors, problems, want.mirrors, want.problems)
		}
	}
}

func TestMirroredImages(t *testing.T) {
	mirrors, _ := ParseMirrors("mcr.microsoft.com:x.azurecr.io/mcr,mcr.microsoft.com/oss:oss.azurecr.io,r.example:5000:y.azurecr.io")
	for image, want := range map[string]string{
		"mcr.microsoft.com/app:1":         "x.azurecr.io/mcr/app:1",
		"mcr.microsoft.com/oss/app:1":     "oss.azurecr.io/app:1",
		"mcr.microsoft.com/oss:1":         "oss.azurecr.io:1",
		"mcr.microsoft.com/oss@sha256:0":  "oss.azurecr.io@sha256:0",
		"mcr.microsoft.com/ossify:1":      "x.azurecr.io/mcr/ossify:1",
		"r.example:5000/a":                "y.azurecr.io/a",
		"r.example/a":                     "",
		"mcr.microsoft.com.example.com/a": "",
		"mcr.microsoft.com:5000/a":        "",
		"mcr.microsoft.com@example.com/a": "",
		"example.com/mcr.microsoft.com/a": "",
	} {
		got, mirrored := through(mirrors, image)
		if mirrored != (want != "") || mirrored && got != want || !mirrored && got != image {
			t.Errorf("%s: %s %v, want %q", image, got, mirrored, want)
		}
	}
}
