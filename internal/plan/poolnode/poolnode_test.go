package poolnode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
)

func TestTags(t *testing.T) {
	n := Node{Pool: "batch", Revision: "ab12", Given: map[string]string{"example.com/team_a": "x", "plain": ""},
		Taints: []corev1.Taint{ReadTaint("example.com/a_b=c:NoSchedule"), ReadTaint("d:NoExecute")}, Pods: 40}
	want := map[string]string{
		TagPrefix + "label_example.com_team~2a": "x", TagPrefix + "label_plain": "", TagPrefix + "taint_example.com_a~2b": "c:NoSchedule",
		TagPrefix + "taint_d": ":NoExecute", TagPrefix + "resources_pods": "40",
	}
	if diff := cmp.Diff(want, n.Tags()); diff != "" {
		t.Error(diff)
	}
	for tag := range n.Tags() {
		if !Describes(tag) {
			t.Errorf("%s is no tag of a description", tag)
		}
	}
	if got, want := n.NodeLabels(), "example.com/team_a=x,kaz/pool=batch,kaz/revision=ab12,plain="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, key := range []string{"a/b_c", "a_b", "a", "x.y/z-1"} {
		if got := Decode(Encode(key)); got != key {
			t.Errorf("%s is decoded to %s", key, got)
		}
	}
	if Describes(TagPrefix+"resources_cpu") || Describes(TagPrefix+"autoscaling-options_x") || Own(azure.Tags{"x": "y"}) != nil {
		t.Error("a tag of other people is taken for one of kaz")
	}
}
