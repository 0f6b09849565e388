package nodegroup_test

import (
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// TestParseNamed has the scenario S2.
func TestParseNamed(t *testing.T) {
	for value, want := range map[string]string{
		"0:10:np1": "", "1:1:np1": "", "0:0:np1": "", "1:3:a:b": "",
		"5:3:np1": "the greatest size 3 is below the least size 5",
		"a:3:x":   `the least size "a" is not a whole number`,
		"-1:3:x":  "the least size -1 is below 0",
		"1:b:x":   `the greatest size "b" is not a whole number`,
		"1:3":     "must be MIN:MAX:NAME", "1:3:": "must be MIN:MAX:NAME", "1:3: ": "must be MIN:MAX:NAME", "": "must be MIN:MAX:NAME",
	} {
		_, err := nodegroup.ParseNamed(value)
		checkError(t, value, err, want)
	}
}

func checkError(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one with %q", what, err, want)
	}
}

func TestParseDiscovery(t *testing.T) {
	for value, want := range map[string]string{
		"label:a=b": "", "label:a=b,c=d,min=1,max=5": "", "label-any:a=b": "",
		"label:a=b:c":           "must be label:",
		"tag:a=b":               "must be label:",
		"label":                 "must be label:",
		"label:a":               `"a" is not KEY=VALUE`,
		"label:a=":              `"a=" is not KEY=VALUE`,
		"label:a=b,":            `"" is not KEY=VALUE`,
		"label:min=1,max=2":     "names no tag",
		"label:a=b,min=x":       `min "x" is not a whole number`,
		"label:a=b,min=5,max=2": "max=2 is below min=5",
	} {
		_, err := nodegroup.ParseDiscovery(value)
		checkError(t, value, err, want)
	}
}

// TestSelect has the scenarios S3 and S4.
func TestSelect(t *testing.T) {
	tests := []struct {
		name, flags, tags string
		min, max          int
		reason            string
	}{
		{"S3 limits of the flag", "label:a=b,min=1,max=5", "a=b", 1, 5, ""},
		{"S3 limits of the tags", "label:a=b,min=1,max=5", "a=b min=2 max=9", 2, 9, ""},
		{"S3 tag that is no number", "label:a=b,min=1,max=5", "a=b min=x", 0, 0, `the tag min: "x" is not a whole number`},
		{"S3 tags the wrong way round", "label:a=b,min=1,max=5", "a=b min=9 max=2", 0, 0, "the greatest size 2 is below the least size 9"},
		{"no limits", "label:a=b", "a=b", 0, 0, "it needs the tags min and max"},
		{"another value", "label:a=b,min=1,max=5", "a=B", 0, 0, "it lacks the tag a=b"},
		{"S4 both", "label:a=b,min=1,max=9 label:c=d,min=2,max=8", "a=b c=d", 2, 8, ""},
		{"S4 one of both", "label:a=b,min=1,max=9 label:c=d", "a=b", 0, 0, "it lacks the tag c=d"},
		{"S4 either", "label-any:a=b,min=1,max=9 label-any:c=d,min=2,max=8", "c=d", 2, 8, ""},
		{"all, or either", "label:a=b,min=1,max=9 label:c=d label-any:e=f,min=3,max=4", "a=b e=f", 3, 4, ""},
		{"named", "1:3:POOL label:a=b", "x=y", 1, 3, ""},
		{"not named", "1:3:other", "", 0, 0, "no --nodes names it"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s nodegroup.Selection
			for flag := range strings.FieldsSeq(test.flags) {
				if strings.HasPrefix(flag, "label") {
					d, err := nodegroup.ParseDiscovery(flag)
					if err != nil {
						t.Fatal(err)
					}
					s.Discoveries = append(s.Discoveries, d)
					continue
				}
				n, err := nodegroup.ParseNamed(flag)
				if err != nil {
					t.Fatal(err)
				}
				s.Named = append(s.Named, n)
			}
			tags := azure.Tags{}
			for pair := range strings.FieldsSeq(test.tags) {
				key, value, _ := strings.Cut(pair, "=")
				tags[key] = value
			}
			limits, err := s.Select("pool", tags)
			checkError(t, "selection", err, test.reason)
			if err == nil && limits != (nodegroup.Limits{Min: test.min, Max: test.max}) {
				t.Errorf("limits %v", limits)
			}
		})
	}
}

func FuzzFlags(f *testing.F) {
	for _, seed := range []string{"1:2:a", "label:a=b,min=1", "label-any:a=b,max=3", ":::", "label:,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if n, err := nodegroup.ParseNamed(value); err == nil && (n.Name == "" || n.Min < 0 || n.Max < n.Min) {
			t.Errorf("%q: %+v", value, n)
		}
		if d, err := nodegroup.ParseDiscovery(value); err == nil && len(d.Tags) == 0 {
			t.Errorf("%q: %+v", value, d)
		}
	})
}
