package pullcredential

import (
	"strconv"
	"strings"

	"kaz/internal/azure/registry"
)

// hostOf returns the registry of an image: everything before the first slash.
func hostOf(image string) string {
	host, _, _ := strings.Cut(image, "/")
	return host
}

// isRegistry reports whether a host, with or without a port, is an Azure registry: a name in a domain
// of Azure's clouds or in suffix. It compares the whole name, because foo.azurecr.io.example.com
// belongs to another owner.
func isRegistry(host, suffix string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && !isPort(port) || !isDomain(name) {
		return false
	}
	name = strings.ToLower(name)
	for _, domain := range append(registry.Domains(), strings.ToLower(strings.Trim(suffix, "."))) {
		if rest, ok := strings.CutSuffix(name, "."+domain); ok && domain != "" && rest != "" {
			return true
		}
	}
	return false
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && text[0] != '+'
}

// isDomain reports whether a text is a host name of letters, digits and hyphens.
func isDomain(name string) bool {
	const longestName, longestPart = 253, 63
	if len(name) > longestName {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || len(part) > longestPart || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for _, c := range []byte(part) {
			if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' {
				continue
			}
			return false
		}
	}
	return true
}
