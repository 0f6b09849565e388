package key

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Stranger is an annotation that is like those that kaz serves, and is none of them.
type Stranger struct {
	Name, Value string
	Nearest     string // a key that may be meant, "" for none
	Port        string // where the key is known, and this is no port of the Service
}

// Strangers are the annotations of a Service that nobody heeds, in the order of their names.
// ports are those that a port's key may name.
func Strangers(annotations map[string]string, ports []int32) []Stranger {
	var all []Stranger
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if s, strange := strangerIn(name, ports); strange {
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

// retired are keys that meant something before: to load balancers of the SKU Basic, and to
// security rules before version 1.29 of the Azure cloud provider.
var retired = []string{service + "azure-load-balancer-mode", service + "azure-shared-securityrule"}

// served are the keys that are served, with PORT in those of ports, sorted.
var served = func() []string {
	var names []string
	for _, e := range ServiceEntries() {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}()

// isKnown reports whether a key is served, or was once. The one that leads to one of several
// load balancers is read in any case.
func isKnown(name string) bool {
	_, is := slices.BinarySearch(served, name)
	return is || slices.Contains(retired, name) || strings.EqualFold(name, Balancers.Name)
}

func strangerIn(name string, ports []int32) (s Stranger, strange bool) {
	rest, isPorts := strings.CutPrefix(name, ofPort)
	switch {
	case isKnown(name):
		return s, false
	case !isPorts && !strings.HasPrefix(name, ofAzure):
		nearest := nearestAbroad(name)
		return Stranger{Name: name, Nearest: nearest}, nearest != ""
	case !isPorts:
		return Stranger{Name: name, Nearest: nearestTo(name, served)}, true
	}
	port, rest, _ := strings.Cut(rest, "_")
	pattern := ofPort + portInName + "_" + rest
	if !isKnown(pattern) {
		return Stranger{Name: name, Nearest: strings.Replace(nearestTo(pattern, served), portInName, port, 1)}, true
	}
	is := func(p int32) bool { return strconv.Itoa(int(p)) == port }
	return Stranger{Name: name, Port: port}, !slices.ContainsFunc(ports, is)
}

// nearestAbroad is the key that may be meant by a name which begins like none that is served:
// it is in another case, or in another domain or none. Most such names are somebody else's.
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

// nearestTo is the known name that is most like a name, "" when none is much like it.
func nearestTo(name string, known []string) string {
	const most = 3 // letters that are wrong
	best, wrong := "", most+1
	for _, candidate := range known {
		if n := edits(name, candidate, wrong); n < wrong {
			best, wrong = candidate, n
		}
	}
	return best
}

// edits is how many letters have to be put in, taken out or changed to make one text of
// another, or limit where it is no less.
func edits(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		least, before := i+1, row[0] // of the row, and what stands above to the left
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
			least = min(least, row[j+1])
		}
		if least >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}
