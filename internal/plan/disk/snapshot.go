package disk

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/parameter"
)

// SnapshotParameters is what a VolumeSnapshotClass says of a snapshot.
type SnapshotParameters struct {
	ResourceGroup, Subscription              string
	Location                                 string // of another region to copy to
	Full                                     bool   // not incremental
	InstantAccess                            *int64 // minutes
	DataAccessAuthMode                       string
	NetworkAccessPolicy, PublicNetworkAccess string
	Tags                                     map[string]string

	name, namespace string
	tags, delimiter string
}

// snapshotKeys returns the table of the keys of a VolumeSnapshotClass.
func snapshotKeys() []parameter.Key[SnapshotParameters] {
	type fields = *SnapshotParameters
	ignored := parameter.Ignored[SnapshotParameters]
	return []parameter.Key[SnapshotParameters]{
		{Name: "resourceGroup", Read: parameter.Text(func(p fields) *string { return &p.ResourceGroup })},
		{Name: "location", Read: parameter.Text(func(p fields) *string { return &p.Location })},
		{Name: "subscriptionID", Read: parameter.Text(func(p fields) *string { return &p.Subscription })},
		{Name: "incremental", Read: func(p fields, value string) error { p.Full = value == "false"; return nil }},
		{Name: "instantAccessDurationMinutes", Read: readInstantAccess},
		{Name: "dataAccessAuthMode", Read: parameter.OneOf(func(p fields) *string { return &p.DataAccessAuthMode }, "None",
			"AzureActiveDirectory")},
		{Name: "networkAccessPolicy",
			Read: parameter.OneOf(func(p fields) *string { return &p.NetworkAccessPolicy }, networkPolicies()...)},
		{Name: "publicNetworkAccess", Read: parameter.OneOf(func(p fields) *string { return &p.PublicNetworkAccess }, publicAccess()...)},
		{Name: "tags", Read: parameter.Text(func(p fields) *string { return &p.tags })},
		{Name: "tagValueDelimiter", Read: parameter.Text(func(p fields) *string { return &p.delimiter })},
		{Name: "csi.storage.k8s.io/volumesnapshot/name", Read: parameter.Text(func(p fields) *string { return &p.name })},
		{Name: "csi.storage.k8s.io/volumesnapshot/namespace", Read: parameter.Text(func(p fields) *string { return &p.namespace })},
		{Name: "csi.storage.k8s.io/volumesnapshotcontent/name", Read: ignored},
		{Name: "userAgent", Read: ignored},
	}
}

// ReadSnapshotParameters reads the parameters of a VolumeSnapshotClass. The error is a [parameter.Error].
func ReadSnapshotParameters(class map[string]string) (SnapshotParameters, error) {
	var p SnapshotParameters
	err := parameter.Read(&p, snapshotKeys(), class)
	if err == nil && p.Full && p.Location != "" {
		err = &parameter.Error{Key: "incremental", Value: "false",
			Allowed: "only without location: Azure copies incremental snapshots between regions"}
	}
	if err == nil {
		p.Tags, err = readTags(p.tags, p.delimiter)
	}
	return p, err
}

func readInstantAccess(p *SnapshotParameters, value string) error {
	const least, most = 60, 300
	minutes, err := strconv.ParseInt(value, 10, 64)
	if err != nil || minutes < least || minutes > most {
		return fmt.Errorf("want a whole number from %d to %d", least, most)
	}
	p.InstantAccess = &minutes
	return nil
}

