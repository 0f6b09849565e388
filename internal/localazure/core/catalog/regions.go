// Package catalog has data about Azure as a whole: regions and zones, sizes of virtual machines, images and latencies.
// The data are embedded as text. Layer L2: the standard library only.
package catalog

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Region is a region of Azure.
type Region struct {
	Name     string // "eastus2"
	Display  string // "East US 2"
	Group    string // of geographies: "US"
	Place    string // where it is: "Virginia"
	Pair     string // name of the paired region, "" for none
	Category string // "Recommended" or "Other"
	// Latitude and Longitude are in degrees, as text.
	Latitude, Longitude string
	// Zones are its availability zones, "1" and so on, empty for a region without zones.
	Zones []string
}

//go:embed regions.csv
var regionsCSV string

var regions = sync.OnceValue(func() table[Region] {
	return load("regions.csv", regionsCSV, func(f fields) (string, Region) {
		r := Region{
			Name: f.text("name"), Display: f.text("display"), Group: f.text("group"), Place: f.text("place"),
			Pair: f.text("pair"), Category: f.text("category"), Latitude: f.text("latitude"), Longitude: f.text("longitude"),
		}
		for zone := range f.whole("zones") {
			r.Zones = append(r.Zones, strconv.Itoa(zone+1))
		}
		return r.Name, r
	})
})

// Regions returns all regions, the recommended regions of the public cloud first. Callers must not change the slice.
func Regions() []Region { return regions().all }

// FindRegion returns a region by its name or display name, in any case: "East US".
func FindRegion(name string) (Region, bool) {
	return regions().find(strings.ReplaceAll(name, " ", ""))
}

// table is a parsed list with an index by lower-case name.
type table[T any] struct {
	all   []T
	index map[string]int
}

func (t table[T]) find(name string) (T, bool) {
	i, ok := t.index[strings.ToLower(name)]
	if !ok {
		var none T
		return none, false
	}
	return t.all[i], true
}

// fields are the values of one line of an embedded file.
type fields struct {
	file    string
	columns map[string]int
	record  []string
}

func (f fields) text(column string) string {
	i, ok := f.columns[column]
	if !ok {
		panic(fmt.Sprintf("%s has no column %s", f.file, column))
	}
	return f.record[i]
}

func (f fields) whole(column string) int {
	n, err := strconv.Atoi(f.text(column))
	if err != nil {
		panic(fmt.Sprintf("%s: %s: %v", f.file, column, err))
	}
	return n
}

// load parses an embedded file with a header line. It panics on a mistake in the file, because the tests load every
// file.
func load[T any](file, text string, parse func(fields) (string, T)) table[T] {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("%s: %v", file, err))
	}
	columns := map[string]int{}
	for i, name := range records[0] {
		columns[name] = i
	}
	t := table[T]{index: map[string]int{}}
	for _, record := range records[1:] {
		name, value := parse(fields{file, columns, record})
		t.index[strings.ToLower(name)] = len(t.all)
		t.all = append(t.all, value)
	}
	return t
}
