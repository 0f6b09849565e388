package change

// The actions about the objects of add-ons and extensions, which come after all others.
const (
	ApplyManifests Action = "apply the manifests of add-ons and extensions"
	PruneObjects   Action = "delete what no manifest has any more:"
)
