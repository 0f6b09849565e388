package record

import (
	"context"
	"encoding/json"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/cluster/naming"
)

// Instance is a machine of a pool as Azure has it.
type Instance struct {
	ID         azure.ID          `json:"id"`
	InstanceID string            `json:"instanceId"`
	Zones      []string          `json:"zones"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
		LatestModel       bool   `json:"latestModelApplied"`
		ScaleSet          struct {
			ID azure.ID `json:"id"`
		} `json:"virtualMachineScaleSet"`
		OS struct {
			Name string `json:"computerName"`
		} `json:"osProfile"`
	} `json:"properties"`
}

// Machines are the machines of the resource group.
func (st Store) Machines(ctx context.Context, n naming.Names) ([]Instance, error) {
	return azure.ListAs[Instance](ctx, st.Azure, azure.Query{Scope: n.Group(), Type: MachineType})
}

// Instances are the machines of a scale set in Uniform mode.
func (st Store) Instances(ctx context.Context, set azure.ID) ([]Instance, error) {
	all, err := azure.ListAs[Instance](ctx, st.Azure, azure.Query{Scope: set, Type: ScaleSetType + "/virtualMachines"})
	return slices.DeleteFunc(all, func(i Instance) bool { return !i.ID.Under(set) }), err
}

// SetTags gives a resource these tags and no others. A change of the resource itself might keep other tags.
func (st Store) SetTags(ctx context.Context, id azure.ID, tags map[string]string) error {
	body, err := json.Marshal(map[string]any{"properties": map[string]any{"tags": tags}})
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, st.Azure, azure.Request{Verb: azure.Put, ID: id.Resource(TagsType, "default"), Body: body, Unseen: true})
	return err
}

// Patch changes fields of a resource.
func (st Store) Patch(ctx context.Context, id azure.ID, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, st.Azure, azure.Request{Verb: azure.Patch, ID: id, Body: text, Unseen: true})
	return err
}

// Delete deletes resources. It is no error if they are gone.
func (st Store) Delete(ctx context.Context, ids ...azure.ID) error {
	for _, id := range ids {
		_, err := azure.Do(ctx, st.Azure, azure.Request{Verb: azure.Delete, ID: id})
		if err != nil && !azure.IsNotFound(err) {
			return err
		}
	}
	return nil
}
