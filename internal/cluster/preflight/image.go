package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/machinesize"
	"kaz/internal/cluster/definition"
)

// imageChecker checks images.
type imageChecker struct{ *checker }

// imageFacts are what Azure says about an image; a text that is not known is empty.
type imageFacts struct {
	generation   string // of Hyper-V: V1 or V2
	architecture string // x64 or Arm64
	// controllers are the types of disk controllers from which it boots, such as "SCSI, NVMe".
	controllers string
}

// imageProperties are the properties of an image that kaz reads.
type imageProperties struct {
	Generation   string `json:"hyperVGeneration"`
	Architecture string `json:"architecture"`
	OSType       string `json:"osType"`
	Features     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"features"`
	Plan *struct {
		Name string `json:"name"`
	} `json:"plan"`
}

// facts are what an image was read for. An image that names no disk controllers boots from SCSI disks.
func (p imageProperties) facts() imageFacts {
	f := imageFacts{p.Generation, p.Architecture, "SCSI"}
	for _, feature := range p.Features {
		if strings.EqualFold(feature.Name, "DiskControllerTypes") {
			f.controllers = feature.Value
		}
	}
	return f
}

// boots reports whether the image boots from disks of a controller. It does if that is not known.
func (f imageFacts) boots(controller string) bool {
	return f.controllers == "" || strings.Contains(strings.ToLower(f.controllers), strings.ToLower(controller))
}

// check checks the images of machines that are to be made: that Azure has them in the location, and that they fit to the sizes.
func (c imageChecker) check(ctx context.Context) {
	sizes, ok := c.catalog(ctx)
	if !ok {
		return
	}
	read := map[definition.Image]imageFacts{}
	for _, m := range c.groups() {
		if m.count == 0 {
			continue
		}
		facts, known := read[m.image]
		if !known {
			facts = c.image(ctx, m.at+"image", m.image)
			read[m.image] = facts
		}
		s := sizes[strings.ToLower(m.size)]
		generations := strings.Split(s.capability("HyperVGenerations"), ",")
		if facts.generation != "" && generations[0] != "" && !slices.Contains(generations, facts.generation) {
			c.Add("images", "choose an image of generation "+strings.Join(generations, " or ")+", or another size",
				"%simage is of generation %s, and size %s boots %s", m.at, facts.generation, m.size, strings.Join(generations, " and "))
		}
		if arch := s.capability("CpuArchitectureType"); facts.architecture != "" && arch != "" && facts.architecture != arch {
			c.Add("images", "choose an image for "+arch+", or another size", "%simage is for %s, and size %s is %s", m.at,
				facts.architecture, m.size, arch)
		}
		if (onlyNVMe(s) || machinesize.NVMeOnly(m.size)) && !facts.boots("NVMe") {
			c.Add("images", "choose an image with the feature DiskControllerTypes NVMe, or a size with SCSI disks, such as Standard_D4s_v5",
				"%simage boots from disks of the type %s, and size %s has NVMe disks", m.at, facts.controllers, m.size)
		}
	}
}

// onlyNVMe reports whether Azure says that all disks of a size are NVMe devices.
func onlyNVMe(s size) bool {
	controllers := strings.ToLower(s.capability("DiskControllerTypes"))
	return strings.Contains(controllers, "nvme") && !strings.Contains(controllers, "scsi")
}

// image reads an image. It reports what keeps machines from booting it.
func (c imageChecker) image(ctx context.Context, field string, image definition.Image) imageFacts {
	id := azure.ID(image.ID)
	switch {
	case id == "":
		return c.marketplaceImage(ctx, field, image)
	case id.Is("Microsoft.Compute/galleries/images/versions"):
		c.galleryVersion(ctx, field, id)
		return c.galleryImage(ctx, field, id.Parent())
	case id.Is("Microsoft.Compute/galleries/images"):
		return c.galleryImage(ctx, field, id)
	}
	return c.ownImage(ctx, field, id)
}

// read reads a document of an image into v. It reports whether it did, and if not, why.
func (c imageChecker) read(ctx context.Context, field string, id azure.ID, v any) bool {
	doc, err := c.Azure.Get(ctx, id)
	if azure.IsNotFound(err) {
		c.missing(field+".id", id)
		return false
	}
	if err == nil {
		err = json.Unmarshal(doc, v)
	}
	if err != nil {
		c.unread("images", err)
	}
	return err == nil
}

// sameLocation compares locations, which Azure shows as names or as display names.
func sameLocation(a, b string) bool {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "")) }
	return plain(a) == plain(b)
}

// galleryVersion checks that a version of an image is complete, and replicated to the location.
func (c imageChecker) galleryVersion(ctx context.Context, field string, id azure.ID) {
	var v struct {
		Properties struct {
			ProvisioningState string `json:"provisioningState"`
			PublishingProfile struct {
				TargetRegions []struct {
					Name string `json:"name"`
				} `json:"targetRegions"`
			} `json:"publishingProfile"`
		} `json:"properties"`
	}
	if !c.read(ctx, field, id, &v) {
		return
	}
	if state := v.Properties.ProvisioningState; state != "" && state != "Succeeded" {
		c.Add("images", "wait until it is complete, or choose another version", "%s.id: version %s is %s", field, id.Name(), state)
	}
	location := c.p.Definition.Cluster.Spec.Azure.Location
	var regions []string
	for _, r := range v.Properties.PublishingProfile.TargetRegions {
		if sameLocation(r.Name, location) {
			return
		}
		regions = append(regions, r.Name)
	}
	c.Add("images", "replicate the version to "+location+", or choose another location", "%s.id: version %s is in %s, and not in %s", field,
		id.Name(), strings.Join(regions, ", "), location)
}

// galleryImage reads the definition of an image in a gallery.
func (c imageChecker) galleryImage(ctx context.Context, field string, id azure.ID) imageFacts {
	var d struct {
		Properties imageProperties `json:"properties"`
	}
	if !c.read(ctx, field, id, &d) {
		return imageFacts{}
	}
	if d.Properties.OSType != "" && d.Properties.OSType != "Linux" {
		c.Add("images", "choose an image with Linux", "%s.id: the image %s has %s", field, id.Name(), d.Properties.OSType)
	}
	return d.Properties.facts()
}

// ownImage reads a managed image, which is in one location.
func (c imageChecker) ownImage(ctx context.Context, field string, id azure.ID) imageFacts {
	var i struct {
		Location   string          `json:"location"`
		Properties imageProperties `json:"properties"`
	}
	if !c.read(ctx, field, id, &i) {
		return imageFacts{}
	}
	if location := c.p.Definition.Cluster.Spec.Azure.Location; i.Location != "" && !sameLocation(i.Location, location) {
		c.Add("images", "copy the image to "+location+", or choose another location", "%s.id: the image %s is in %s, and not in %s", field,
			id.Name(), i.Location, location)
	}
	return i.Properties.facts()
}

// marketplaceImage reads an image of the marketplace.
func (c imageChecker) marketplaceImage(ctx context.Context, field string, image definition.Image) imageFacts {
	location := c.p.Definition.Cluster.Spec.Azure.Location
	sku := c.subscription() + azure.ID(fmt.Sprintf("/providers/Microsoft.Compute/locations/%s/publishers/%s/artifacttypes/vmimage"+
		"/offers/%s/skus/%s", location, image.Publisher, image.Offer, image.SKU))
	version, err := c.versionOf(ctx, sku, image.Version)
	var doc azure.Document
	if err == nil {
		doc, err = c.Azure.Get(ctx, sku+azure.ID("/versions/"+version))
	}
	name := strings.Join([]string{image.Publisher, image.Offer, image.SKU, image.Version}, ":")
	var i struct {
		Properties imageProperties `json:"properties"`
	}
	if err == nil {
		err = json.Unmarshal(doc, &i)
	}
	switch {
	case azure.IsNotFound(err):
		c.Add("images", fmt.Sprintf("choose one of: az vm image list --all --location %s --publisher %s", location, image.Publisher),
			"%s: the marketplace has no image %s in %s", field, name, location)
	case err != nil:
		c.unread("images", err)
	case i.Properties.Plan != nil:
		c.Add("images", "choose an image without a plan, or copy it into a gallery and give its id",
			"%s: the image %s is sold with the plan %s, and kaz makes no machines with a plan", field, name, i.Properties.Plan.Name)
	}
	if err != nil {
		return imageFacts{}
	}
	return i.Properties.facts()
}

// versionOf is a version of an image of the marketplace: the one that is asked for, or the latest.
func (c imageChecker) versionOf(ctx context.Context, sku azure.ID, version string) (string, error) {
	if version != "latest" {
		return version, nil
	}
	docs, err := c.Azure.List(ctx, azure.Query{Scope: sku, Type: sku.Type() + "/versions"})
	if err != nil {
		return "", err
	}
	if len(docs) == 0 {
		return "", &azure.Error{Kind: azure.NotFound, Op: "LIST versions", ID: sku}
	}
	return docs[len(docs)-1].ID().Name(), nil // they come in order
}
