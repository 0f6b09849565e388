package record

import (
	"context"
	"encoding/json"
	"fmt"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

// Azure deletes old deployments of a resource group, and people delete them, too. So what cannot be made again is in versions of a template
// spec: a resource that stays until the cluster goes.
const (
	// SpecType is the type of template specs.
	SpecType = "Microsoft.Resources/templateSpecs"
	// DefinitionVersion has the definitions of the cluster.
	DefinitionVersion = "definition"
	// ChangeVersion has the change that has begun and not ended.
	ChangeVersion = "change"
)

// Definitions are what a cluster was deployed from.
type Definitions struct {
	// Definition is that of the last deployment that Azure has taken.
	Definition *definition.Definition `json:"definition"`
	// Deployed is that of the last deployment that succeeded.
	Deployed *definition.Definition `json:"deployed,omitempty"`
}

// Definitions are those from which earlier deployments made resources.
func (s State) Definitions() []definition.Definition {
	var all []definition.Definition
	for _, d := range []*definition.Definition{s.Definition, s.Kept.Definition, s.Kept.Deployed} {
		if d != nil {
			all = append(all, *d)
		}
	}
	return all
}

// SpecID is the id of a cluster's template spec.
func SpecID(n naming.Names) azure.ID { return n.Group().Resource(SpecType, n.Deployment()) }

// VersionID is the id of a version of the template spec.
func VersionID(n naming.Names, version string) azure.ID { return SpecID(n).Child("versions", version) }

// specVersion is a version of a template spec. Its template deploys nothing.
type specVersion struct {
	Location   string            `json:"location"`
	Tags       map[string]string `json:"tags"`
	Properties struct {
		Description string         `json:"description"`
		Template    map[string]any `json:"mainTemplate"`
		Metadata    specMetadata   `json:"metadata"`
	} `json:"properties"`
}

// specMetadata has what kaz keeps, as JSON in a text: Azure may change other metadata.
type specMetadata struct {
	Text string `json:"kaz"`
}

// MakeSpec makes the template spec of a cluster.
func (st Store) MakeSpec(ctx context.Context, n naming.Names, c definition.Cluster) error {
	body, err := json.Marshal(map[string]any{"location": c.Spec.Azure.Location, "tags": specTags(n), "properties": map[string]any{
		"description": "What kaz keeps of cluster " + n.Cluster + ". It is not to be deleted before the cluster.",
	}})
	if err != nil {
		return err
	}
	if _, err = azure.Do(ctx, st.Azure, azure.Request{Verb: azure.Put, ID: SpecID(n), Body: body, Unseen: true}); err != nil {
		return fmt.Errorf("template spec that keeps the definition: %w", err)
	}
	return nil
}

func specTags(n naming.Names) map[string]string {
	return map[string]string{naming.ClusterTag: n.Cluster}
}

// Keep writes a version of the template spec.
func (st Store) Keep(ctx context.Context, n naming.Names, c definition.Cluster, version string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	v := specVersion{Location: c.Spec.Azure.Location, Tags: specTags(n)}
	v.Properties.Description = "The " + version + " of cluster " + n.Cluster
	v.Properties.Template = map[string]any{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0", "resources": []any{},
	}
	v.Properties.Metadata.Text = string(text)
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	write := azure.Request{Verb: azure.Put, ID: VersionID(n, version), Body: body, Unseen: true}
	_, err = azure.Do(ctx, st.Azure, write)
	if azure.IsNotFound(err) { // of a cluster that an earlier version of kaz has deployed
		if err = st.MakeSpec(ctx, n, c); err == nil {
			_, err = azure.Do(ctx, st.Azure, write)
		}
	}
	return err
}

// kept reads a version of the template spec. It is false if there is none.
func (st Store) kept(ctx context.Context, n naming.Names, version string, into any) (bool, error) {
	id := VersionID(n, version)
	doc, err := st.Azure.Get(ctx, id)
	if azure.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var v specVersion
	if err := json.Unmarshal(doc, &v); err != nil {
		return false, fmt.Errorf("%s: %w", id, err)
	}
	if err := json.Unmarshal([]byte(v.Properties.Metadata.Text), into); err != nil {
		return false, fmt.Errorf("properties.metadata.kaz of %s: %w", id, err)
	}
	return true, nil
}

// readDefinitions reads the definitions of a cluster, none for one that an earlier version of kaz has deployed.
func (st Store) readDefinitions(ctx context.Context, n naming.Names) (Definitions, error) {
	var d Definitions
	_, err := st.kept(ctx, n, DefinitionVersion, &d)
	return d, err
}

// SameText reports whether two values have the same JSON.
func SameText(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
