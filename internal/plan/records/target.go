package records

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure/network"
)

// What Azure takes, as its page on limits says.
const (
	mostRecords   = 20
	longestString = 255        // bytes of a string of a TXT record
	longestTXT    = 4096       // bytes of all strings of a TXT record set
	longestTTL    = 2147483647 // seconds
)

// recordType converts between the targets of a type in ExternalDNS and its records in Azure.
type recordType struct {
	name string
	// public and private are the names of the property in the two kinds of zones, "" where Azure has no such records.
	public, private string
	// one is true for sets of exactly one record.
	one bool
	// parse returns the record of a target. The target is not changed.
	parse func(target string) (any, error)
	// targets returns the targets of the records in a document.
	targets func(r network.RecordSet) []string
}

// types are the types of Azure without SOA, which belongs to Azure.
var types = []recordType{
	{name: "A", public: "ARecords", private: "aRecords", parse: parseA, targets: func(r network.RecordSet) []string {
		return each(r.A, func(a network.ARecord) string { return a.Address })
	}},
	{name: "AAAA", public: "AAAARecords", private: "aaaaRecords", parse: parseAAAA, targets: func(r network.RecordSet) []string {
		return each(r.AAAA, func(a network.AAAARecord) string { return a.Address })
	}},
	{name: "CNAME", public: "CNAMERecord", private: "cnameRecord", one: true, parse: parseCNAME, targets: cnameTargets},
	{name: "MX", public: "MXRecords", private: "mxRecords", parse: parseMX, targets: func(r network.RecordSet) []string {
		return each(r.MX, func(m network.MXRecord) string { return fmt.Sprintf("%d %s", m.Preference, m.Exchange) })
	}},
	{name: "NS", public: "NSRecords", parse: parseNS, targets: func(r network.RecordSet) []string {
		return each(r.NS, func(n network.NSRecord) string { return n.Name })
	}},
	{name: "PTR", public: "PTRRecords", private: "ptrRecords", parse: parsePTR, targets: func(r network.RecordSet) []string {
		return each(r.PTR, func(p network.PTRRecord) string { return p.Name })
	}},
	{name: "SRV", public: "SRVRecords", private: "srvRecords", parse: parseSRV, targets: func(r network.RecordSet) []string {
		return each(r.SRV, func(s network.SRVRecord) string {
			return fmt.Sprintf("%d %d %d %s", s.Priority, s.Weight, s.Port, s.Target)
		})
	}},
	{name: "CAA", public: "caaRecords", parse: parseCAA, targets: func(r network.RecordSet) []string {
		return each(r.CAA, showCAA)
	}},
	{name: "TXT", public: "TXTRecords", private: "txtRecords", parse: parseTXT, targets: func(r network.RecordSet) []string {
		return each(r.TXT, func(t network.TXTRecord) string { return strings.Join(t.Value, "") })
	}},
}

func each[T any](records []T, target func(T) string) []string {
	var all []string
	for _, r := range records {
		all = append(all, target(r))
	}
	return all
}

// typeNamed returns a type, and false for one that Azure does not have in such zones.
func typeNamed(name string, private bool) (recordType, bool) {
	i := slices.IndexFunc(types, func(r recordType) bool { return r.name == name })
	if i < 0 || private && types[i].private == "" {
		return recordType{}, false
	}
	return types[i], true
}

// canonical returns the one spelling of a target that ExternalDNS gets and sends. What cannot be parsed is returned as it is.
func canonical(recordType, target string) string {
	switch recordType {
	case "TXT":
		return target
	case "CAA":
		if r, err := parseCAA(target); err == nil {
			return showCAA(r.(network.CAARecord))
		}
		return target
	case "A", "AAAA":
		if a, err := netip.ParseAddr(target); err == nil {
			return a.String()
		}
		return target
	case "MX", "SRV":
		target = strings.Join(strings.Fields(target), " ")
	}
	return strings.TrimSuffix(target, ".")
}

// canonicalAll returns targets in their one spelling, without repetitions.
func canonicalAll(recordType string, targets []string) []string {
	var all []string
	for _, target := range targets {
		if target = canonical(recordType, target); !slices.Contains(all, target) {
			all = append(all, target)
		}
	}
	return all
}

