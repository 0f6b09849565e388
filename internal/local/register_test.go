package local

import (
	"testing"

	"kaz/internal/azure"
)

// A machine of another resource group registers with a label that says which, as its
// kubelet would be told to.
func TestNodesOfOtherGroupsSaySo(t *testing.T) {
	cluster := azure.GroupID("s", "kaz")
	for group, want := range map[string]string{"kaz": "", "KAZ": "", "Elsewhere": "elsewhere"} {
		m := machine{ID: azure.GroupID("s", group).Resource("Microsoft.Compute/virtualMachines", "vm"), Name: "vm"}
		if got := newNode(m, cluster).Labels["kubernetes.azure.com/resource-group"]; got != want {
			t.Errorf("a machine in %s: the label is %q, want %q", group, got, want)
		}
	}
}
