package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/trafficmanager/armtrafficmanager"
)

// judge checks every reply to a client: it must pass the SDK's model of the resource without loss,
// and enumerations must have known values. A field that Azure does not have, or has elsewhere, fails
// the first test that reads it.
type judge struct {
	testing.TB
	next http.RoundTripper
	seen map[string]bool // what has been complained about
}

// Do implements policy.Transporter.
func (j *judge) Do(r *http.Request) (*http.Response, error) {
	reply, err := j.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(reply.Body)
	if err := reply.Body.Close(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	reply.Body = io.NopCloser(bytes.NewReader(text))
	j.headers(r, reply)
	if len(bytes.TrimSpace(text)) > 0 {
		j.body(r, reply, text)
	} else if r.Method == http.MethodGet && reply.StatusCode == http.StatusOK && !isPoll(r.URL.Path) {
		j.complain(r, "", "200 to a GET without a body")
	}
	return reply, nil
}

func isPoll(path string) bool {
	kind, _ := subject(path)
	if strings.HasSuffix(kind, "/deployments/operations") {
		return false // the steps of a deployment are resources
	}
	return polls[kind[strings.LastIndexByte(kind, '/')+1:]]
}

// longPath returns the path as in ids. ARM's own clients leave out the provider only for a
// deployment's steps.
func longPath(path string) string {
	return strings.Replace(strings.TrimSuffix(path, "/"), "/rg/deployments/", "/rg/providers/Microsoft.Resources/deployments/", 1)
}

// polls are the collections in which operations are.
var polls = map[string]bool{
	"operations": true, "operationresults": true, "operationstatuses": true, "diskoperations": true, "asyncoperations": true,
	"deploymentstackoperationstatus": true, "deploymentstackoperationresults": true,
	"privatednsoperationstatuses": true, "privatednsoperationresults": true, "dnsoperationstatuses": true, "dnsoperationresults": true,
}

// outputs are the models of the results of actions, by a field that each has.
var outputs = map[string]reflect.Type{
	"accessSAS": reflect.TypeFor[armcompute.AccessURI](),
	"osDisk":    reflect.TypeFor[armcompute.StorageProfile](),

	"backendAddressPools": reflect.TypeFor[armnetwork.ApplicationGatewayBackendHealth](),
}

// results are the models of the results of operations, by the type of the resource that distinguishes them.
var results = map[string]reflect.Type{
	"microsoft.resources/deploymentstacks": reflect.TypeFor[armdeploymentstacks.DeploymentStackValidateResult](),
}

func (j *judge) complain(r *http.Request, path, format string, args ...any) {
	kind, _ := subject(r.URL.Path)
	complaint := kind
	if path != "" {
		complaint += ": " + path
	}
	complaint += ": " + fmt.Sprintf(format, args...)
	if j.seen[complaint] {
		return
	}
	if j.seen == nil {
		j.seen = map[string]bool{}
	}
	j.seen[complaint] = true
	j.Errorf("%s %s: %s", r.Method, r.URL.Path, complaint)
}

// headers checks what clients and their traces need of every reply.
func (j *judge) headers(r *http.Request, reply *http.Response) {
	for _, name := range []string{"x-ms-request-id", "x-ms-correlation-request-id", "x-ms-routing-request-id"} {
		if reply.Header.Get(name) == "" {
			j.complain(r, "", "%d without the header %s", reply.StatusCode, name)
		}
	}
	for _, name := range []string{"Azure-AsyncOperation", "Location"} {
		if name == "Location" && reply.StatusCode != http.StatusAccepted {
			continue // of a 201 it names the resource, and an identity's is relative
		}
		if url := reply.Header.Get(name); url != "" && !strings.HasPrefix(url, "https://"+r.URL.Host+"/") {
			j.complain(r, "", "%s is not an absolute URL of this server: %s", name, url)
		}
	}
}

func (j *judge) body(r *http.Request, reply *http.Response, text []byte) {
	if form := reply.Header.Get("Content-Type"); form != "application/json; charset=utf-8" {
		j.complain(r, "", "Content-Type %q", form)
	}
	var said any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&said); err != nil {
		j.complain(r, "", "%d with a body that is not JSON: %v", reply.StatusCode, err)
		return
	}
	object, ok := said.(map[string]any)
	switch {
	case !ok:
		j.complain(r, "", "the reply %d is not an object", reply.StatusCode)
	case reply.StatusCode >= http.StatusBadRequest:
		j.refusal(r, object)
	case isPoll(r.URL.Path):
		j.poll(r, object)
	default:
		j.answer(r, reply, object)
	}
}

