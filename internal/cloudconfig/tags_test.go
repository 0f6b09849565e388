package cloudconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResourceTags(t *testing.T) {
	for _, test := range []struct {
		name     string
		tags     string
		tagsMap  map[string]string
		want     map[string]string
		warnings []string
	}{
		{"none", "", nil, map[string]string{}, nil},
		{
			"pairs are trimmed, others left out", "a=b, c = d,bad", nil,
			map[string]string{"a": "b", "c": "d"},
			[]string{`tags: "bad" is ignored: want name=value; tagsMap allows every character`},
		},
		{
			"the map wins whatever the case", "a=b, c = d", map[string]string{"A": "x"},
			map[string]string{"A": "x", "c": "d"}, nil,
		},
		{"null keeps its spaces", "a= null,b=NULL ", map[string]string{"c": " Null "},
			map[string]string{"a": " null", "b": "NULL ", "c": " Null "}, nil},
		{
			"two equals signs", "a=b=c", map[string]string{"d": "e=f,g"},
			map[string]string{"d": "e=f,g"},
			[]string{`tags: "a=b=c" is ignored: want name=value; tagsMap allows every character`},
		},
		{
			"no name", " =b", map[string]string{" ": "x"}, map[string]string{},
			[]string{"tags: a tag without a name is ignored", "tagsMap: a tag without a name is ignored"},
		},
		{"empty value", "a=", nil, map[string]string{"a": ""}, nil},
		{"the later of two", "a=1,A=2", nil, map[string]string{"A": "2"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Default()
			c.Tags, c.TagsMap = test.tags, test.tagsMap
			_, warnings := c.parseTags()
			if diff := cmp.Diff(test.want, c.ResourceTags()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.warnings, texts(warnings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSystemTagPrefixes(t *testing.T) {
	for text, want := range map[string][]string{
		"":            nil,
		"k8s":         {"k8s"},
		" k8s , aks-": {"k8s", "aks-"},
		"k8s,":        nil, // the empty prefix matches every tag
	} {
		c := Config{Cluster: Cluster{SystemTags: text}}
		if diff := cmp.Diff(want, c.SystemTagPrefixes()); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	c := Config{Cluster: Cluster{SystemTags: "k8s,"}}
	if _, warnings := c.parseTags(); len(warnings) != 1 {
		t.Error(warnings)
	}
}
