// Package release says of which version a program is. Layer L4.
//
// A program that was released has its version from the linker, in the place where
// Kubernetes' libraries have theirs:
//
//	-ldflags "-X k8s.io/component-base/version.gitVersion=v1.36.0"
//
// They print it, send it and measure it. A release has its commit and the date of that in
// gitCommit and buildDate beside it. Of another program the version is the commit that it
// was built from, as far as the Go tool has noted one.
package release

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
)

// Version returns this program's version. The first call also sets it in Kubernetes' libraries.
func Version() string {
	tell()
	return version.Get().GitVersion
}

// Print prints the version if the flag --version asks for it, and reports whether it does. With --version=raw it prints all that
// Kubernetes' libraries know of the program.
func Print(command *cobra.Command) (printed bool, err error) {
	Version()
	flag := command.Flags().Lookup("version")
	if flag == nil {
		return false, nil
	}
	switch flag.Value.String() {
	case "true":
		_, err = fmt.Fprintln(command.OutOrStdout(), Line(command.Name()))
	case "raw":
		_, err = fmt.Fprintf(command.OutOrStdout(), "%#v\n", version.Get())
	default:
		return false, nil
	}
	return true, err
}

// Line returns what a program prints as its version.
func Line(program string) string { return program + " version " + Version() }

// Build says what a program was built from.
type Build struct {
	Version string `json:"version"`
	// Commit and Date are those of the commit; empty if they are not known.
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
}

// Describe returns what this program was built from.
func Describe() Build {
	b := Build{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if stamped := version.Get(); !strings.Contains(stamped.GitCommit, "$") {
		b.Commit, b.Date = stamped.GitCommit, stamped.BuildDate
	} else if info, ok := debug.ReadBuildInfo(); ok {
		said := settings(info)
		b.Commit, b.Date = said["vcs.revision"], said["vcs.time"]
	}
	return b
}

var tell = sync.OnceFunc(func() {
	if stamped := !strings.Contains(version.Get().GitVersion, "$"); stamped {
		return
	}
	info, _ := debug.ReadBuildInfo()
	if err := version.SetDynamicVersion(unreleased(info)); err != nil {
		// Only a version of another format than unreleased returns is rejected.
		panic(fmt.Sprintf("version: %v", err))
	}
})

// unreleased returns the version of a program that is no release.
func unreleased(info *debug.BuildInfo) string {
	const unversioned, shortened = "v0.0.0-unversioned", 12
	if info == nil {
		return unversioned
	}
	said := settings(info)
	revision := said["vcs.revision"]
	switch {
	case revision == "":
		return unversioned
	case said["vcs.modified"] == "true":
		return "v0.0.0-g" + revision[:min(len(revision), shortened)] + "-dirty"
	}
	return "v0.0.0-g" + revision[:min(len(revision), shortened)]
}

// settings returns what the Go tool has noted of a build.
func settings(info *debug.BuildInfo) map[string]string {
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	return said
}