// refusal: an error has a code and a message.
func (j *judge) refusal(r *http.Request, said map[string]any) {
	if inner, ok := said["error"].(map[string]any); ok && len(said) == 1 {
		said = inner
	}
	j.through(r, reflect.TypeFor[armresources.ErrorResponse](), said)
	for _, field := range []string{"code", "message"} {
		if text, ok := said[field].(string); !ok || text == "" {
			j.complain(r, field, "an error without it")
		}
	}
}

// poll: the state of an operation, or what it resulted in.
func (j *judge) poll(r *http.Request, said map[string]any) {
	if id, ok := said["id"].(string); ok {
		kind, named := subject(id)
		if model := results[kind]; named && model != nil {
			j.through(r, model, said)
			return
		}
		if named && models[kind] != nil {
			j.through(r, models[kind], said)
			return
		}
		// ARM's contract for operations has an id, which is the id of the operation.
		if !strings.EqualFold(id, r.URL.Path) {
			j.complain(r, "id", "%q in the status of the operation %s", id, r.URL.Path)
		}
	}
	for field, model := range outputs {
		if _, ok := said[field]; ok {
			j.through(r, model, said)
			return
		}
	}
	for field := range said {
		if !slices.Contains([]string{"id", "status", "error", "startTime", "endTime", "name", "properties", "output", "createdDateTime",
			"lastActionDateTime"}, field) {
			j.complain(r, field, "not in the status of an operation")
		}
	}
}

func (j *judge) answer(r *http.Request, reply *http.Response, said map[string]any) {
	if reply.StatusCode == http.StatusAccepted && len(said) == 0 {
		return
	}
	kind, named := subject(r.URL.Path)
	model := models[kind]
	switch {
	case views[kind] != nil && (!named || model == nil):
		j.through(r, views[kind], said)
	case model == nil:
		j.complain(r, "", "no model to judge the reply with")
	case named:
		j.through(r, model, said)
		if id, ok := said["id"].(string); !ok || !strings.EqualFold(id, longPath(r.URL.Path)) {
			j.complain(r, "id", "%q in the reply to %s", id, r.URL.Path)
		}
	default:
		j.list(r, model, said)
	}
}

func (j *judge) list(r *http.Request, model reflect.Type, said map[string]any) {
	for field := range said {
		if field != "value" && field != "nextLink" {
			j.complain(r, field, "not in a list")
		}
	}
	if link, ok := said["nextLink"]; ok {
		text, _ := link.(string)
		if !strings.HasPrefix(strings.Replace(text, ":443/", "/", 1), "https://"+r.URL.Host+"/") {
			j.complain(r, "nextLink", "is not an absolute URL of this server: %v", link)
		}
	}
	items, ok := said["value"].([]any)
	if !ok {
		j.complain(r, "value", "is no array")
	}
	for _, item := range items {
		j.through(r, model, item)
	}
}

// through sends what was said through a model.
func (j *judge) through(r *http.Request, model reflect.Type, said any) {
	value, kept, err := throughModel(model, said)
	if err != nil {
		j.complain(r, "", "%v", err)
		return
	}
	known, err := enums()
	if err != nil {
		j.Fatal(err)
	}
	kind, _ := subject(r.URL.Path)
	same := func(a, b string) bool { return a == b }
	if strings.HasPrefix(kind, "microsoft.storage/") {
		same = strings.EqualFold // storage writes "FULL" and "unlocked"
	}
	unknownValues(known, same, "", value, func(path, what string) { j.complain(r, path, "%s (%s)", what, model) })
	compare("", said, kept, func(path, what string) {
		if what == unknown && among(unpublished, kind, path) || what == null && among(nulls, kind, path) {
			return
		}
		j.complain(r, path, "%s (%s)", what, model)
	})
}

