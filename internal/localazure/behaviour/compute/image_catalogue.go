package compute

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/core/catalog"
)

// level is a level of the catalogue of images or extensions: publishers, offers, SKUs, versions.
type level struct {
	route string // its segments in the request, "offers/{offer}"
	shown string // its segment in ids, "Offers"
}

// branch is one of the two catalogues.
type branch struct {
	levels []level
	// entries are the paths of names in the catalogue, one for each level.
	entries func() [][]string
	// detail returns the properties of an entry of the last level.
	detail func(path []string) behaviour.Object
	// missing is the error for a path that is not in the catalogue.
	missing func(path []string) error
}

var publishers = level{"publishers/{publisher}", "Publishers"}

func imageBranch() branch {
	return branch{
		levels: []level{publishers, {"artifacttypes/vmimage/offers/{offer}", "ArtifactTypes/VMImage/Offers"}, {"skus/{sku}", "Skus"},
			{"versions/{version}", "Versions"}},
		entries: func() [][]string {
			var all [][]string
			for _, i := range catalog.Images() {
				for _, v := range i.Versions {
					all = append(all, []string{i.Publisher, i.Offer, i.SKU, v})
				}
			}
			return all
		},
		detail: imageProperties,
		missing: func(path []string) error {
			return behaviour.Refusal(404, "PlatformImageNotFound",
				"The platform image '%s' is not available. Verify that all fields in the storage profile are correct. For more "+
					"details about storage profile information, please refer to https://aka.ms/storageprofile", strings.Join(path, ":")).
				At("imageReference")
		},
	}
}

func extensionBranch() branch {
	return branch{
		levels: []level{publishers, {"artifacttypes/vmextension/types/{type}", "ArtifactTypes/VMExtension/Types"},
			{"versions/{version}", "Versions"}},
		entries: func() [][]string {
			var all [][]string
			for _, e := range catalog.Extensions() {
				for _, v := range e.Versions {
					all = append(all, []string{e.Publisher, e.Type, v})
				}
			}
			return all
		},
		detail: extensionProperties,
		missing: func(path []string) error {
			return behaviour.Refusal(404, "ArtifactNotFound", "The VM extension with publisher '%s' and type '%s' could not be found.",
				path[0], path[1])
		},
	}
}

// catalogueRoutes answers requests to the catalogues of images and extensions. Every region has the same.
func catalogueRoutes() []behaviour.Route {
	const base = "/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}/"
	read := func(pattern string, do func(*behaviour.Call) (behaviour.Reply, error)) behaviour.Route {
		return behaviour.Route{Method: "GET", Pattern: base + pattern, Do: do, Permission: "Microsoft.Compute/locations/publishers/read"}
	}
	routes := []behaviour.Route{read("publishers", listPublishers)}
	for _, b := range []branch{imageBranch(), extensionBranch()} {
		pattern := publishers.route
		for n, l := range b.levels[1:] {
			collection := pattern + "/" + l.route[:strings.LastIndexByte(l.route, '/')]
			pattern += "/" + l.route
			routes = append(routes, read(collection, func(c *behaviour.Call) (behaviour.Reply, error) { return b.list(c, n+1) }))
		}
		routes = append(routes, read(pattern, b.get))
	}
	return routes
}

// names returns the names of the first levels in a request's path.
func (b branch) names(c *behaviour.Call, levels int) []string {
	var path []string
	for _, l := range b.levels[:levels] {
		path = append(path, c.Param[strings.Trim(l.route[strings.LastIndexByte(l.route, '/')+1:], "{}")])
	}
	return path
}

func within(entry, path []string) bool {
	return slices.EqualFunc(entry[:len(path)], path, strings.EqualFold)
}

// list replies with the entries of a level, as an array without an object around it. Versions with their properties have one.
func (b branch) list(c *behaviour.Call, depth int) (behaviour.Reply, error) {
	region, ok := catalog.FindRegion(c.Param["location"])
	if !ok {
		return behaviour.Reply{}, noLocation(c.Param["location"])
	}
	path, found := b.names(c, depth), map[string][]string{}
	for _, entry := range b.entries() {
		if within(entry, path) {
			found[entry[depth]] = entry[:depth+1]
		}
	}
	if len(found) == 0 {
		return behaviour.Reply{}, behaviour.Refusal(404, "NotFound", "Artifact: %s was not found.", strings.Join(path, ":"))
	}
	list := []any{}
	whole := depth == len(b.levels)-1 && c.Expands("properties")
	for _, name := range sortedNames(c, slices.Collect(maps.Keys(found))) {
		entry := b.entry(c, region, found[name])
		if whole {
			entry["properties"] = b.detail(found[name])
		}
		list = append(list, entry)
	}
	if whole {
		return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": list}}, nil
	}
	return behaviour.Reply{Status: 200, Body: list}, nil
}

