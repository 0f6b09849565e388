package key

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/key/spelling"
)

// Unknown is an annotation that looks like an annotation of this package and has no effect.
type Unknown struct {
	Name, Value string
	Nearest     string // the key that may be meant, "" for none
	Port        string // set if the key is known but the Service does not have this port
}

// Unknowns returns the annotations of a Service that have no effect, sorted by name. ports are the
// ports of the Service.
func Unknowns(annotations map[string]string, ports []int32) []Unknown {
	var all []Unknown
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if s, unknown := unknownIn(name, ports); unknown {
			s.Value = annotations[name]
			all = append(all, s)
		}
	}
	return all
}

const (
	ofAzure = service + "azure-"
	ofPort  = service + "port_"
)

// retired are annotations that had a meaning: for load balancers of SKU Basic, and for security rules
// before version 1.29 of the Azure cloud provider.
var retired = []string{service + "azure-load-balancer-mode", service + "azure-shared-securityrule"}

// served are all supported annotations, sorted. Annotations of ports contain PORT.
var served = func() []string {
	var names []string
	for _, e := range ServiceEntries() {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}()

// isKnown reports whether an annotation is or was supported. The annotation that selects load
// balancers is read in any case.
func isKnown(name string) bool {
	_, is := slices.BinarySearch(served, name)
	return is || slices.Contains(retired, name) || strings.EqualFold(name, Balancers.Name)
}

func unknownIn(name string, ports []int32) (s Unknown, unknown bool) {
	rest, isPorts := strings.CutPrefix(name, ofPort)
	switch {
	case isKnown(name):
		return s, false
	case !isPorts && !strings.HasPrefix(name, ofAzure):
		nearest := nearestAbroad(name)
		return Unknown{Name: name, Nearest: nearest}, nearest != ""
	case !isPorts:
		return Unknown{Name: name, Nearest: nearestTo(name, served)}, true
	}
	port, rest, _ := strings.Cut(rest, "_")
	pattern := ofPort + portInName + "_" + rest
	if !isKnown(pattern) {
		return Unknown{Name: name, Nearest: strings.Replace(nearestTo(pattern, served), portInName, port, 1)}, true
	}
	is := func(p int32) bool { return strconv.Itoa(int(p)) == port }
	return Unknown{Name: name, Port: port}, !slices.ContainsFunc(ports, is)
}

// nearestAbroad returns the supported annotation that a name with another prefix may mean. The name
// differs in case or domain, or has no domain.
func nearestAbroad(name string) string {
	if lower := strings.ToLower(name); strings.HasPrefix(lower, service) {
		return nearestTo(lower, served)
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	i := slices.IndexFunc(served, func(key string) bool {
		return strings.HasPrefix(key, ofAzure) && strings.EqualFold(strings.TrimPrefix(key, service), last)
	})
	if i < 0 {
		return ""
	}
	return served[i]
}

// nearestTo returns the known name that is most similar to name, "" if none is similar.
func nearestTo(name string, known []string) string {
	const most = 3 // wrong characters
	return spelling.Nearest(name, known, most)
}