// throughModel decodes said into a model and encodes that again.
func throughModel(model reflect.Type, said any) (value reflect.Value, kept any, err error) {
	text, err := json.Marshal(said)
	if err != nil {
		return value, nil, err
	}
	value = reflect.New(model)
	if err := json.Unmarshal(text, value.Interface()); err != nil {
		return value, nil, fmt.Errorf("does not fit into %s: %w", model, err)
	}
	if text, err = json.Marshal(value.Interface()); err != nil {
		return value, nil, fmt.Errorf("%s cannot be encoded again: %w", model, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&kept)
	return value, kept, err
}

// What compare reports, beside values that changed.
const (
	unknown = "unknown to the model"
	null    = "null"
)

// unpublished are fields that Azure sends and that the models of these versions do not have. The keys name the type: a
// field may be in replies about it and what is below it. Most are in recordings of Azure. Tools that read lists of
// resources and interfaces of instances rely on "zones" and "isInUseWithService".
var unpublished = map[string][]string{
	"microsoft.network/applicationgateways": {"frontendIPConfigurations[].properties.httpListeners",
		"frontendPorts[].properties.httpListeners",
		"backendAddressPools[].properties.requestRoutingRules", "backendHttpSettingsCollection[].properties.requestRoutingRules",
		"httpListeners[].properties.requestRoutingRules", "sslCertificates[].properties.httpListeners", "sslProfiles[].properties.httpListeners",
		"rewriteRuleSets[].properties.requestRoutingRules", "rewriteRuleSets[].properties.urlPathMaps",
		"rewriteRuleSets[].properties.pathRules", "backendAddressPools[].properties.urlPathMaps",
		"backendAddressPools[].properties.pathRules", "backendHttpSettingsCollection[].properties.urlPathMaps",
		"backendHttpSettingsCollection[].properties.pathRules", "urlPathMaps[].properties.requestRoutingRules",
		"entraJWTValidationConfigs[].properties.requestRoutingRules", "loadDistributionPolicies[].properties.requestRoutingRules",
		"loadDistributionPolicies[].properties.urlPathMaps",
		"loadDistributionPolicies[].properties.pathRules",
		// Those of TCP and TLS are shown as those of HTTP: see docs/reference/unproven.md.
		"frontendIPConfigurations[].properties.listeners", "frontendPorts[].properties.listeners", "listeners[].properties.routingRules",
		"backendAddressPools[].properties.routingRules", "backendSettingsCollection[].properties.routingRules"},
	"microsoft.network/loadbalancers": {"enableDestinationServiceEndpoint", "allowBackendPortConflict", "allocationPolicy",
		"loadBalancerBackendAddresses[].id", "loadBalancerBackendAddresses[].type", "loadBalancerBackendAddresses[].etag",
		"loadBalancerBackendAddresses[].properties.provisioningState"},
	"microsoft.network/virtualnetworks":         {"properties.remoteGateways", "properties.routeServiceVips"},
	"microsoft.network/dnszones":                {"properties.trafficManagementProfile"},
	"microsoft.network/natgateways":             {"properties.type", "sku.tier"},
	"microsoft.network/networkinterfaces":       {"kind", "properties.allowPort25Out"},
	"microsoft.compute/virtualmachinescalesets": {"properties.allowPort25Out", "properties.isInUseWithService"},
	"microsoft.network/privatelinkservices":     {"properties.resourceGuid"},
	"microsoft.network/privateendpoints":        {"properties.resourceGuid", "isIPv6EnabledPrivateEndpoint"},
	"microsoft.containerregistry/registries": {"policies.azureADAuthenticationAsArmPolicy", "policies.softDeletePolicy",
		"properties.anonymousPullEnabled"},
	"microsoft.storage/storageaccounts":           {"properties.allowCrossTenantDelegationSas"},
	"microsoft.storage/locations/asyncoperations": {"properties.allowCrossTenantDelegationSas"},
	"microsoft.authorization/roledefinitions":     {"createdOn", "createdBy", "updatedOn", "updatedBy"},
	"providers":                              {"authorizations"},
	"microsoft.compute/register":             {"authorizations"},
	"microsoft.network/register":             {"authorizations"},
	"subscriptions/resourcegroups/resources": {"zones"},
	"subscriptions/resources":                {"zones"},

	"microsoft.resources/deployments/operations":          {"properties.trackingId"},
	"subscriptions/resourcegroups/deployments/operations": {"properties.trackingId"},
}

// nulls are fields that Azure sends as null where others send nothing.
var nulls = map[string][]string{
	"microsoft.network/dnszones":              {"maxNumberOfRecordsPerRecordSet"},
	"microsoft.authorization/roledefinitions": {"createdBy", "updatedBy"},
	"microsoft.authorization/roleassignments": {"createdBy", "updatedBy", "condition", "conditionVersion", "description",
		"delegatedManagedIdentityResourceId"},
	"microsoft.resources/deployments/operations":          {"properties.statusMessage"},
	"subscriptions/resourcegroups/deployments/operations": {"properties.statusMessage"},
}

// among looks a path up in a table by type.
func among(table map[string][]string, kind, path string) bool {
	for over, fields := range table {
		if strings.HasPrefix(kind, over) &&
			slices.ContainsFunc(fields, func(f string) bool { return path == f || strings.HasSuffix(path, "."+f) }) {
			return true
		}
	}
	return false
}

// compare reports everything in said that is not in kept. Indices of arrays are
// left out of paths.
func compare(path string, said, kept any, report func(path, what string)) {
	switch said := said.(type) {
	case map[string]any:
		object, ok := kept.(map[string]any)
		if !ok {
			report(path, "an object became something else")
			return
		}
		for field, value := range said {
			at := strings.TrimPrefix(path+"."+field, ".")
			switch remains, ok := object[field]; {
			case value == nil:
				report(at, null)
			case !ok:
				report(at, unknown)
			default:
				compare(at, value, remains, report)
			}
		}
	case []any:
		array, ok := kept.([]any)
		if !ok || len(array) != len(said) {
			report(path, "an array became something else")
			return
		}
		for i := range said {
			compare(path+"[]", said[i], array[i], report)
		}
	default:
		if !same(said, kept) {
			report(path, fmt.Sprintf("%v became %v", said, kept))
		}
	}
}

// same compares scalars. Times may be written differently.
func same(said, kept any) bool {
	if said == kept {
		return true
	}
	a, aText := said.(string)
	b, bText := kept.(string)
	if aText && bText {
		t, errT := time.Parse(time.RFC3339Nano, a)
		u, errU := time.Parse(time.RFC3339Nano, b)
		return errT == nil && errU == nil && t.Equal(u)
	}
	return fmt.Sprint(said) == fmt.Sprint(kept)
}

// subject returns the full type of a path in lower case, and whether the path ends in a name. For what belongs to no
// provider the type is "subscriptions/...". For a list of providers, or a provider, it is "providers".
func subject(path string) (kind string, named bool) {
	segments := strings.Split(strings.Trim(strings.ToLower(path), "/"), "/")
	at := -1
	for i, s := range segments {
		if s == "providers" && i%2 == 0 {
			at = i
		}
	}
	var types []string
	switch {
	case at == len(segments)-1:
		return "providers", false
	case at == len(segments)-2:
		return "providers", true
	case at >= 0:
		types, segments = append(types, segments[at+1]), segments[at+2:]
	}
	for i := 0; i < len(segments); i += 2 {
		types = append(types, segments[i])
	}
	return strings.Join(types, "/"), len(segments)%2 == 0
}

// models are the SDK's models of resources, by type.
var models = map[string]reflect.Type{
	"microsoft.network/networkmanagers": reflect.TypeFor[armnetwork.Manager](),
	// These are written through the generic client only, and judged by its model.
	"microsoft.operationalinsights/workspaces":            reflect.TypeFor[armresources.GenericResource](),
	"microsoft.cache/redis":                               reflect.TypeFor[armresources.GenericResource](),
	"microsoft.web/serverfarms":                           reflect.TypeFor[armresources.GenericResource](),
	"microsoft.compute/locations/vmsizes":                 reflect.TypeFor[armcompute.VirtualMachineSize](),
	"microsoft.compute/locations/usages":                  reflect.TypeFor[armcompute.Usage](),
	"microsoft.network/locations/usages":                  reflect.TypeFor[armnetwork.Usage](),
	"microsoft.storage/locations/usages":                  reflect.TypeFor[armstorage.Usage](),
	"microsoft.storage/storageaccounts/fileservices":      reflect.TypeFor[armstorage.FileServiceProperties](),
	"microsoft.storage/storageaccounts/blobservices":      reflect.TypeFor[armstorage.BlobServiceProperties](),
	"subscriptions/resourcegroups":                        reflect.TypeFor[armresources.ResourceGroup](),
	"subscriptions/resourcegroups/resources":              reflect.TypeFor[armresources.GenericResourceExpanded](),
	"subscriptions/resources":                             reflect.TypeFor[armresources.GenericResourceExpanded](),
	"providers":                                           reflect.TypeFor[armresources.Provider](),
	"microsoft.resources/deploymentstacks":                reflect.TypeFor[armdeploymentstacks.DeploymentStack](),
	"microsoft.resources/deployments":                     reflect.TypeFor[armresources.DeploymentExtended](),
	"microsoft.resources/deployments/operations":          reflect.TypeFor[armresources.DeploymentOperation](),
	"subscriptions/resourcegroups/deployments/operations": reflect.TypeFor[armresources.DeploymentOperation](),

	"microsoft.network/virtualnetworks":                            reflect.TypeFor[armnetwork.VirtualNetwork](),
	"microsoft.network/virtualnetworks/subnets":                    reflect.TypeFor[armnetwork.Subnet](),
	"microsoft.network/virtualnetworks/virtualnetworkpeerings":     reflect.TypeFor[armnetwork.VirtualNetworkPeering](),
	"microsoft.network/networksecuritygroups":                      reflect.TypeFor[armnetwork.SecurityGroup](),
	"microsoft.network/networksecuritygroups/securityrules":        reflect.TypeFor[armnetwork.SecurityRule](),
	"microsoft.network/networksecuritygroups/defaultsecurityrules": reflect.TypeFor[armnetwork.SecurityRule](),
	"microsoft.network/applicationsecuritygroups":                  reflect.TypeFor[armnetwork.ApplicationSecurityGroup](),
	"microsoft.network/routetables":                                reflect.TypeFor[armnetwork.RouteTable](),
	"microsoft.network/routetables/routes":                         reflect.TypeFor[armnetwork.Route](),
	"microsoft.network/publicipaddresses":                          reflect.TypeFor[armnetwork.PublicIPAddress](),
	"microsoft.network/publicipprefixes":                           reflect.TypeFor[armnetwork.PublicIPPrefix](),
	"microsoft.network/networkinterfaces":                          reflect.TypeFor[armnetwork.Interface](),
	"microsoft.network/networkinterfaces/ipconfigurations":         reflect.TypeFor[armnetwork.InterfaceIPConfiguration](),
	"microsoft.network/natgateways":                                reflect.TypeFor[armnetwork.NatGateway](),
	"microsoft.network/applicationgateways":                        reflect.TypeFor[armnetwork.ApplicationGateway](),
	"microsoft.network/loadbalancers":                              reflect.TypeFor[armnetwork.LoadBalancer](),
	"microsoft.network/loadbalancers/frontendipconfigurations":     reflect.TypeFor[armnetwork.FrontendIPConfiguration](),
	"microsoft.network/loadbalancers/backendaddresspools":          reflect.TypeFor[armnetwork.BackendAddressPool](),
	"microsoft.network/loadbalancers/loadbalancingrules":           reflect.TypeFor[armnetwork.LoadBalancingRule](),
	"microsoft.network/loadbalancers/probes":                       reflect.TypeFor[armnetwork.Probe](),
	"microsoft.network/loadbalancers/outboundrules":                reflect.TypeFor[armnetwork.OutboundRule](),
	"microsoft.network/loadbalancers/inboundnatrules":              reflect.TypeFor[armnetwork.InboundNatRule](),

	"microsoft.compute/sshpublickeys":                           reflect.TypeFor[armcompute.SSHPublicKeyResource](),
	"microsoft.compute/virtualmachines":                         reflect.TypeFor[armcompute.VirtualMachine](),
	"microsoft.compute/virtualmachinescalesets":                 reflect.TypeFor[armcompute.VirtualMachineScaleSet](),
	"microsoft.compute/virtualmachinescalesets/virtualmachines": reflect.TypeFor[armcompute.VirtualMachineScaleSetVM](),
	"microsoft.compute/virtualmachinescalesets/skus":            reflect.TypeFor[armcompute.VirtualMachineScaleSetSKU](),
	"microsoft.compute/availabilitysets":                        reflect.TypeFor[armcompute.AvailabilitySet](),
	"microsoft.compute/disks":                                   reflect.TypeFor[armcompute.Disk](),
	"microsoft.compute/snapshots":                               reflect.TypeFor[armcompute.Snapshot](),
	"microsoft.compute/skus":                                    reflect.TypeFor[armcompute.ResourceSKU](),

	"microsoft.compute/virtualmachinescalesets/networkinterfaces":                                                    reflect.TypeFor[armnetwork.Interface](),
	"microsoft.compute/virtualmachinescalesets/publicipaddresses":                                                    reflect.TypeFor[armnetwork.PublicIPAddress](),
	"microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces":                                    reflect.TypeFor[armnetwork.Interface](),
	"microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces/ipconfigurations":                   reflect.TypeFor[armnetwork.InterfaceIPConfiguration](),
	"microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces/ipconfigurations/publicipaddresses": reflect.TypeFor[armnetwork.PublicIPAddress](),
	"microsoft.network/privatelinkservices":                                                                          reflect.TypeFor[armnetwork.PrivateLinkService](),
	"microsoft.network/privateendpoints":                                                                             reflect.TypeFor[armnetwork.PrivateEndpoint](),
	"microsoft.network/privatednszones":                                                                              reflect.TypeFor[armprivatedns.PrivateZone](),
	"microsoft.network/privatednszones/virtualnetworklinks":                                                          reflect.TypeFor[armprivatedns.VirtualNetworkLink](),
	"microsoft.network/privatednszones/a":                                                                            reflect.TypeFor[armprivatedns.RecordSet](),
	"microsoft.network/dnszones":                                                                                     reflect.TypeFor[armdns.Zone](),
	"microsoft.network/trafficmanagerprofiles":                                                                       reflect.TypeFor[armtrafficmanager.Profile](),
	"microsoft.network/trafficmanagerprofiles/externalendpoints":                                                     reflect.TypeFor[armtrafficmanager.Endpoint](),
	"microsoft.network/dnszones/txt":                                                                                 reflect.TypeFor[armdns.RecordSet](),
	"microsoft.network/dnszones/recordsets":                                                                          reflect.TypeFor[armdns.RecordSet](),
	"microsoft.storage/storageaccounts":                                                                              reflect.TypeFor[armstorage.Account](),
	"microsoft.storage/storageaccounts/fileservices/shares":                                                          reflect.TypeFor[armstorage.FileShare](),
	"microsoft.storage/storageaccounts/blobservices/containers":                                                      reflect.TypeFor[armstorage.BlobContainer](),
	"microsoft.managedidentity/userassignedidentities":                                                               reflect.TypeFor[armmsi.Identity](),
	"microsoft.managedidentity/userassignedidentities/federatedidentitycredentials":                                  reflect.TypeFor[armmsi.FederatedIdentityCredential](),
	"microsoft.authorization/roledefinitions":                                                                        reflect.TypeFor[armauthorization.RoleDefinition](),
	"microsoft.authorization/roleassignments":                                                                        reflect.TypeFor[armauthorization.RoleAssignment](),
	"microsoft.authorization/permissions":                                                                            reflect.TypeFor[armauthorization.Permission](),
	"microsoft.authorization/locks":                                                                                  reflect.TypeFor[armlocks.ManagementLockObject](),
	"microsoft.containerregistry/registries":                                                                         reflect.TypeFor[armcontainerregistry.Registry](),
	"microsoft.keyvault/vaults":                                                                                      reflect.TypeFor[armkeyvault.Vault](),
	"microsoft.keyvault/vaults/secrets":                                                                              reflect.TypeFor[armkeyvault.Secret](),
	"microsoft.keyvault/locations/deletedvaults":                                                                     reflect.TypeFor[armkeyvault.DeletedVault](),
}

// views are models of what is neither a resource nor a list: views and replies to
// actions.
var views = map[string]reflect.Type{
	"microsoft.resources/deploymentstacks/exporttemplate":                             reflect.TypeFor[armdeploymentstacks.DeploymentStackTemplateDefinition](),
	"microsoft.keyvault/vaults/accesspolicies":                                        reflect.TypeFor[armkeyvault.VaultAccessPolicyParameters](),
	"microsoft.network/locations/checkdnsnameavailability":                            reflect.TypeFor[armnetwork.DNSNameAvailabilityResult](),
	"microsoft.network/virtualnetworks/checkipaddressavailability":                    reflect.TypeFor[armnetwork.IPAddressAvailabilityResult](),
	"microsoft.containerregistry/checknameavailability":                               reflect.TypeFor[armcontainerregistry.RegistryNameStatus](),
	"microsoft.containerregistry/registries/listcredentials":                          reflect.TypeFor[armcontainerregistry.RegistryListCredentialsResult](),
	"microsoft.containerregistry/registries/regeneratecredential":                     reflect.TypeFor[armcontainerregistry.RegistryListCredentialsResult](),
	"microsoft.containerregistry/registries/listusages":                               reflect.TypeFor[armcontainerregistry.RegistryUsageListResult](),
	"microsoft.storage/storageaccounts/regeneratekey":                                 reflect.TypeFor[armstorage.AccountListKeysResult](),
	"microsoft.compute/virtualmachines/attachdetachdatadisks":                         reflect.TypeFor[armcompute.StorageProfile](),
	"microsoft.compute/virtualmachinescalesets/virtualmachines/attachdetachdatadisks": reflect.TypeFor[armcompute.StorageProfile](),
	"microsoft.storage/storageaccounts/listkeys":                                      reflect.TypeFor[armstorage.AccountListKeysResult](),
	"microsoft.storage/checknameavailability":                                         reflect.TypeFor[armstorage.CheckNameAvailabilityResult](),
	"microsoft.compute/sshpublickeys/generatekeypair":                                 reflect.TypeFor[armcompute.SSHPublicKeyGenerateKeyPairResult](),
	"microsoft.compute/register":                                                      reflect.TypeFor[armresources.Provider](),
	"microsoft.network/register":                                                      reflect.TypeFor[armresources.Provider](),
	"microsoft.compute/virtualmachines/instanceview":                                  reflect.TypeFor[armcompute.VirtualMachineInstanceView](),
	"microsoft.compute/virtualmachinescalesets/instanceview":                          reflect.TypeFor[armcompute.VirtualMachineScaleSetInstanceView](),
	"microsoft.compute/virtualmachinescalesets/virtualmachines/instanceview":          reflect.TypeFor[armcompute.VirtualMachineScaleSetVMInstanceView](),
}
