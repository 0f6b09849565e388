package cloudprovider_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

// TestTagsOfAMachinesScaleSet checks that one list read serves all machines of a scale set.
func TestTagsOfAMachinesScaleSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		body, err := json.Marshal(map[string]any{"tags": map[string]string{"kubernetesNodeCIDRMaskIPV4": "26"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Client.Patch(t.Context(), azure.Write{ID: testkit.Nodes, Body: body}); err != nil {
			t.Fatal(err)
		}
		for _, instance := range []string{"0", "1"} {
			id, err := nodes.ProviderID(testkit.Nodes.Child("virtualMachines", instance))
			if err != nil {
				t.Fatal(err)
			}
			tags, err := w.cloud.SetTags(t.Context(), id)
			if err != nil || tags["kubernetesNodeCIDRMaskIPV4"] != "26" {
				t.Errorf("%v %v", tags, err)
			}
		}
		if tags, err := w.cloud.SetTags(t.Context(), "kubeadm://somewhere"); err != nil || len(tags) > 0 {
			t.Errorf("a foreign machine: %v %v", tags, err)
		}
	})
}
