package template_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/template"
)

const group = azure.ID("/subscriptions/s/resourceGroups/g")

// evaluate computes an expression as the output of a template.
func evaluate(t testing.TB, expression string) (any, error) {
	t.Helper()
	document := template.Object{"outputs": template.Object{"o": template.Object{"type": "object", "value": template.Object{
		"v": "[" + expression + "]",
	}}}}
	bound, err := template.Bind(document, template.Deployment{
		ID:           group.Resource("Microsoft.Resources/deployments", "d"),
		Group:        template.Object{"id": string(group), "location": "eastus"},
		Subscription: template.Object{"subscriptionId": "s"}, Tenant: template.Object{"tenantId": "t"},
		Azure: cloud{},
	})
	if err != nil {
		return nil, err
	}
	outputs, err := bound.Outputs()
	if err != nil {
		return nil, err
	}
	return outputs["o"].Value.(template.Object)["v"], nil
}

// cloud is an Azure in which every resource exists and shows what was asked.
type cloud struct{}

func (cloud) Provider(namespace string) template.Object {
	switch namespace {
	case "A.B":
	case "Microsoft.Compute":
		return template.Object{"resourceTypes": []any{template.Object{"resourceType": "virtualMachines",
			"zoneMappings": []any{template.Object{"location": "East US", "zones": []any{"1", "2", "3"}}}}}}
	default:
		return nil
	}
	return template.Object{"namespace": namespace, "resourceTypes": []any{template.Object{"resourceType": "c", "apiVersions": []any{"2"}}}}
}

func (cloud) Zones(location string) map[string]string {
	if location != "eastus" {
		return nil
	}
	return map[string]string{"1": "eastus-az1", "2": "eastus-az2", "3": "eastus-az3"}
}

var errMissing = errors.New("the resource is not there")

func (cloud) Reference(r template.Reference) (template.Object, error) {
	if strings.HasSuffix(string(r.ID), "/missing") {
		return nil, errMissing
	}
	return template.Object{"id": string(r.ID), "properties": template.Object{"version": r.Version}}, nil
}

func (cloud) List(function string, r template.Reference, body any) (any, error) {
	return template.Object{"function": function, "id": string(r.ID), "version": r.Version, "body": body}, nil
}

