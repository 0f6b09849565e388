package disk

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// SnapshotParameters is what a VolumeSnapshotClass says of a snapshot.
type SnapshotParameters struct {
	ResourceGroup, Subscription              string
	Full                                     bool // not incremental
	DataAccessAuthMode                       string
	NetworkAccessPolicy, PublicNetworkAccess string
	Tags                                     map[string]string

	name, namespace string
}

// ReadSnapshotParameters reads the parameters of a VolumeSnapshotClass. The error is a [ParameterError].
func ReadSnapshotParameters(class map[string]string) (SnapshotParameters, error) {
	var p SnapshotParameters
	var tags Parameters
	table := []struct {
		name    string
		field   *string
		allowed []string // nil for any
	}{
		{"resourceGroup", &p.ResourceGroup, nil},
		{"subscriptionID", &p.Subscription, nil},
		{"dataAccessAuthMode", &p.DataAccessAuthMode, []string{"None", "AzureActiveDirectory"}},
		{"networkAccessPolicy", &p.NetworkAccessPolicy, []string{"AllowAll", "DenyAll", "AllowPrivate"}},
		{"publicNetworkAccess", &p.PublicNetworkAccess, []string{"Enabled", "Disabled"}},
		{"tags", &tags.tags, nil},
		{"tagValueDelimiter", &tags.delimiter, nil},
		{"csi.storage.k8s.io/volumesnapshot/name", &p.name, nil},
		{"csi.storage.k8s.io/volumesnapshot/namespace", &p.namespace, nil},
		{"csi.storage.k8s.io/volumesnapshotcontent/name", new(string), nil},
		{"userAgent", new(string), nil},
	}
	for key, value := range class {
		known := false
		if strings.EqualFold(key, "incremental") {
			p.Full, known = value == "false", true
		}
		for _, row := range table {
			if !strings.EqualFold(key, row.name) {
				continue
			}
			known = true
			read := oneOf(func(*Parameters) *string { return row.field }, row.allowed...)
			if row.allowed == nil {
				read = text(func(*Parameters) *string { return row.field })
			}
			if err := read(nil, value); err != nil {
				return p, &ParameterError{row.name, value, err.Error()}
			}
		}
		if !known {
			return p, &ParameterError{key, value, "the key is not known for snapshots"}
		}
	}
	err := tags.readTags()
	p.Tags = tags.Tags
	return p, err
}

// Snapshot returns the document of a snapshot of a disk. It is in the group of the disk unless the class names one.
func (c Cluster) Snapshot(name string, source azure.ID, p SnapshotParameters) azure.Resource[compute.Snapshot] {
	group := source.Group()
	if p.ResourceGroup != "" {
		group = p.ResourceGroup
	}
	subscription := source.Subscription()
	if p.Subscription != "" {
		subscription = p.Subscription
	}
	tags := map[string]string{tagCreatedBy: createdBy, tagSource: string(source)}
	maps.Copy(tags, p.Tags)
	addTag(tags, tagSnapshot, p.name)
	addTag(tags, tagSnapshotSpace, p.namespace)
	return azure.Resource[compute.Snapshot]{
		ID:       azure.GroupID(subscription, group).Resource(compute.Snapshots, ResourceName(name)),
		Location: c.Location, ExtendedLocation: c.ExtendedLocation, Tags: tags,
		Properties: compute.Snapshot{
			Incremental:         new(!p.Full),
			CreationData:        compute.CreationData{CreateOption: "Copy", SourceResourceID: source},
			DataAccessAuthMode:  p.DataAccessAuthMode,
			NetworkAccessPolicy: p.NetworkAccessPolicy, PublicNetworkAccess: p.PublicNetworkAccess,
		},
	}
}

// State is a snapshot as CSI shows it.
type State struct {
	Source  azure.ID
	SizeGB  int64
	Created time.Time
	Ready   bool
}

// StateOf returns the state of a snapshot. It is ready when Azure has copied everything.
func StateOf(s azure.Resource[compute.Snapshot]) (State, error) {
	created, err := time.Parse(time.RFC3339Nano, s.Properties.TimeCreated)
	if err != nil {
		return State{}, fmt.Errorf("snapshot %s: timeCreated: %w", s.ID.Name(), err)
	}
	percent := s.Properties.CompletionPercent
	return State{
		Source: s.Properties.CreationData.SourceResourceID, SizeGB: s.Properties.DiskSizeGB, Created: created,
		Ready: strings.EqualFold(s.Properties.ProvisioningState, "Succeeded") && (percent == nil || *percent >= 100),
	}, nil
}
