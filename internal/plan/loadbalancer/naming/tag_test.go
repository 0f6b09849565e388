package naming_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/naming"
)

func TestTags(t *testing.T) {
	c := cluster.Config{Tags: azure.Tags{"Env": "test", "team": "a"}}
	for _, test := range []struct {
		what      string
		system    []string
		own, have azure.Tags
		want      azure.Tags
	}{
		{"configured", nil, nil, nil, azure.Tags{"Env": "test", "team": "a"}},
		{"own ones win, in any case", nil, azure.Tags{"env": "mine"}, nil, azure.Tags{"env": "mine", "team": "a"}},
		{"foreign tags stay", nil, nil, azure.Tags{"x": "y"}, azure.Tags{"Env": "test", "team": "a"}},
		{"foreign tags go except system ones", []string{"sys"}, nil, azure.Tags{"x": "y", "SysTem": "z", "ENV": "old"},
			azure.Tags{"Env": "test", "team": "a", "x": azure.DropTag}},
	} {
		c.SystemTags = test.system
		if d := cmp.Diff(test.want, naming.WantedTags(c, test.own, test.have)); d != "" {
			t.Errorf("%s: %s", test.what, d)
		}
	}
	if got := naming.WantedTags(cluster.Config{}, nil, azure.Tags{"x": "y"}); got != nil {
		t.Error("without configured tags there is an opinion:", got)
	}
}

// TestTagsOfSharedResources checks that only configured tags decide about the tags of load balancers and of the security
// group. Without configured tags, foreign tags stay, whatever the system tags are. Notes come and go all the same.
func TestTagsOfSharedResources(t *testing.T) {
	configured, system := azure.Tags{"team": "a"}, []string{"sys"}
	for _, test := range []struct {
		what        string
		c           cluster.Config
		notes, have azure.Tags
		want        azure.Tags
	}{
		{"nothing configured", cluster.Config{}, nil, azure.Tags{"x": "y"}, nil},
		{"system tags alone", cluster.Config{SystemTags: system}, nil, azure.Tags{"x": "y"}, nil},
		{"system tags alone, a note comes", cluster.Config{SystemTags: system}, azure.Tags{"kaz-c-1": "true"}, azure.Tags{"x": "y"},
			azure.Tags{"kaz-c-1": "true"}},
		{"system tags alone, a note goes", cluster.Config{SystemTags: system}, azure.Tags{"kaz-c-1": azure.DropTag}, azure.Tags{"x": "y"},
			azure.Tags{"kaz-c-1": azure.DropTag}},
		{"tags", cluster.Config{Tags: configured}, nil, azure.Tags{"x": "y"}, configured},
		{"both", cluster.Config{Tags: configured, SystemTags: system}, nil, azure.Tags{"x": "y", "SYS-1": "z"},
			azure.Tags{"team": "a", "x": azure.DropTag}},
		{"both, other clusters' notes", cluster.Config{Tags: configured, SystemTags: system}, nil,
			azure.Tags{"Kaz-d-public-ips-in-far": "true"},
			configured},
	} {
		if d := cmp.Diff(test.want, naming.WantedTagsOfShared(test.c, test.notes, test.have)); d != "" {
			t.Errorf("%s: %s", test.what, d)
		}
	}
}
