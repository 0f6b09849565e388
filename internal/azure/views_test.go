package azure_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
)

// views are all types of resources that have a view.
func views() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[azure.Resource[compute.Instance]](),
		reflect.TypeFor[azure.Resource[compute.ScaleSet]](),
		reflect.TypeFor[azure.Resource[compute.VirtualMachine]](),
		reflect.TypeFor[azure.Resource[compute.Disk]](),
		reflect.TypeFor[azure.Resource[compute.Snapshot]](),
		reflect.TypeFor[azure.Resource[compute.MachineDisks]](),
		reflect.TypeFor[compute.AttachDetach](),
		reflect.TypeFor[azure.Resource[compute.ScaleSetModel]](),
		reflect.TypeFor[azure.Resource[compute.ScaledInstance]](),
		reflect.TypeFor[azure.Resource[network.ApplicationGateway]](),
		reflect.TypeFor[azure.Resource[network.DNSZone]](),
		reflect.TypeFor[azure.Resource[network.RecordSet]](),
		reflect.TypeFor[azure.Resource[network.Interface]](),
		reflect.TypeFor[azure.Resource[network.LoadBalancer]](),
		reflect.TypeFor[azure.Resource[network.PrivateLinkService]](),
		reflect.TypeFor[azure.Resource[network.PublicIPAddress]](),
		reflect.TypeFor[azure.Resource[network.RouteTable]](),
		reflect.TypeFor[azure.Resource[network.SecurityGroup]](),
		reflect.TypeFor[azure.Resource[network.Subnet]](),
		reflect.TypeFor[azure.Resource[network.PrivateEndpoint]](),
		reflect.TypeFor[azure.Resource[network.PrivateZone]](),
		reflect.TypeFor[azure.Resource[network.PrivateZoneLink]](),
		reflect.TypeFor[azure.Resource[network.PrivateZoneGroup]](),
		reflect.TypeFor[azure.Resource[storage.Account]](),
		reflect.TypeFor[azure.Resource[storage.FileService]](),
		reflect.TypeFor[azure.Resource[storage.Share]](),
	}
}

// Every struct of the provider packages is part of a view in the table above, so no
// list can be forgotten. Other packages have no documents that are written.
func TestEveryStructIsPartOfAView(t *testing.T) {
	known := map[string]bool{}
	var note func(reflect.Type)
	note = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		name, _, _ := strings.Cut(typ.Name(), "[")
		known[filepath.Base(typ.PkgPath())+"."+name] = true
		if typ.Kind() == reflect.Struct {
			for f := range typ.Fields() {
				note(f.Type)
			}
		}
	}
	for _, view := range views() {
		note(view)
	}
	for name := range structs(t) {
		of, _, _ := strings.Cut(name, ".")
		if name == "storage.Keys" || name == "storage.Key" { // only read, with secrets
			continue
		}
		if !known[name] && !slices.Contains([]string{"metadata", "machinesize", "secret", "short"}, of) {
			t.Errorf("%s is part of no view in this test's table", name)
		}
	}
}

// structs lists the struct types of the packages below this one.
func structs(t *testing.T) map[string]bool {
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no provider packages", err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, ok := spec.Type.(*ast.StructType); ok {
					found[parsed.Name.Name+"."+spec.Name.Name] = true
				}
			}
			return true
		})
	}
	return found
}

// Every list says how its elements are paired.
func TestEveryListHasAKey(t *testing.T) {
	for _, view := range views() {
		if err := azure.CheckView(view); err != nil {
			t.Error(err)
		}
	}
}

type (
	unkeyed struct {
		LUN  int    `json:"lun"`
		Name string `json:"name,omitempty"`
	}
	keyless  struct{ Disks []unkeyed }
	mistyped struct {
		Disks []unkeyed `azure:"key=lun+size"`
	}
	byLUN struct {
		Disks []unkeyed `azure:"key=lun"`
	}
	inOrder struct {
		Disks []unkeyed `azure:"positional"`
	}
	azuresOwn struct {
		Disks []unkeyed `azure:"read"`
	}
)

func TestAListWithoutKeyIsAnError(t *testing.T) {
	for _, test := range []struct {
		view any
		want string // of the error
	}{
		{keyless{Disks: []unkeyed{}}, "Disks: list of azure_test.unkeyed has no key"},
		{mistyped{Disks: []unkeyed{}}, "not all of the key fields lun, size exist"},
		{byLUN{Disks: []unkeyed{}}, ""}, {inOrder{Disks: []unkeyed{}}, ""}, {azuresOwn{}, ""},
	} {
		err := azure.CheckView(reflect.TypeOf(test.view))
		_, _, overlaid := azure.Overlay(nil, test.view)
		for _, err := range []error{err, overlaid} {
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%T: %v, want %q", test.view, err, test.want)
			}
		}
	}
}
