package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerregistry/armcontainerregistry"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/keyvault/armkeyvault"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"
)

// enums are the values of the models' enumerations, by import path and type. The models accept any
// text and reflection finds no constants, so the values are parsed from the source.
var enums = sync.OnceValues(func() (map[string][]string, error) {
	values := map[string][]string{}
	for _, sample := range []any{
		armauthorization.PossiblePrincipalTypeValues, armcompute.PossibleDiskStateValues, armcontainerregistry.PossibleSKUNameValues,
		armdns.PossibleRecordTypeValues, armkeyvault.PossibleSKUNameValues, armnetwork.PossibleProvisioningStateValues,
		armprivatedns.PossibleRecordTypeValues, armresources.PossibleProvisioningStateValues, armstorage.PossibleKindValues,
	} {
		function := reflect.ValueOf(sample)
		file, _ := runtime.FuncForPC(function.Pointer()).FileLine(function.Pointer())
		if err := readEnums(values, function.Type().Out(0).Elem().PkgPath(), file); err != nil {
			return nil, fmt.Errorf("enumerations of the models: %w", err)
		}
	}
	for kind, more := range unlisted {
		values[kind] = append(values[kind], more...)
	}
	return values, nil
})

// unlisted are values that Azure sends and that the models do not have. Microsoft's documentation of backend health has these.
var unlisted = map[string][]string{
	reflect.TypeFor[armnetwork.ApplicationGatewayBackendHealthServerHealth]().PkgPath() +
		".ApplicationGatewayBackendHealthServerHealth": {"Healthy", "Unhealthy"},
}

func readEnums(values map[string][]string, path, file string) error {
	parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		constant, ok := n.(*ast.ValueSpec)
		if !ok || len(constant.Values) != 1 {
			return true
		}
		name, named := constant.Type.(*ast.Ident)
		value, literal := constant.Values[0].(*ast.BasicLit)
		if named && literal {
			text, err := strconv.Unquote(value.Value)
			if err == nil {
				key := path + "." + name.Name
				values[key] = append(values[key], text)
			}
		}
		return true
	})
	return nil
}

// unknownValues reports the values in a model that its enumerations do not have.
func unknownValues(known map[string][]string, same func(a, b string) bool, path string, v reflect.Value, report func(path, what string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			unknownValues(known, same, path, v.Elem(), report)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				unknownValues(known, same, strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), v.Field(i), report)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			unknownValues(known, same, path+"[]", v.Index(i), report)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			unknownValues(known, same, path, v.MapIndex(key), report)
		}
	case reflect.String:
		values := known[v.Type().PkgPath()+"."+v.Type().Name()]
		if values != nil && !slices.ContainsFunc(values, func(allowed string) bool { return same(allowed, v.String()) }) {
			report(path, fmt.Sprintf("%q is not one of %q", v.String(), values))
		}
	}
}
