package nodes_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/azure/metadata"
	"kaz/internal/plan/nodes"
)

var updateMetadata = flag.Bool("update-metadata", false, "write what is wanted of testdata/metadata anew")

// TestFromMetadata compares the description of each machine in testdata/metadata. Update the files
// with -update-metadata.
func TestFromMetadata(t *testing.T) {
	files, err := filepath.Glob("testdata/metadata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var m metadata.Instance
			var public metadata.LoadBalancer
			var want *txtar.File
			for i := range archive.Files {
				f := &archive.Files[i]
				switch f.Name {
				case "instance.json":
					err = json.Unmarshal(f.Data, &m)
				case "loadbalancer.json":
					err = json.Unmarshal(f.Data, &public)
				case "want":
					want = f
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			got := describe(nodes.FromMetadata(m, public.LoadBalancer.PublicIPAddresses, "np000007"))
			if *updateMetadata {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// describe formats a description.
func describe(d nodes.Metadata, err error) string {
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "provider id %s\n", d.ProviderID)
	for _, a := range d.Addresses {
		fmt.Fprintf(&b, "address %s %s\n", a.Type, a.Address)
	}
	labels := d.Labels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "label %s=%s\n", key, labels[key])
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	return b.String()
}

// FuzzFromMetadata checks that the description is valid for all metadata, or an error.
func FuzzFromMetadata(f *testing.F) {
	files, err := filepath.Glob("testdata/metadata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var documents [2][]byte
		for _, part := range archive.Files {
			switch part.Name {
			case "instance.json":
				documents[0] = part.Data
			case "loadbalancer.json":
				documents[1] = part.Data
			}
		}
		f.Add(documents[0], documents[1])
	}
	f.Fuzz(func(t *testing.T, instance, balancer []byte) {
		var m metadata.Instance
		var public metadata.LoadBalancer
		if json.Unmarshal(instance, &m) != nil {
			return
		}
		_ = json.Unmarshal(balancer, &public) // the decoded part is used
		d, err := nodes.FromMetadata(m, public.LoadBalancer.PublicIPAddresses, "n")
		if err != nil {
			return
		}
		if !nodes.Managed(d.ProviderID) {
			t.Errorf("provider id %q", d.ProviderID)
		}
		if len(d.Addresses) < 2 || d.Addresses[0] != (v1.NodeAddress{Type: v1.NodeHostName, Address: "n"}) {
			t.Errorf("addresses %v", d.Addresses)
		}
		for _, a := range d.Addresses[1:] {
			if _, err := netip.ParseAddr(a.Address); err != nil {
				t.Errorf("address %v", a)
			}
		}
		for key, value := range d.Labels() {
			if why := validation.IsValidLabelValue(value); len(why) > 0 || value == "" {
				t.Errorf("label %s=%q: %v", key, value, why)
			}
		}
		if again, err := nodes.FromMetadata(m, public.LoadBalancer.PublicIPAddresses, "n"); err != nil || !cmp.Equal(d, again) {
			t.Errorf("not the same twice: %v", err)
		}
	})
}

func TestShowsPublic(t *testing.T) {
	network := func(four, six string) metadata.Instance {
		family := func(public string) metadata.Family {
			return metadata.Family{Addresses: []metadata.Address{{Private: "x", Public: public}}}
		}
		return metadata.Instance{Network: &metadata.Network{Interfaces: []metadata.Interface{{IPv4: family(four), IPv6: family(six)}}}}
	}
	for i, c := range []struct {
		m    metadata.Instance
		want bool
	}{
		{metadata.Instance{}, false}, {metadata.Instance{Network: &metadata.Network{}}, false},
		{network("", ""), false}, {network("1.2.3.4", ""), true}, {network("", "2603::1"), true},
	} {
		if got := nodes.ShowsPublic(c.m); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

func TestBears(t *testing.T) {
	m := metadata.Instance{Compute: &metadata.Compute{Name: "vm-1", OSProfile: metadata.OSProfile{ComputerName: "NP000001"}}}
	for name, want := range map[string]bool{"vm-1": true, "np000001": true, "np000002": false, "": false} {
		if nodes.Bears(m, name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if nodes.Bears(metadata.Instance{}, "a") {
		t.Error("a machine without metadata bears a name")
	}
}

func TestNewAddresses(t *testing.T) {
	address := func(kind v1.NodeAddressType, text string) v1.NodeAddress {
		return v1.NodeAddress{Type: kind, Address: text}
	}
	host, four, six, out := address(v1.NodeHostName, "n"), address(v1.NodeInternalIP, "10.0.0.4"), address(v1.NodeInternalIP, "fd00::6"),
		address(v1.NodeExternalIP, "20.0.0.1")
	for name, c := range map[string]struct {
		has, machine []v1.NodeAddress
		provided     string
		want         []v1.NodeAddress // nil if nothing changes
		err          string
	}{
		"a new node":    {nil, []v1.NodeAddress{host, four}, "", []v1.NodeAddress{host, four}, ""},
		"another order": {[]v1.NodeAddress{four, host}, []v1.NodeAddress{host, four}, "", nil, ""},
		"another address": {[]v1.NodeAddress{host, six}, []v1.NodeAddress{host, four}, "",
			[]v1.NodeAddress{host, four}, ""},
		"one more": {[]v1.NodeAddress{host, four}, []v1.NodeAddress{host, four, out}, "",
			[]v1.NodeAddress{host, four, out}, ""},
		"one less": {[]v1.NodeAddress{host, four, out}, []v1.NodeAddress{host, four}, "",
			[]v1.NodeAddress{host, four}, ""},
		"the same address as another type": {[]v1.NodeAddress{host, address(v1.NodeExternalIP, "10.0.0.4")},
			[]v1.NodeAddress{host, four}, "", []v1.NodeAddress{host, four}, ""},
		"no host name: the kubelet's stays": {[]v1.NodeAddress{host}, []v1.NodeAddress{four}, "", []v1.NodeAddress{four, host}, ""},
		"nothing known":                     {[]v1.NodeAddress{host, four}, nil, "", nil, ""},
		"both provided": {nil, []v1.NodeAddress{host, four, six}, "10.0.0.4, fd00::6",
			[]v1.NodeAddress{host, four, six}, ""},
		"provided in another spelling": {nil, []v1.NodeAddress{host, six}, "fd00:0::6", []v1.NodeAddress{host, six}, ""},
		"one provided that is not there": {nil, []v1.NodeAddress{host, four}, "10.0.0.4,fd00::6", nil,
			`uses the address "fd00::6" (annotation alpha.kubernetes.io/provided-node-ip), which its machine does not have: it has 10.0.0.4`},
		"provided is empty": {nil, []v1.NodeAddress{host, four}, "", []v1.NodeAddress{host, four}, ""},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
			Annotations: map[string]string{"alpha.kubernetes.io/provided-node-ip": c.provided}}, Status: v1.NodeStatus{Addresses: c.has}}
		got, changed, err := nodes.NewAddresses(node, c.machine)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if changed != (c.want != nil) || changed && !cmp.Equal(c.want, got) {
			t.Errorf("%s: %v, %v", name, got, changed)
		}
	}
}

func TestKeepOutside(t *testing.T) {
	inside, out := v1.NodeAddress{Type: v1.NodeInternalIP, Address: "10.0.0.4"},
		v1.NodeAddress{Type: v1.NodeExternalIP, Address: "20.0.0.1"}
	node := &v1.Node{Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.3"}, out}}}
	if got := nodes.KeepOutside(node, []v1.NodeAddress{inside}); !cmp.Equal(got, []v1.NodeAddress{inside, out}) {
		t.Error(got)
	}
	if got := nodes.KeepOutside(node, []v1.NodeAddress{inside, out}); len(got) != 2 {
		t.Error(got)
	}
}

func TestBetaLabels(t *testing.T) {
	got := nodes.BetaLabels(map[string]string{
		"node.kubernetes.io/instance-type": "s", "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "a": "b",
	})
	want := map[string]string{
		"beta.kubernetes.io/instance-type": "s", "failure-domain.beta.kubernetes.io/zone": "z",
		"failure-domain.beta.kubernetes.io/region": "r",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := nodes.BetaLabels(nil); len(got) != 0 {
		t.Error(got)
	}
}