// sameTargets compares targets without order.
func sameTargets(recordType string, a, b []string) bool {
	x, y := canonicalAll(recordType, a), canonicalAll(recordType, b)
	return slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
}

func cnameTargets(r network.RecordSet) []string {
	if r.CNAME == nil || r.CNAME.Name == "" {
		return nil
	}
	return []string{r.CNAME.Name}
}

func parseA(target string) (any, error) {
	a, err := netip.ParseAddr(target)
	if err != nil || !a.Is4() {
		return nil, fmt.Errorf("%q: must be an IPv4 address", target)
	}
	return network.ARecord{Address: a.String()}, nil
}

func parseAAAA(target string) (any, error) {
	a, err := netip.ParseAddr(target)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return nil, fmt.Errorf("%q: must be an IPv6 address", target)
	}
	return network.AAAARecord{Address: a.String()}, nil
}

func parseName(target string) (string, error) {
	if target == "" || len(target) > longestName || strings.ContainsAny(target, " \t\r\n\"/") {
		return "", fmt.Errorf("%q: must be a DNS name", target)
	}
	return target, nil
}

func parseCNAME(target string) (any, error) {
	name, err := parseName(target)
	return network.CNAMERecord{Name: name}, err
}

func parseNS(target string) (any, error) {
	name, err := parseName(target)
	return network.NSRecord{Name: name}, err
}

func parsePTR(target string) (any, error) {
	name, err := parseName(target)
	return network.PTRRecord{Name: name}, err
}

// parseNumbers reads the numbers of 16 bits before a name.
func parseNumbers(target, form string, count int) ([]int32, string, error) {
	fields := strings.Fields(target)
	if len(fields) != count+1 {
		return nil, "", fmt.Errorf("%q: must be %s", target, form)
	}
	numbers := make([]int32, count)
	for i := range numbers {
		n, err := strconv.ParseUint(fields[i], 10, 16)
		if err != nil {
			return nil, "", fmt.Errorf("%q: must be %s", target, form)
		}
		numbers[i] = int32(n)
	}
	name, err := parseName(fields[count])
	return numbers, name, err
}

func parseMX(target string) (any, error) {
	n, name, err := parseNumbers(target, "PREFERENCE NAME", 1)
	if err != nil {
		return nil, err
	}
	return network.MXRecord{Preference: n[0], Exchange: name}, nil
}

func parseSRV(target string) (any, error) {
	n, name, err := parseNumbers(target, "PRIORITY WEIGHT PORT NAME", 3)
	if err != nil {
		return nil, err
	}
	return network.SRVRecord{Priority: n[0], Weight: n[1], Port: n[2], Target: name}, nil
}

func parseCAA(target string) (any, error) {
	fields := strings.SplitN(target, " ", 3)
	if len(fields) != 3 {
		return nil, fmt.Errorf("%q: must be FLAGS TAG \"VALUE\"", target)
	}
	flags, err := strconv.ParseUint(fields[0], 10, 8)
	value := fields[2]
	if unquoted, wrong := strconv.Unquote(value); wrong == nil {
		value = unquoted
	}
	if err != nil || fields[1] == "" {
		return nil, fmt.Errorf("%q: must be FLAGS TAG \"VALUE\"", target)
	}
	return network.CAARecord{Flags: int32(flags), Tag: fields[1], Value: value}, nil
}

func showCAA(c network.CAARecord) string { return fmt.Sprintf("%d %s %q", c.Flags, c.Tag, c.Value) }

// parseTXT splits a text into strings. The quotes around it are a part of the text: the provider that ExternalDNS has for Azure stores
// them, and both must read what the other wrote.
func parseTXT(target string) (any, error) {
	if target == "" {
		return nil, errors.New("the text is empty")
	}
	var r network.TXTRecord
	for len(target) > longestString {
		end := longestString
		for end > 0 && target[end]&0xC0 == 0x80 { // within a character of several bytes
			end--
		}
		end = cmp.Or(end, longestString)
		r.Value, target = append(r.Value, target[:end]), target[end:]
	}
	r.Value = append(r.Value, target)
	return r, nil
}
