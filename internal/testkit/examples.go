package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// Example is a manifest of docs/example-manifests/service. The comment at its top has a title, a text, and lines for tests.
// A line "Given:" names what must exist in Azure before. A line "Then:" names what must exist when the Services are served.
type Example struct {
	Name        string // file name without .yaml
	Title, Text string
	Given, Then []string
	Manifest    string // without the comment
	Services    []*corev1.Service
}

// Examples reads the manifests of a folder.
func Examples(t testing.TB, dir string) []Example {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples in %s: %v", dir, err)
	}
	var all []Example
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e := readExample(strings.TrimSuffix(filepath.Base(file), ".yaml"), string(text))
		for one := range strings.SplitSeq(e.Manifest, "---\n") {
			s := &corev1.Service{}
			if err := yaml.UnmarshalStrict([]byte(one), s); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if s.Namespace == "" {
				s.Namespace = corev1.NamespaceDefault
			}
			e.Services = append(e.Services, s)
		}
		all = append(all, e)
	}
	return all
}

func readExample(name, text string) Example {
	e := Example{Name: name}
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			e.Manifest += line
			continue
		}
		comment = strings.TrimSpace(comment)
		given, isGiven := strings.CutPrefix(comment, "Given: ")
		then, isThen := strings.CutPrefix(comment, "Then: ")
		switch {
		case isGiven:
			e.Given = append(e.Given, given)
		case isThen:
			e.Then = append(e.Then, then)
		case e.Title == "":
			e.Title = comment
		default:
			e.Text = strings.TrimSpace(e.Text + " " + comment)
		}
	}
	return e
}

// String returns the content of the example's file.
func (e Example) String() string {
	var b strings.Builder
	b.WriteString("# " + e.Title + "\n#\n")
	const width = 100
	line := "#"
	for word := range strings.FieldsSeq(e.Text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	for _, g := range e.Given {
		b.WriteString("# Given: " + g + "\n")
	}
	for _, then := range e.Then {
		b.WriteString("# Then: " + then + "\n")
	}
	return b.String() + e.Manifest
}

// DualStack reports whether an example needs a cluster with both IP families.
func (e Example) DualStack() bool { return slices.Contains(e.Given, "dual stack") }

// Client has the methods that prepare Azure for examples.
type Client interface {
	azure.Reader
	azure.Writer
}

// Prepare creates in Azure what examples need.
func Prepare(ctx context.Context, d Client, group azure.ID, vnet azure.ID, given []string) error {
	for _, g := range given {
		if what, name, _ := parseGiven(g); what == "subnet" {
			if err := addSubnet(ctx, d, vnet, name); err != nil {
				return err
			}
			continue
		}
		needs, err := needsOf(g, group, vnet)
		if err != nil {
			return err
		}
		for _, n := range needs {
			if err := put(ctx, d, n.id, n.body); err != nil {
				return err
			}
		}
	}
	return nil
}

// Commands returns the shell commands that create what an example needs in the Azure of kaz local up.
func (e Example) Commands(t testing.TB, group, vnet azure.ID) string {
	t.Helper()
	var b strings.Builder
	for _, g := range e.Given {
		needs, err := needsOf(g, group, vnet)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needs {
			text, err := json.Marshal(n.body)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "kaz local azure put %s <<< '%s'\n", n.id, text)
		}
	}
	return b.String()
}

// need is a resource that an example needs.
type need struct {
	id   azure.ID
	body object
}

// needsOf returns the resources that a "Given:" line requires.
func needsOf(given string, group, vnet azure.ID) ([]need, error) {
	what, name, elsewhere := parseGiven(given)
	var all []need
	if elsewhere != "" {
		group = azure.GroupID(group.Subscription(), elsewhere)
		all = append(all, need{group, object{"location": Location}})
	}
	standard := object{"name": "Standard"}
	switch what {
	case "public IP":
		return append(all, need{group.Resource(network.PublicIPAddresses, name), object{
			"location": Location, "sku": standard, "properties": object{"publicIPAllocationMethod": "Static"},
		}}), nil
	case "public IP prefix", "public IPv6 prefix":
		version, length := corev1.IPv4Protocol, 28
		if what == "public IPv6 prefix" {
			version, length = corev1.IPv6Protocol, 124
		}
		return append(all, need{group.Resource("Microsoft.Network/publicIPPrefixes", name), object{
			"location": Location, "sku": standard, "properties": object{"publicIPAddressVersion": version, "prefixLength": length},
		}}), nil
	case "subnet":
		return append(all, need{vnet.Child("subnets", name), object{"properties": object{"addressPrefix": freeInLocalNetwork}}}), nil
	case "dual stack":
		return all, nil
	}
	return nil, fmt.Errorf("%q: want public IP, public IP prefix, public IPv6 prefix or subnet with a name", given)
}

// freeInLocalNetwork is a range without subnets in the virtual network of kaz local up.
const freeInLocalNetwork = "10.241.0.0/24"

// parseGiven parses "public IP web-ip in the resource group addresses".
func parseGiven(text string) (what, name, group string) {
	text, group, _ = strings.Cut(text, " in the resource group ")
	if text == "dual stack" {
		return text, "", group
	}
	i := max(strings.LastIndexByte(text, ' '), 0)
	return text[:i], strings.TrimSpace(text[i:]), group
}

func put(ctx context.Context, d azure.Writer, id azure.ID, body any) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, d, azure.Request{Verb: azure.Put, ID: id, Body: doc})
	return err
}

// addSubnet adds a subnet to a virtual network.
func addSubnet(ctx context.Context, d Client, vnet azure.ID, name string) error {
	doc, err := d.Get(ctx, vnet)
	if err != nil {
		return err
	}
	var v struct {
		Location   string `json:"location"`
		Properties object `json:"properties"`
	}
	if err := json.Unmarshal(doc, &v); err != nil {
		return err
	}
	prefixes, _ := v.Properties["addressSpace"].(object)["addressPrefixes"].([]any)
	space := fmt.Sprintf("10.%d.0.0/16", 240+len(prefixes))
	v.Properties["addressSpace"] = object{"addressPrefixes": append(prefixes, space)}
	subnets, _ := v.Properties["subnets"].([]any)
	v.Properties["subnets"] = append(subnets, object{"name": name, "properties": object{"addressPrefix": space}})
	return put(ctx, d, vnet, v)
}
