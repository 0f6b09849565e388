package pullcredential

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mirror says that images of one registry are pulled from another.
type Mirror struct{ Source, Destination string }

// ParseMirrors parses "mcr.microsoft.com:xxx.azurecr.io,...". Both names may have a port, as in
// "from:5000:to:5000", and a path. Invalid entries are left out and returned as errors; the others
// remain usable.
func ParseMirrors(text string) ([]Mirror, []error) {
	var mirrors []Mirror
	var problems []error
	for entry := range strings.SplitSeq(strings.Join(strings.Fields(text), ""), ",") {
		if entry == "" {
			continue
		}
		m, ok := parseMirror(entry)
		if !ok {
			problems = append(problems,
				fmt.Errorf("registry mirror %q: want SOURCE:DESTINATION such as mcr.microsoft.com:example.azurecr.io", shorten(entry)))
			continue
		}
		mirrors = append(mirrors, m)
	}
	// The longest source is the most specific.
	slices.SortStableFunc(mirrors, func(a, b Mirror) int { return cmp.Compare(len(b.Source), len(a.Source)) })
	return mirrors, problems
}

func parseMirror(entry string) (Mirror, bool) {
	var names []string
	for part := range strings.SplitSeq(entry, ":") {
		port, _, _ := strings.Cut(part, "/")
		if last := len(names) - 1; last >= 0 && isPort(port) && !strings.Contains(names[last], ":") && !strings.Contains(names[last], "/") {
			names[last] += ":" + part
			continue
		}
		names = append(names, strings.TrimSuffix(part, "/"))
	}
	if len(names) != 2 || !isPlace(names[0]) || !isPlace(names[1]) {
		return Mirror{}, false
	}
	return Mirror{names[0], names[1]}, true
}

// isPlace reports whether a text begins with a host name.
func isPlace(text string) bool {
	name, _, _ := strings.Cut(hostOf(text), ":")
	return isDomain(name)
}

// through returns the image in the mirror if the image's registry is mirrored.
func through(mirrors []Mirror, image string) (string, bool) {
	for _, m := range mirrors {
		if rest, ok := m.rest(image); ok {
			return m.Destination + rest, true
		}
	}
	return image, false
}

// rest returns the part of an image after the source. A source ends where a name ends:
// mcr.microsoft.com does not match mcr.microsoft.com.example.com/x.
func (m Mirror) rest(image string) (string, bool) {
	rest, ok := strings.CutPrefix(image, m.Source)
	if !ok || rest == "" || rest[0] == '/' {
		return rest, ok
	}
	// A colon after a path starts a tag; after a host it would start another port.
	return rest, strings.Contains(m.Source, "/") && (rest[0] == ':' || rest[0] == '@')
}
