package bundle

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"kaz/internal/cluster/definition"
)

// kazFolder is the end of repositories with the images of kaz itself.
const kazFolder = "kaz"

// Mirror says where the contents of a bundle are in a closed network.
type Mirror struct {
	// Registry is a registry with a path, and Files the URL of a web server with the folder of [Bundle.Unpack].
	Registry, Files string
}

// Layer is a layer for the definition of a cluster that takes all from a mirror.
func (m Manifest) Layer(cluster string, mirror Mirror) ([]byte, error) {
	url := strings.TrimSuffix(mirror.Files, "/")
	kubernetes := map[string]any{"imageRepository": mirror.Registry}
	sums := map[string]string{}
	var packages []map[string]string
	for _, f := range m.Files {
		sum := strings.TrimPrefix(f.Digest, "sha256:")
		switch {
		case definition.IsArtifact(f.Path):
			sums[f.Path] = sum
		case strings.HasPrefix(f.Path, PackageFolder):
			packages = append(packages, map[string]string{"url": url + "/" + f.Path, "sha256": sum})
		}
	}
	if len(sums) > 0 {
		kubernetes["artifactMirror"], kubernetes["artifactChecksums"] = url, sums
	}
	spec := map[string]any{"kubernetes": kubernetes}
	if len(packages) > 0 {
		spec["machines"] = map[string]any{"packages": packages}
	}
	if repository, tag := m.ownImages(mirror.Registry); repository != "" {
		spec["addons"] = map[string]any{"repository": repository, "tag": tag}
	}
	return yaml.Marshal(map[string]any{"apiVersion": definition.APIVersion, "kind": "Cluster",
		"metadata": map[string]any{"name": cluster}, "spec": spec})
}

// ownImages are the repository and the tag of kaz's images in a mirror, "" if the bundle has none.
func (m Manifest) ownImages(registry string) (repository, tag string) {
	for _, i := range m.Images {
		to, err := TargetName(registry, i.Name)
		if err != nil {
			continue
		}
		name, version := cutTag(to)
		if path.Base(name) == "cloud-controller-manager" && path.Base(path.Dir(name)) == kazFolder {
			return path.Dir(name), version
		}
	}
	return "", ""
}

// cutTag cuts the name of an image before its tag.
func cutTag(image string) (repository, tag string) {
	at := strings.LastIndex(image, ":")
	if at < strings.LastIndex(image, "/") {
		return image, ""
	}
	return image[:at], image[at+1:]
}

// Values are values for a chart of the bundle, with which its images come from a registry: those of the chart that name a repository of
// the bundle's images, or a folder of such repositories.
func (b *Bundle) Values(name, registry string) ([]byte, error) {
	var names []string
	for _, c := range b.Manifest.Charts {
		names = append(names, c.Name)
		if c.Name != name {
			continue
		}
		r, _, err := b.openBlob(c.Archive)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(r, mostChart+1))
		if err != nil {
			return nil, err
		}
		files, err := archive.LoadArchiveFiles(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		loaded, err := loader.LoadFiles(files)
		if err != nil {
			return nil, err
		}
		return yaml.Marshal(mirrored(loaded.Values, b.Manifest.repositories(registry)))
	}
	return nil, fmt.Errorf("the bundle has no chart %q: want one of %s", name, strings.Join(names, ", "))
}

// repositories are the repositories of images and their folders, each with its place in a mirror.
func (m Manifest) repositories(registry string) map[string]string {
	all := map[string]string{}
	for _, i := range m.Images {
		from, _ := cutTag(i.Name)
		to, err := TargetName(registry, i.Name)
		if err != nil {
			continue
		}
		to, _ = cutTag(to)
		all[from] = to
		// A folder is that of a value such as imageRepository, if images are directly in it.
		if folder := path.Dir(from); strings.Contains(folder, "/") {
			all[folder] = path.Dir(to)
		}
	}
	return all
}

// repositoryKeys are the names of values with a repository of images, or a folder of repositories, in charts of kaz and of others.
var repositoryKeys = []string{"repository", "imageRepository", "baseRepo"}

// mirrored are the values that name a repository, with its place in a mirror.
func mirrored(values map[string]any, places map[string]string) map[string]any {
	changed := map[string]any{}
	for key, value := range values {
		switch v := value.(type) {
		case map[string]any:
			if inner := mirrored(v, places); len(inner) > 0 {
				changed[key] = inner
			}
		case string:
			if to, ok := places[v]; ok && slices.Contains(repositoryKeys, key) {
				changed[key] = to
			}
		}
	}
	return changed
}