// Snapshot returns the document of a snapshot of a disk. The snapshot is in the resource group of the disk unless the class
// names another group. Its region is that of the disk, or that of the cluster if the disk names none.
func (c Cluster) Snapshot(name string, source azure.Resource[compute.Disk], p SnapshotParameters) azure.Resource[compute.Snapshot] {
	tags := map[string]string{tagCreatedBy: createdBy, tagSource: string(source.ID)}
	maps.Copy(tags, p.Tags)
	addTag(tags, tagSnapshot, p.name)
	addTag(tags, tagSnapshotSpace, p.namespace)
	return azure.Resource[compute.Snapshot]{
		ID: c.SnapshotID(name, source.ID, p), Tags: tags,
		Location: cmp.Or(source.Location, c.Location), ExtendedLocation: c.ExtendedLocation,
		Properties: compute.Snapshot{
			Incremental: new(!p.Full),
			CreationData: compute.CreationData{CreateOption: "Copy", SourceResourceID: source.ID,
				InstantAccessDurationMinutes: p.InstantAccess},
			DataAccessAuthMode:  p.DataAccessAuthMode,
			NetworkAccessPolicy: p.NetworkAccessPolicy, PublicNetworkAccess: p.PublicNetworkAccess,
		},
	}
}

// SnapshotID returns the id of a snapshot of a disk.
func (c Cluster) SnapshotID(name string, source azure.ID, p SnapshotParameters) azure.ID {
	group := azure.GroupID(cmp.Or(p.Subscription, source.Subscription()), cmp.Or(p.ResourceGroup, source.Group()))
	return group.Resource(compute.Snapshots, ResourceName(name))
}

// IsIn reports whether a resource is in a region, in either of the two ways to write a region.
func IsIn(location, region string) bool {
	plain := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, " ", "")) }
	return plain(location) == plain(region)
}

// Between returns the id of the snapshot in the region of the disk from which the snapshot remote is copied.
func Between(remote azure.ID) azure.ID {
	return remote.Parent().Resource(compute.Snapshots, ResourceName("local_"+remote.Name()))
}

// CopiesRegion reports whether a snapshot is a copy of one in another region.
func CopiesRegion(s azure.Resource[compute.Snapshot]) bool {
	return strings.EqualFold(s.Properties.CreationData.CreateOption, copyStart)
}

const copyStart = "CopyStart"

// Remote returns the document of the copy of a snapshot in another region.
func Remote(local azure.Resource[compute.Snapshot], id azure.ID, location string) azure.Resource[compute.Snapshot] {
	local.ID, local.Properties.CreationData = id, compute.CreationData{CreateOption: copyStart, SourceResourceID: local.ID}
	local.Location, local.ExtendedLocation = location, nil
	return local
}

// State is a snapshot as CSI shows it.
type State struct {
	Source  azure.ID
	SizeGB  int64
	Created time.Time
	// Copied says that Azure has copied everything. Ready says that disks can be made of the snapshot.
	Copied, Ready bool
	// Percent is how much Azure has copied.
	Percent float64
}

// StateOf returns the state of a snapshot. The snapshot is ready when Azure has copied everything, or when it can be
// restored before that. A copy from another region that does not say how much is copied is not complete.
func StateOf(s azure.Resource[compute.Snapshot]) (State, error) {
	created, err := time.Parse(time.RFC3339Nano, s.Properties.TimeCreated)
	if err != nil {
		return State{}, fmt.Errorf("snapshot %s: timeCreated: %w", s.ID.Name(), err)
	}
	const all = 100
	state := State{Source: SourceOf(s), SizeGB: s.Properties.DiskSizeGB, Created: created, Percent: all}
	if percent := s.Properties.CompletionPercent; percent != nil {
		state.Percent = *percent
	} else if CopiesRegion(s) {
		state.Percent = 0
	}
	made := strings.EqualFold(s.Properties.ProvisioningState, "Succeeded")
	state.Copied = made && state.Percent >= all
	state.Ready = state.Copied || made && s.Properties.CreationData.InstantAccessDurationMinutes != nil
	return state, nil
}

// SourceOf returns the disk of a snapshot. A copy from another region has the disk in a tag.
func SourceOf(s azure.Resource[compute.Snapshot]) azure.ID {
	if CopiesRegion(s) {
		return azure.ID(s.Tags[tagSource])
	}
	return s.Properties.CreationData.SourceResourceID
}
