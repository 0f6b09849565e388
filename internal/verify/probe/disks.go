package probe

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

func diskProbes() []Probe {
	return []Probe{
		{
			Name: "disk-preconditions", Area: "disks", Minutes: 1, Cents: 1, Rights: all(diskType), Run: diskPreconditions,
			Tries: "PUT a disk that exists with If-None-Match: * and with a wrong If-Match; want that both change it",
		},
	}
}

// disk is an empty disk of 4 GiB with a tag.
func disk(b *bench.Bench, tag string) object {
	d := sku("Standard_LRS", at(b, object{"diskSizeGB": 4, "creationData": object{"createOption": "Empty"}}))
	d["tags"] = object{"step": tag}
	return d
}

func diskPreconditions(ctx context.Context, b *bench.Bench) {
	id := b.ID(diskType, "disk")
	b.Make(ctx, id, disk(b, "one"))
	a := b.Try(ctx, azure.Put, id, disk(b, "two"), bench.IfNew())
	b.Agree(!a.Failed && bench.Text(b.Get(ctx, id), "tags.step") == "two", "PUT with If-None-Match: *: %s", a)
	a = b.Try(ctx, azure.Put, id, disk(b, "three"), bench.IfMatch(`"wrong"`))
	b.Agree(!a.Failed && bench.Text(b.Get(ctx, id), "tags.step") == "three", `PUT with If-Match: "wrong": %s`, a)
}
