package doctor

import (
	"context"
	"encoding/json"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
)

// machine is what is read of a machine.
type machine struct {
	ID         azure.ID          `json:"id"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		OS struct {
			Name string `json:"computerName"`
		} `json:"osProfile"`
		ScaleSet struct {
			ID azure.ID `json:"id"`
		} `json:"virtualMachineScaleSet"`
		View struct {
			Statuses []struct {
				Code string `json:"code"`
			} `json:"statuses"`
		} `json:"instanceView"`
	} `json:"properties"`
}

// power is the power state of a machine, "unknown" if Azure does not tell.
func (m machine) power() string {
	for _, s := range m.Properties.View.Statuses {
		if state, is := strings.CutPrefix(s.Code, "PowerState/"); is {
			return state
		}
	}
	return "unknown"
}

// machines adds the machines of the cluster.
func (d Doctor) machines(ctx context.Context, c *found) error {
	group := c.names.Group()
	sets, err := azure.ListAs[machine](ctx, d.Azure, azure.Query{Scope: group, Type: record.ScaleSetType})
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, set := range sets {
		if set.Tags[naming.ClusterTag] != c.names.Cluster {
			continue
		}
		ours[set.ID.Key()] = true
		instances, err := azure.ListAs[machine](ctx, d.Azure, azure.Query{Scope: set.ID, Type: record.ScaleSetType + "/virtualMachines",
			Expand: "instanceView"})
		if err != nil {
			return err
		}
		for _, m := range instances {
			if m.ID.Under(set.ID) { // those of a Flexible scale set are machines of the group
				c.machine(strings.ToLower(m.Properties.OS.Name)).Power = m.power()
			}
		}
	}
	machines, err := azure.ListAs[machine](ctx, d.Azure, azure.Query{Scope: group, Type: record.MachineType})
	if err != nil {
		return err
	}
	for _, m := range machines {
		if m.Tags[naming.ClusterTag] != c.names.Cluster && !ours[m.Properties.ScaleSet.ID.Key()] {
			continue
		}
		doc, err := d.Azure.Get(ctx, m.ID+"/instanceView")
		if err == nil {
			err = json.Unmarshal(doc, &m.Properties.View)
		}
		if err != nil && !azure.IsNotFound(err) {
			return err
		}
		c.machine(strings.ToLower(m.Properties.OS.Name)).Power = m.power()
	}
	return nil
}
