package examples_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerregistry/armcontainerregistry"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/keyvault/armkeyvault"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armdeploymentstacks"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armlocks"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/test/contract/examples"
)

// factory is the function NewClientFactory of a module.
type factory func(*arm.ClientOptions) (any, error)

// making adapts the function NewClientFactory of a module.
func making[F any](create func(string, azcore.TokenCredential, *arm.ClientOptions) (*F, error)) factory {
	return func(o *arm.ClientOptions) (any, error) { return create(core.DefaultSubscription, anyToken{}, o) }
}

// modules are the modules that have examples.
var modules = []struct {
	name     string
	create   factory
	function any
}{
	{"armauthorization", making(armauthorization.NewClientFactory), armauthorization.NewClientFactory},
	{"armcompute", making(armcompute.NewClientFactory), armcompute.NewClientFactory},
	{"armcontainerregistry", making(armcontainerregistry.NewClientFactory), armcontainerregistry.NewClientFactory},
	{"armdeploymentstacks", making(armdeploymentstacks.NewClientFactory), armdeploymentstacks.NewClientFactory},
	{"armdns", making(armdns.NewClientFactory), armdns.NewClientFactory},
	{"armkeyvault", making(armkeyvault.NewClientFactory), armkeyvault.NewClientFactory},
	{"armlocks", making(armlocks.NewClientFactory), armlocks.NewClientFactory},
	{"armmsi", making(armmsi.NewClientFactory), armmsi.NewClientFactory},
	{"armnetwork", making(armnetwork.NewClientFactory), armnetwork.NewClientFactory},
	{"armprivatedns", making(armprivatedns.NewClientFactory), armprivatedns.NewClientFactory},
	{"armresources", making(armresources.NewClientFactory), armresources.NewClientFactory},
	{"armstorage", making(armstorage.NewClientFactory), armstorage.NewClientFactory},
}

// structs are those that stand in fields of interface types.
var structs = named(
	armauthorization.RoleManagementPolicyApprovalRule{}, armauthorization.RoleManagementPolicyAuthenticationContextRule{},
	armauthorization.RoleManagementPolicyEnablementRule{}, armauthorization.RoleManagementPolicyExpirationRule{},
	armauthorization.RoleManagementPolicyNotificationRule{},
	armcontainerregistry.DockerBuildRequest{}, armcontainerregistry.DockerBuildStep{},
	armcontainerregistry.DockerBuildStepUpdateParameters{}, armcontainerregistry.EncodedTaskRunRequest{},
	armcontainerregistry.FileTaskRunRequest{}, armcontainerregistry.TaskRunRequest{},
	armnetwork.ActiveDefaultSecurityAdminRule{}, armnetwork.AdminRule{}, armnetwork.ApplicationRule{}, armnetwork.DefaultAdminRule{},
	armnetwork.EffectiveDefaultSecurityAdminRule{}, armnetwork.FirewallPolicyFilterRuleCollection{},
	armnetwork.FirewallPolicyNatRuleCollection{}, armnetwork.NatRule{}, armnetwork.Rule{},
)

func named(values ...any) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, v := range values {
		all[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	return all
}

// call is an example with the values of its arguments and of its documented answer.
type call struct {
	examples.Example
	module    *examples.Module
	create    factory
	arguments []reflect.Value // of the method, without its context
	result    reflect.Type    // the response, or the page
	answer    reflect.Value   // of the response's field, invalid if none is documented
	document  reflect.Value   // the answer without what Azure alone sets
	sent      request         // the first request
	target    target
}

// bind reads the values of an example. An error says what could not be read.
func bind(m *examples.Module, create factory, e examples.Example) (*call, error) {
	c := &call{Example: e, module: m, create: create}
	method, err := c.method(&arm.ClientOptions{})
	if err != nil {
		return nil, err
	}
	given, wanted := e.Arguments, method.Type()
	context := 0
	if wanted.NumIn() > 0 && wanted.In(0) == contextType {
		context = 1
	}
	if len(given) != wanted.NumIn() {
		return nil, fmt.Errorf("%d arguments of %d", len(given), wanted.NumIn())
	}
	for i := context; i < len(given); i++ {
		v, err := m.Value(given[i], wanted.In(i))
		if err != nil {
			return nil, err
		}
		c.arguments = append(c.arguments, v)
	}
	place(c.body())
	nameParts(c.body())
	certify(c.body())
	c.result = resultOf(wanted)
	if e.Answer == nil {
		return c, nil
	}
	if c.result.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the result is no struct: %s", c.result)
	}
	field, ok := c.result.FieldByName(e.Field)
	if !ok {
		return nil, fmt.Errorf("%s has no field %s", c.result, e.Field)
	}
	if c.answer, err = m.Value(e.Answer, field.Type); err != nil {
		return nil, err
	}
	place(c.answer)
	c.document, err = m.Value(e.Answer, field.Type)
	place(c.document)
	return c, err
}