func TestFunctions(t *testing.T) {
	const table = `
filter(createArray(1, 2, 3), lambda('n', greater(lambdaVariables('n'), 1))) = [2, 3]
filter(createArray('a', 'b'), lambda('x', 'i', equals(lambdaVariables('i'), 1))) = ["b"]
map(range(0, 2), lambda('i', createObject('n', lambdaVariables('i')))) = [{"n": 0}, {"n": 1}]
map(createArray(1), lambda('x', map(createArray(2), lambda('y', add(lambdaVariables('x'), lambdaVariables('y')))))) = [[3]]
mapValues(createObject('a', 'x', 'b', 'y'), lambda('v', toUpper(lambdaVariables('v')))) = {"a": "X", "b": "Y"}
reduce(createArray(1, 2, 3), 10, lambda('sum', 'n', add(lambdaVariables('sum'), lambdaVariables('n')))) = 16
sort(createArray(3, 1, 2), lambda('a', 'b', less(lambdaVariables('a'), lambdaVariables('b')))) = [1, 2, 3]
groupBy(createArray('a1', 'b1', 'a2'), lambda('x', first(lambdaVariables('x')))) = {"a": ["a1", "a2"], "b": ["b1"]}
toObject(createArray('a', 'b'), lambda('x', lambdaVariables('x')), lambda('x', length(lambdaVariables('x')))) = {"a": 1, "b": 1}
toObject(createArray('a'), lambda('x', lambdaVariables('x'))) = {"a": "a"}
parseCidr('10.144.0.0/20') = {"network": "10.144.0.0", "netmask": "255.255.240.0", "broadcast": "10.144.15.255", "firstUsable": "10.144.0.1", "lastUsable": "10.144.15.254", "cidr": 20}
parseCidr('fdad:3236:5555::/48') = {"network": "fdad:3236:5555::", "netmask": "ffff:ffff:ffff::", "firstUsable": "fdad:3236:5555::", "lastUsable": "fdad:3236:5555:ffff:ffff:ffff:ffff:ffff", "cidr": 48}
parseCidr('10.1.1.1/32') = {"network": "10.1.1.1", "netmask": "255.255.255.255", "broadcast": "10.1.1.1", "firstUsable": "10.1.1.1", "lastUsable": "10.1.1.1", "cidr": 32}
cidrSubnet('10.144.0.0/20', 24, 1) = "10.144.1.0/24"
cidrSubnet('fdad:3236:5555::/48', 52, 3) = "fdad:3236:5555:3000::/52"
cidrHost('10.144.3.0/24', 0) = "10.144.3.1"
cidrHost('fdad:3236:5555:3000::/52', 4) = "fdad:3236:5555:3000::5"
dateTimeAdd('2023-01-01 00:00:00Z', 'P1Y') = "2024-01-01T00:00:00Z"
dateTimeAdd('2024-01-01 00:00:00Z', 'P1Y') = "2024-12-31T00:00:00Z"
dateTimeAdd('2023-02-01 00:00:00Z', 'P1M') = "2023-03-03T00:00:00Z"
dateTimeAdd('2020-04-07T14:53:14Z', '-P9DT1H', 'yyyy/M/d H:mm tt') = "2020/3/29 13:53 PM"
dateTimeAdd('2020-04-07T14:53:14Z', 'PT0S', 'u') = "2020-04-07 14:53:14Z"
dateTimeToEpoch('2023-05-02T15:16:13Z') = 1683040573
dateTimeFromEpoch(1683040573) = "2023-05-02T15:16:13Z"
tryGet(createObject('a', createArray(1, 2)), 'A', 1) = 2
tryGet(createObject('a', 1), 'b', 'c') = null
indexFromEnd(createArray(1, 2, 3), 1) = 3
tryIndexFromEnd(createArray(1, 2, 3), 9) = null
pickZones('Microsoft.Compute', 'virtualMachines', 'East US', 2, 1) = ["2", "3"]
pickZones('Microsoft.Compute', 'virtualMachines', 'westus') = []
pickZones('A.B', 'c', 'eastus', 3) = []
greater('A', 'a') = true
greaterOrEquals('A', 'a') = true
less('A', 'a') = false
lessOrEquals('A', 'a') = false
greater('a', 'B') = false
less('apple', 'Banana') = true
distinct(createArray(1, 'a', 1, 'A', 'a')) = [1, "a", "A"]
resourceId('A.B/c/', 'x') = "/subscriptions/s/resourceGroups/g/providers/A.B/c/x"
toLogicalZone('s', 'eastus', 'eastus-az2') = "2"
toPhysicalZones('s', 'eastus', createArray('1', '3')) = ["eastus-az1", "eastus-az3"]
toLogicalZones('s', 'eastus', createArray('eastus-az1', 'westus-az1')) = ["1", ""]
and(true(), true(), false()) = false
or(false(), true()) = true
not(false()) = true
bool('TRUE') = true
bool(0) = false
if(true(), 'a', reference('/missing').x) = "a"
if(equals(1, 2), 'a', 'b') = "b"
equals(createArray(1, 'a'), json('[1, "a"]')) = true
equals('a', 'A') = false
less(1, 2) = true
lessOrEquals('b', 'a') = false
greater('b', 'a') = true
greaterOrEquals(2, 2) = true
coalesce(null(), json('null'), 'x') = "x"
add(2, 3) = 5
sub(2, 3) = -1
mul(2, -3) = -6
div(7, 2) = 3
mod(7, 3) = 1
min(3, 1, 2) = 1
max(createArray(3, 1)) = 3
int('42') = 42
float('1.5') = 1.5
range(5, 3) = [5,6,7]
toLower('ABC') = "abc"
ToUpper('abc') = "ABC"
trim('  a b ') = "a b"
concat('a', 1, true()) = "a1True"
concat(createArray('a'), createArray(1, 2)) = ["a",1,2]
length('äöü') = 3
length(createObject('a', 1)) = 1
empty('') = true
empty(null()) = true
empty(createArray(0)) = false
contains('OneTwo', 'eT') = true
contains('OneTwo', 'et') = false
contains(createObject('Key', 1), 'kEY') = true
contains(createArray('a', 'b'), 'B') = false
startsWith('abcdef', 'AB') = true
endsWith('abcdef', 'EF') = true
indexOf('abcdef', 'CD') = 2
indexOf('abcdef', 'x') = -1
lastIndexOf('äbäb', 'B') = 3
indexOf(createArray('a', 'b', 'a'), 'a') = 0
lastIndexOf(createArray('a', 'b', 'a'), 'a') = 2
first('abc') = "a"
last('abc') = "c"
first(createArray()) = null
last(createArray(1, 2)) = 2
take('abcdef', 2) = "ab"
take(createArray(1, 2), 5) = [1,2]
skip('abcdef', 2) = "cdef"
skip(createArray(1, 2), 5) = []
skip(createArray(1, 2), -1) = [1,2]
replace('123-123', '-', '') = "123123"
split('one,two;three', createArray(',', ';')) = ["one","two","three"]
split('one', ',') = ["one"]
join(createArray('a', 1, true()), '-') = "a-1-True"
substring('one two three', 4, 3) = "two"
substring('abc', 3) = ""
padLeft('123', 6, '0') = "000123"
padLeft(5, 3) = "  5"
format('{0}, {1}. {{{2:N0}}}', 'Hello', 'User', 8175133) = "Hello, User. {8,175,133}"
format('{0:D3}|{0,5}|{0,-5}|{1:X4}|{2:N1}', 7, 255, -1234) = "007|    7|7    |00FF|-1,234.0"
format('{0}', createArray(1)) = "[1]"
string(createObject('b', '<', 'a', null())) = "{\"a\":null,\"b\":\"<\"}"
string(false()) = "False"
json('{"a": [1]}').a[0] = 1
json('{''a'': 1}') = {"a":1}
base64('one, two, three') = "b25lLCB0d28sIHRocmVl"
base64ToString('b25lLCB0d28sIHRocmVl') = "one, two, three"
base64ToJson('eydvbmUnOiAnYScsICd0d28nOiAnYid9') = {"one":"a","two":"b"}
dataUri('Hello') = "data:text/plain;charset=utf8;base64,SGVsbG8="
dataUriToString('data:;base64,SGVsbG8sIFdvcmxkIQ==') = "Hello, World!"
dataUriToString('data:,a%20b') = "a b"
uri('http://contoso.org/firstpath/azuredeploy.json', 'nested/azuredeploy.json') = "http://contoso.org/firstpath/nested/azuredeploy.json"
uri('http://contoso.org/firstpath/', 'x') = "http://contoso.org/firstpath/x"
uri('http://contoso.org', 'x') = "http://contoso.org/x"
uriComponent('http://contoso.com/a b') = "http%3A%2F%2Fcontoso.com%2Fa%20b"
uriComponentToString('http%3A%2F%2Fcontoso.com%2Fä') = "http://contoso.com/ä"
array(1) = [1]
array(createArray(1)) = [1]
union(createArray(1, 2), createArray(2, 3)) = [1,2,3]
union(createObject('a', createObject('x', 1), 'b', 1), createObject('a', createObject('y', 2), 'b', 2)) = {"a":{"x":1,"y":2},"b":2}
intersection(createArray(3, 2, 2), createArray(2, 3, 4)) = [3,2]
intersection(createObject('a', 1, 'b', 2), createObject('a', 1, 'b', 3)) = {"a":1}
flatten(createArray(createArray(1), createArray(2, 3))) = [1,2,3]
items(createObject('b', 2, 'a', 1)) = [{"key":"a","value":1},{"key":"b","value":2}]
objectKeys(createObject('b', 2, 'a', 1)) = ["a","b"]
shallowMerge(createArray(createObject('a', 1), createObject('a', 2))) = {"a":2}
guid('a') = "3703365d-5a9f-59b4-bca7-b9681389e4c1"
uniqueString('test') = "rbgf3xv4ufgzg"
uniqueString('hello', 'world') = "a7wkljktk6wne"
uniqueString('abc') = "cgtzqvhu4i23s"
uniqueString('tyeth') = "zcztcwvu6iyg6"
uniqueString('foo', 'bar', 'baz') = "xzi4ioaxtmth4"
uniqueString('/subscriptions/00000000-0000-0000-0000-000000000000', 'resource-id') = "cwvxuqg24sifi"
uniqueString('/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/my-rg') = "bmg7c6xu4tw46"
resourceId('A.B/c', 'x') = "/subscriptions/s/resourceGroups/g/providers/A.B/c/x"
resourceId('h', 'A.B/c/d', 'x', 'y') = "/subscriptions/s/resourceGroups/h/providers/A.B/c/x/d/y"
resourceId('r', 'h', 'A.B/c', 'x') = "/subscriptions/r/resourceGroups/h/providers/A.B/c/x"
subscriptionResourceId('A.B/c', 'x') = "/subscriptions/s/providers/A.B/c/x"
subscriptionResourceId('r', 'A.B/c', 'x') = "/subscriptions/r/providers/A.B/c/x"
tenantResourceId('A.B/c', 'x') = "/providers/A.B/c/x"
managementGroupResourceId('m', 'A.B/c', 'x') = "/providers/Microsoft.Management/managementGroups/m/providers/A.B/c/x"
extensionResourceId(resourceId('A.B/c', 'x'), 'D.E/f', 'y') = "/subscriptions/s/resourceGroups/g/providers/A.B/c/x/providers/D.E/f/y"
resourceGroup().Location = "eastus"
subscription()['subscriptionId'] = "s"
tenant().tenantId = "t"
deployment().name = "d"
providers('A.B', 'C').apiVersions[0] = "2"
reference('A.B/c/x', '1').version = "1"
reference(resourceId('A.B/c', 'x'), '1', 'Full').id = "/subscriptions/s/resourceGroups/g/providers/A.B/c/x"
listKeys('/x', '1', createObject('a', 1)) = {"function":"listKeys","id":"/x","version":"1","body":{"a":1}}
'it''s' = "it's"
`
	for line := range strings.Lines(strings.TrimSpace(table)) {
		expression, text, _ := strings.Cut(strings.TrimSpace(line), " = ")
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := evaluate(t, expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}

func TestRefusedCalls(t *testing.T) {
	const table = `
newGuid() = default value of a parameter
add(1) = takes 2
copyIndex() = not expected at this location
environment() = environment is not known
concat(createArray(1), 'a') = arrays only, or no array
concat(createObject()) = strings, numbers and booleans
not('a') = a boolean
and(true(), 1) = booleans
if('x', 1, 2) = a boolean as its first argument
less(1, 'a') = two numbers or two strings
div(1, 0) = divide by zero
mod(1, 0) = divide by zero
int('x') = whole number
float('Inf') = is one
range(0, 10001) = 10000
toLower(1) = one string
replace('a', '', 'b') = not empty
substring('abc', 2, 2) = within the string
padLeft('a', 2, 'xx') = one character
padLeft('a', 99999999999) = computes too much
format('{1}', 'a') = no argument
format('{', 'a') = not valid
format('{0:Q}', 1) = not supported
json('{') = is JSON
base64ToString('*') = base64
dataUriToString('x') = a data URI
createObject('a') = pairs
length(1) = a string, an array or an object
union(createArray(), createObject()) = arrays only, or objects only
guid(1) = strings
bool('yes') = 'true' or 'false'
resourceId('A.B/c') = takes 2 or more
resourceId('x', 'y') = a resource type
resourceId('A.B/c/d', 'x') = needs 2 names, 1 are given
subscriptionResourceId('r', 'g', 'A.B/c', 'x') = a resource type
managementGroupResourceId('A.B/c/d', 'x', 'y') = a management group
providers('X') = does not know the namespace
providers('A.B', 'x') = does not know the type
reference('/missing') = the resource is not there
parameters('p') = is not found
variables(1) = one name
createObject('a', 1).b = available properties are 'a'
createArray(1)[1] = out of bounds
toLower('a').b = neither an object nor an array
`
	for line := range strings.Lines(strings.TrimSpace(table)) {
		expression, says, _ := strings.Cut(strings.TrimSpace(line), " = ")
		_, err := evaluate(t, expression)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "outputs.o.value.v: ["+expression+"]: ") {
			t.Errorf("%s: %v\nwant it to say %q", expression, err, says)
		}
	}
	if _, err := evaluate(t, "reference('/missing')"); !errors.Is(err, errMissing) {
		t.Errorf("the error of Azure is not behind %v", err)
	}
}
