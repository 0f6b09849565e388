package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// archive is an archive of a release.
type archive struct {
	folder   string // its name without suffix, and the folder in it
	zip      bool
	platform string
	programs []string
	prebuilt bool // it has what local clusters need
}

func (a archive) file() string {
	if a.zip {
		return a.folder + ".zip"
	}
	return a.folder + ".tar.gz"
}

// allPlatforms returns the platforms of a release.
func allPlatforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
}

// components returns the programs that run in clusters and on their machines.
func components() []string {
	return []string{
		"acr-credential-provider", "application-gateway-controller", "azuredisk-csi-driver", "azurefile-csi-driver",
		"cloud-controller-manager", "cloud-node-manager", "cluster-autoscaler-provider", "external-dns-webhook", "health-probe-proxy",
	}
}

// imagePrograms returns the programs that need no base image of a distribution. The CSI drivers run programs of one.
func imagePrograms() []string {
	return slices.DeleteFunc(append(components(), "kaz"), func(name string) bool {
		return strings.HasSuffix(name, "-csi-driver") || name == "acr-credential-provider"
	})
}

// programsOf returns the programs of a platform.
func programsOf(platform string) []string {
	switch system, _, _ := strings.Cut(platform, "/"); system {
	case "linux":
		return append([]string{"kaz"}, components()...)
	case "windows": // the programs of nodes
		return []string{"acr-credential-provider", "azuredisk-csi-driver", "cloud-node-manager", "health-probe-proxy"}
	default:
		return []string{"kaz"}
	}
}

// archivesOf returns the archives of a release. A version in a file name has no v, as usual.
func archivesOf(version string, platforms []string) []archive {
	var all []archive
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		name := func(what string) string {
			return strings.Join([]string{what, strings.TrimPrefix(version, "v"), system, arch}, "_")
		}
		if system == "windows" {
			all = append(all, archive{folder: name("kaz-node"), zip: true, platform: p, programs: programsOf(p)})
			continue
		}
		all = append(all, archive{folder: name("kaz"), platform: p, programs: []string{"kaz"}})
		if system == "linux" {
			all = append(all,
				archive{folder: name("kaz-components"), platform: p, programs: components()},
				archive{folder: name("kaz-local"), platform: p, programs: []string{"kaz"}, prebuilt: true})
		}
	}
	return all
}

// linuxPlatforms returns those platforms that have images and packages.
func linuxPlatforms(platforms []string) []string {
	return slices.DeleteFunc(slices.Clone(platforms), func(p string) bool { return !strings.HasPrefix(p, "linux/") })
}

// versions are semantic versions with a v. A pre-release has no hyphen in it, which packages of Debian give a meaning.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`)

func checkVersion(version string) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("-version %q: want a semantic version such as v0.1.0 or v0.1.0-rc.1", version)
	}
	return nil
}

func checkPlatforms(platforms []string) error {
	var problems []error
	for i, p := range platforms {
		if !slices.Contains(allPlatforms(), p) || slices.Contains(platforms[:i], p) {
			problems = append(problems, fmt.Errorf("-platforms: %q: want some of %s, each once", p, strings.Join(allPlatforms(), ", ")))
		}
	}
	return errors.Join(problems...)
}

// programFile returns the name of a program's file.
func programFile(program, platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return program + ".exe"
	}
	return path.Base(program)
}