// place puts the resources of an example into a region, where the example names a place that is none, such as "myLocation".
func place(v reflect.Value) {
	switch v = inside(v); v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			place(v.Index(i))
		}
	case reflect.Struct:
		if all := v.FieldByName("Value"); all.IsValid() {
			place(all)
		}
		location := inside(v.FieldByName("Location"))
		if location.IsValid() && location.Kind() == reflect.String && location.CanSet() && v.FieldByName("Properties").IsValid() &&
			!strings.EqualFold(location.String(), "global") && !isRegion(location.String()) {
			location.SetString(defaultRegion)
		}
	}
}

// locate puts the resource of a PUT into a region, where its type needs one and the example names none.
func (c *call) locate() {
	body := c.body()
	if c.sent.method != http.MethodPut || c.target.list || c.target.kind.Where != behaviour.Located || !body.IsValid() {
		return
	}
	location := body.FieldByName("Location")
	if location.IsValid() && location.CanSet() && location.Kind() == reflect.Pointer && location.IsNil() {
		location.Set(reflect.ValueOf(new(defaultRegion)))
	}
}

// nameParts names the resources inside of a body that have no name. Azure refuses them, and some examples leave the names out.
func nameParts(v reflect.Value) {
	switch v = inside(v); v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			part := inside(v.Index(i))
			nameParts(part)
			if part.Kind() != reflect.Struct || !part.FieldByName("Properties").IsValid() || !inside(part.FieldByName("Properties")).IsValid() {
				continue
			}
			if name := part.FieldByName("Name"); name.IsValid() && name.CanSet() && name.Kind() == reflect.Pointer && name.IsNil() {
				name.Set(reflect.ValueOf(new(fmt.Sprintf("element%d", i+1))))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				nameParts(v.Field(i))
			}
		}
	}
}

// certify replaces the data of certificates, which the examples hide, by data of a certificate.
func certify(v reflect.Value) {
	switch v = inside(v); v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			certify(v.Index(i))
		}
	case reflect.Struct:
		data := v.FieldByName("Data")
		if text, ok := reflect.TypeAssert[*string](valid(data)); ok && text != nil && *text == hidden {
			data.Set(reflect.ValueOf(new(certificate(v.FieldByName("Password").IsValid()))))
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				certify(v.Field(i))
			}
		}
	}
}

// hidden is what the examples have instead of a secret.
const hidden = "****"

// valid is a value, or an invalid one as a value that is no text.
func valid(v reflect.Value) reflect.Value {
	if v.IsValid() {
		return v
	}
	return reflect.ValueOf(0)
}

// writable clears the fields that a request has not, apart from those that name a resource. The model is the type of the request's body.
func writable(m *examples.Module, v reflect.Value, model reflect.Type) {
	for model.Kind() == reflect.Pointer || model.Kind() == reflect.Slice {
		model = model.Elem()
	}
	switch v = inside(v); v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			writable(m, v.Index(i), model)
		}
	case reflect.Struct:
		if model.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Name == "ID" || field.Name == "Name" || field.Name == "Type" || !v.Field(i).CanSet() {
				continue
			}
			asked, ok := model.FieldByName(field.Name)
			for j := 0; !ok && j < model.NumField(); j++ { // such as the properties of an element of a list
				asked, ok = model.Field(j), model.Field(j).Type == field.Type && field.Type.Kind() == reflect.Pointer &&
					field.Type.Elem().Kind() == reflect.Struct
			}
			if ok && !m.ReadOnly(model.Name()+"."+asked.Name) {
				writable(m, v.Field(i), asked.Type)
			} else {
				v.Field(i).SetZero()
			}
		}
	}
}

// body is the argument that is sent as the body, invalid for none. The last argument has the options.
func (c *call) body() reflect.Value {
	for _, v := range c.arguments[:max(len(c.arguments)-1, 0)] {
		if v = inside(v); v.Kind() == reflect.Struct {
			return v
		}
	}
	return reflect.Value{}
}

// sentBefore is what the target was made with: the documented answer without what Azure alone sets. Its name is that of the request's path,
// which some answers contradict.
func (c *call) sentBefore() reflect.Value {
	sent := inside(c.document)
	if sent.Kind() == reflect.Struct {
		if name := sent.FieldByName("Name"); name.IsValid() && name.CanSet() {
			name.SetZero()
		}
	}
	return sent
}

// read reads the examples of a module, and logs those that cannot be read.
func read(t *testing.T, scenes map[string]*scene, create factory, function any) (calls []*call, unread int) {
	t.Helper()
	m, err := examples.Read(examples.Dir(function), "*_client_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	m.Types = structs
	for _, e := range m.Examples() {
		m.Text = scenes[e.Name].spelled
		c, err := bind(m, create, e)
		if err == nil {
			err = scenes[e.Name].complete(c)
		}
		if err == nil {
			err = c.capture()
		}
		if err != nil {
			t.Logf("unread: %s: %v", e.Name, err)
			unread++
			continue
		}
		calls = append(calls, c)
	}
	return calls, unread
}