// sortedNames sorts names as the request's $orderby says, and keeps the first $top.
func sortedNames(c *behaviour.Call, names []string) []string {
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	if strings.HasSuffix(strings.ToLower(c.Query.Get("$orderby")), " desc") {
		slices.Reverse(names)
	}
	if top, err := strconv.Atoi(c.Query.Get("$top")); err == nil && top >= 0 && top < len(names) {
		names = names[:top]
	}
	return names
}

// entry is a catalogue entry as lists show it.
func (b branch) entry(c *behaviour.Call, region catalog.Region, path []string) behaviour.Object {
	id := []string{"/Subscriptions", c.Param["subscription"], "Providers/Microsoft.Compute/Locations", region.Name}
	for i, name := range path {
		id = append(id, b.levels[i].shown, name)
	}
	return behaviour.Object{"location": region.Name, "name": path[len(path)-1], "id": strings.Join(id, "/")}
}

var versionForm = regexp.MustCompile(`^\d+(\.\d+){1,3}$`)

// get replies with an entry of the last level. Old versions that the catalogue no longer lists are there, too.
func (b branch) get(c *behaviour.Call) (behaviour.Reply, error) {
	region, ok := catalog.FindRegion(c.Param["location"])
	if !ok {
		return behaviour.Reply{}, noLocation(c.Param["location"])
	}
	path := b.names(c, len(b.levels))
	for _, entry := range b.entries() {
		if last := len(path) - 1; within(entry, path[:last]) && versionForm.MatchString(path[last]) {
			path = append(slices.Clone(entry[:last]), path[last])
			doc := b.entry(c, region, path)
			doc["properties"] = b.detail(path)
			return behaviour.Reply{Status: 200, Body: doc}, nil
		}
	}
	return behaviour.Reply{}, b.missing(path)
}

func imageProperties(path []string) behaviour.Object {
	const gib, footer = 1 << 30, 512
	image := catalog.FindImage(path[0], path[1], path[2], "")
	reference := behaviour.Object{}
	for i, field := range []string{"publisher", "offer", "sku"} {
		behaviour.Set(reference, "properties.storageProfile.imageReference."+field, path[i])
	}
	architecture := "x64"
	if strings.Contains(strings.ToLower(path[2]), "arm64") {
		architecture = "Arm64"
	}
	return behaviour.Object{
		"hyperVGeneration": manageddisk.HyperVGeneration(reference), "architecture": architecture,
		"replicaType": "Managed", "replicaCount": 10,
		"disallowed":                   behaviour.Object{"vmDiskType": "None"},
		"automaticOSUpgradeProperties": behaviour.Object{"automaticOSUpgradeSupported": true},
		"imageDeprecationStatus":       behaviour.Object{"imageState": "Active"},
		"features": []any{
			behaviour.Object{"name": "IsAcceleratedNetworkSupported", "value": "True"},
			behaviour.Object{"name": "DiskControllerTypes", "value": strings.Join(image.DiskControllers(), ", ")},
			behaviour.Object{"name": "IsHibernateSupported", "value": "True"},
		},
		"osDiskImage": behaviour.Object{"operatingSystem": image.OS, "sizeInGb": image.DiskGiB,
			"sizeInBytes": image.DiskGiB*gib + footer},
		"dataDiskImages": []any{},
	}
}

func extensionProperties(path []string) behaviour.Object {
	properties := behaviour.Object{"computeRole": "IaaS", "vmScaleSetEnabled": true, "supportsMultipleExtensions": false,
		"rollbackSupported": false, "operatingSystem": "Linux"}
	for _, e := range catalog.Extensions() {
		if within([]string{e.Publisher, e.Type}, path[:2]) {
			properties["operatingSystem"] = e.OS
		}
	}
	return properties
}

func listPublishers(c *behaviour.Call) (behaviour.Reply, error) {
	all := imageBranch()
	extensions := extensionBranch()
	all.entries = func() [][]string { return slices.Concat(imageBranch().entries(), extensions.entries()) }
	return all.list(c, 0)
}
