package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

func TestEveryReplyHasTheHeadersOfARM(t *testing.T) {
	a := start(t, core.Options{})
	for _, got := range []answer{a.do("PUT", group, `{"location":"eastus"}`), a.do("GET", table, ""), a.do("DELETE", table, "")} {
		for name, want := range map[string]string{
			"Cache-Control": "no-cache", "Pragma": "no-cache", "Expires": "-1", "X-Content-Type-Options": "nosniff",
			"Strict-Transport-Security": "max-age=31536000; includeSubDomains",
		} {
			if v := got.header.Get(name); v != want {
				t.Errorf("%d: %s: %q, want %q", got.status, name, v, want)
			}
		}
		for _, name := range []string{"x-ms-request-id", "x-ms-correlation-request-id", "x-ms-routing-request-id"} {
			if got.header.Get(name) == "" {
				t.Errorf("%d: no %s", got.status, name)
			}
		}
	}
}

func TestErrorsOfTheGateway(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	sub := "/subscriptions/" + core.DefaultSubscription
	for _, c := range []struct {
		method, url, body string
		status            int
		code              string
	}{
		{"GET", table, "", 404, "ResourceNotFound"},
		{"GET", sub + "/resourceGroups/none", "", 404, "ResourceGroupNotFound"},
		{"GET", sub + "/resourceGroups/none/providers/Microsoft.Network/routeTables", "", 404, "ResourceGroupNotFound"},
		{"PUT", sub + "/resourceGroups/none/providers/Microsoft.Network/routeTables/x", `{"location":"eastus"}`, 404,
			"ResourceGroupNotFound"},
		{"DELETE", sub + "/resourceGroups/none", "", 404, "ResourceGroupNotFound"},
		{"GET", group + "/providers/Microsoft.Nothing/things/x", "", 404, "InvalidResourceNamespace"},
		{"GET", group + "/providers/Microsoft.Network/things/x", "", 404, "InvalidResourceType"},
		{"PUT", table, `{}`, 400, "LocationRequired"},
		{"PUT", table, `{"location":`, 400, "InvalidRequestContent"},
		{"PUT", table, `[1]`, 400, "InvalidRequestContent"},
		{"PUT", table, `{"location":"eastus","tags":{"a":1}}`, 400, "InvalidRequestContent"},
		{"PUT", table, `{"location":["eastus"]}`, 400, "InvalidRequestContent"},
		{"PUT", table, `{"location":"eastus","properties":[]}`, 400, "InvalidRequestContent"},
		{"PUT", table, strings.Repeat(" ", 4<<20) + `{}`, 413, "RequestContentTooLarge"},
		{"GET", table + "?api-version=soon", "", 400, "InvalidApiVersionParameter"},
		{"GET", strings.Replace(table, "/providers", "//providers", 1), "", 404, "ResourceNotFound"},
		{"PUT", table, `{"location":"nowhere"}`, 400, "LocationNotAvailableForResourceType"},
		{"PUT", sub + "/resourceGroups/new", `{"location":"nowhere"}`, 400, "LocationNotAvailableForResourceGroup"},
		{"GET", group + "/providers/Microsoft.Network/routeTables?$top=many", "", 400, "InvalidTopInQueryString"},
		{"GET", group + "/providers/Microsoft.Network/routeTables?$top=0", "", 400, "InvalidTopInQueryString"},
		{"GET", group + "/providers/Microsoft.Network/routeTables?$skiptoken=5", "", 400, "InvalidSkipToken"},
		{"GET", "/nothing", "", 404, "NotFound"},
		{"GET", "/subscriptions/other/resourceGroups", "", 404, "SubscriptionNotFound"},
		{"GET", table + "/routes", "", 404, "ResourceNotFound"},
		{"PUT", table + "/routes/r", `{}`, 404, "ParentResourceNotFound"},
		{"POST", table, "", 405, "MethodNotAllowed"},
		{"OPTIONS", table, "", 405, "MethodNotAllowed"},
		{"GET", table + "/routes/r", "", 404, "NotFound"},
		{"PUT", group, `{"location":"westus"}`, 409, "InvalidResourceGroupLocation"},
		{"PUT", sub + "/resourceGroups/bad%20name", `{"location":"westus"}`, 400, "InvalidResourceGroup"},
	} {
		got := a.do(c.method, c.url, c.body)
		if got.status != c.status || got.code() != c.code {
			t.Errorf("%s %s: %d %v, want %d %s", c.method, c.url, got.status, got.body, c.status, c.code)
		}
		gateway := got.header.Get("x-ms-failure-cause") == "gateway"
		if own := c.code == "NotFound" && strings.Contains(c.url, "routes"); gateway == own {
			t.Errorf("%s %s: made by the gateway: %v", c.method, c.url, gateway)
		}
	}
	r := httptest.NewRequest("GET", table, nil)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "MissingApiVersionParameter") {
		t.Errorf("without api-version: %d %s", w.Code, w.Body)
	}
}

func TestAResourceHasFiftyTagsAtMost(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	body := func(count int) string {
		var tags []string
		for i := range count {
			tags = append(tags, fmt.Sprintf(`"t%d":"x"`, i))
		}
		return `{"location":"eastus","tags":{` + strings.Join(tags, ",") + `}}`
	}
	a.must("PUT", table, body(50))
	for _, method := range []string{"PUT", "PATCH"} {
		if got := a.do(method, table, body(51)); got.status != 400 || got.code() != "InvalidRequestContent" {
			t.Errorf("%s: %d %v", method, got.status, got.body)
		}
	}
}

func TestReservedTags(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", table, `{"location":"eastus","tags":{"k8s-azure-service":"x","my-windows":"x"}}`)
	for _, name := range []string{"microsoft", "Azure-team", "WINDOWS"} {
		for _, method := range []string{"PUT", "PATCH"} {
			got := a.do(method, table, fmt.Sprintf(`{"location":"eastus","tags":{%q:"x"}}`, name))
			if got.status != 400 || got.code() != "InvalidTagName" {
				t.Errorf("%s of the tag %s: %d %v", method, name, got.status, got.body)
			}
		}
	}
}

func TestLengthsOfTags(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	body := func(name, value int) string {
		return fmt.Sprintf(`{"location":"eastus","tags":{%q:%q}}`, strings.Repeat("n", name), strings.Repeat("ü", value))
	}
	a.must("PUT", table, body(512, 256))
	for _, method := range []string{"PUT", "PATCH"} {
		got := a.do(method, table, body(1, 257))
		want := "Tag value too large.  Following tag value '" + strings.Repeat("ü", 257) +
			"' exceeded the maximum length. Maximum allowed length for tag value - '256' characters."
		if got.status != 400 || got.code() != "InvalidTagValueLength" || behaviour.Text(got.body, "error.message") != want {
			t.Errorf("%s: %d %v", method, got.status, got.body)
		}
		if got := a.do(method, table, body(513, 1)); got.status != 400 || got.code() != "InvalidTagName" {
			t.Errorf("%s: %d %v", method, got.status, got.body)
		}
	}
}

func TestNetworkErrorsAlwaysHaveDetails(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	got := a.do("PUT", table, `{"location":"eastus","properties":{"routes":[{"name":"r"}]}}`)
	if details, ok := behaviour.At(got.body, "error.details").([]any); got.status != 400 || !ok || len(details) != 0 {
		t.Errorf("%d %v", got.status, got.body)
	}
}

func TestPathsAreTheSameInAnyCase(t *testing.T) {
	a := start(t, core.Options{})
	a.must("PUT", "/subscriptions/"+core.DefaultSubscription+"/resourcegroups/rg", `{"location":"East US"}`)
	a.must("PUT", strings.Replace(table, "Microsoft.Network", "microsoft.network", 1), `{"location":"East US"}`)
	for _, path := range []string{table, strings.ToLower(table), strings.ToUpper(table), table + "/"} {
		got := a.must("GET", path, "")
		if got.body["id"] != table || got.body["location"] != "eastus" || got.body["type"] != "Microsoft.Network/routeTables" {
			t.Errorf("GET %s: %v", path, got.body)
		}
	}
	if got := a.must("PUT", strings.ToUpper(table), `{"location":"eastus"}`); got.status != 200 || got.body["name"] != "rt" {
		t.Errorf("PUT in another case: %d %v", got.status, got.body)
	}
	if got := a.do("HEAD", group, ""); got.status != 204 {
		t.Errorf("HEAD of a group: %d", got.status)
	}
}

func TestPreconditions(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	created := a.must("PUT", table, `{"location":"eastus"}`)
	got := a.do("PUT", table, `{"location":"eastus"}`, "If-Match", "invalid")
	details := behaviour.Objects(got.body, "error.details")
	if got.status != 412 || len(details) != 1 || details[0]["code"] != "PreconditionFailedEtagMismatch" ||
		!strings.Contains(fmt.Sprint(details[0]["message"]), `W/"invalid"`) {
		t.Errorf("network, other etag: %d %v", got.status, got.body)
	}
	current := behaviour.Text(a.must("GET", table, "").body, "etag")
	if created.header.Get("ETag") != "" || !strings.HasPrefix(current, `W/"`) {
		t.Errorf("etag %q, header of PUT %q", current, created.header.Get("ETag"))
	}
	if got := a.do("PUT", table, `{"location":"eastus"}`, "If-Match", current); got.status != 200 {
		t.Errorf("network, right etag: %d %v", got.status, got.body)
	}
	if got := a.do("DELETE", table, "", "If-Match", current); got.status != 412 {
		t.Errorf("network, delete with the etag of before: %d", got.status)
	}
	if got := a.do("PUT", table, `{"location":"eastus"}`, "If-None-Match", "*"); got.status != 412 {
		t.Errorf("network, If-None-Match on what is there: %d", got.status)
	}
	if got := a.do("PUT", table+"2", `{"location":"eastus"}`, "If-Match", "*"); got.status != 412 {
		t.Errorf("network, If-Match * on what is not there: %d", got.status)
	}
	a.must("PUT", machine, `{"location":"eastus"}`)
	if got := a.do("PUT", machine, `{"location":"eastus"}`, "If-Match", "invalid"); got.status != 412 ||
		behaviour.Text(got.body, "error.message") != `Etag provided in if-match header "invalid" does not match etag "2" of resource.` {
		t.Errorf("compute, other etag: %d %v", got.status, got.body)
	}
	if got := a.must("PUT", machine, `{"location":"eastus","tags":{"a":"b"}}`); got.header.Get("ETag") != `"3"` {
		t.Errorf("compute, etag after a change: %q", got.header.Get("ETag"))
	}
}

func TestUnchangedScaleKeepsItsEtag(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", machine, `{"location":"eastus","properties":{"vmId":"x"}}`)
	first := a.must("GET", machine, "")
	a.must("PUT", machine, `{"location":"eastus","properties":{"vmId":"x"}}`)
	if got := a.must("GET", machine, ""); got.body["etag"] != first.body["etag"] || got.body["etag"] != `"1"` {
		t.Errorf("etag %v, before %v", got.body["etag"], first.body["etag"])
	}
}

func TestPatch(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", table, `{"location":"eastus","tags":{"a":"1"},"properties":{"x":1}}`)
	a.must("PATCH", table, `{"tags":{"b":"2"},"properties":{"x":2}}`)
	got := a.must("GET", table, "")
	if x, _ := behaviour.Int(got.body, "properties.x"); x != 1 || behaviour.Text(got.body, "tags.b") != "2" ||
		behaviour.At(got.body, "tags.a") != nil {
		t.Errorf("network PATCH is of tags only: %v", got.body)
	}
	a.must("PUT", machine, `{"location":"eastus","properties":{"a":{"b":1,"c":2},"l":[1,2]}}`)
	a.must("PATCH", machine, `{"properties":{"a":{"b":null,"d":3},"l":[3]}}`)
	got = a.must("GET", machine, "")
	text, err := json.Marshal(behaviour.Object{"a": behaviour.At(got.body, "properties.a"), "l": behaviour.At(got.body, "properties.l")})
	if err != nil || string(text) != `{"a":{"c":2,"d":3},"l":[3]}` {
		t.Errorf("compute PATCH merges: %s, %v", text, err)
	}
	if got := a.do("PATCH", machine+"2", `{}`); got.status != 404 || got.code() != "ResourceNotFound" {
		t.Errorf("PATCH of what is not there: %d %v", got.status, got.body)
	}
}

// A client that deletes what it has listed, before it reads on, sees every resource.
func TestDeletionsBetweenPagesSkipNothing(t *testing.T) {
	const n, size = 21, 4
	for name, c := range map[string]struct{ list, one string }{
		"stored":               {group + "/providers/Microsoft.Network/routeTables", group + "/providers/Microsoft.Network/routeTables/t%02d"},
		"inside of a document": {table + "/routes", table + "/routes/t%02d"},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, core.Options{})
			a.group()
			if strings.HasPrefix(c.list, table) {
				a.must("PUT", table, `{"location":"eastus"}`)
			}
			for i := range n {
				a.must("PUT", fmt.Sprintf(c.one, i), `{"location":"eastus","properties":{"addressPrefix":"10.0.0.0/8"}}`)
			}
			seen := 0
			for url := fmt.Sprintf("%s?$top=%d", c.list, size); url != ""; {
				got := a.must("GET", url, "")
				for _, x := range behaviour.Objects(got.body, "value") {
					seen++
					a.must("DELETE", behaviour.Text(x, "id"), "")
				}
				url = behaviour.Text(got.body, "nextLink")
			}
			if seen != n {
				t.Errorf("saw %d of %d", seen, n)
			}
		})
	}
}

func TestLists(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", account, `{"location":"eastus"}`)
	const n = 5
	for i := range n {
		a.must("PUT", fmt.Sprintf("%s/shares/s%d", account, i), `{}`)
	}
	url, pages, names := account+"/shares?$filter=any", 0, []string{}
	for url != "" {
		got := a.must("GET", url, "")
		for _, s := range behaviour.Objects(got.body, "value") {
			names = append(names, behaviour.Text(s, "name"))
		}
		url, pages = behaviour.Text(got.body, "nextLink"), pages+1
		if url != "" && (!strings.HasPrefix(url, "http://example.com/") || !strings.Contains(url, "%24skiptoken=")) {
			t.Fatalf("nextLink %q", url)
		}
	}
	if pages != 3 || strings.Join(names, " ") != "s0 s1 s2 s3 s4" {
		t.Errorf("%d pages with %v", pages, names)
	}
	if got := a.must("GET", account+"/shares?$top=1", ""); len(behaviour.Objects(got.body, "value")) != 1 || got.body["nextLink"] == nil {
		t.Errorf("$top=1: %v", got.body)
	}
	a.must("PUT", table, `{"location":"eastus"}`)
	for _, scope := range []string{group, "/subscriptions/" + core.DefaultSubscription} {
		got := a.must("GET", scope+"/providers/Microsoft.Network/routeTables", "")
		if len(behaviour.Objects(got.body, "value")) != 1 || got.body["nextLink"] != nil {
			t.Errorf("list in %s: %v", scope, got.body)
		}
	}
	if got := a.must("GET", group+"/providers/Microsoft.Network/publicIPAddresses", ""); fmt.Sprint(got.body) != "map[value:[]]" {
		t.Errorf("empty list: %v", got.body)
	}
	if got := a.must("GET", "/subscriptions/"+core.DefaultSubscription+"/resourcegroups",
		""); len(behaviour.Objects(got.body, "value")) != 1 {
		t.Errorf("groups: %v", got.body)
	}
}

func TestBackReferencesAndInUse(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	a.must("PUT", table, `{"location":"eastus"}`)
	subnet := network + "/subnets/s"
	// A whole resource nested in a request stands for a reference to it.
	nested := a.must("PUT", network, `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"`+table+
		`","properties":{"routes":[]}}}}]}}`)
	if ref := behaviour.Objects(nested.body,
		"properties.subnets")[0]; fmt.Sprint(behaviour.At(ref, "properties.routeTable")) != "map[id:"+table+"]" {
		t.Errorf("nested resource: %v", ref)
	}
	got := a.must("GET", table, "")
	if users := behaviour.Objects(got.body, "properties.subnets"); len(users) != 1 || users[0]["id"] != subnet {
		t.Errorf("back-reference: %v", got.body)
	}
	if got := a.do("DELETE", table, ""); got.status != 400 || got.code() != "InUseRouteTableCannotBeDeleted" ||
		!strings.Contains(behaviour.Text(got.body, "error.message"), subnet) {
		t.Errorf("delete of a table in use: %d %v", got.status, got.body)
	}
	a.must("PUT", disk, `{"location":"eastus","properties":{"subnet":{"id":"`+subnet+`"}}}`)
	for method, url := range map[string]string{"DELETE": network, "PUT": network} {
		if got := a.do(method, url, `{"location":"eastus"}`); got.status != 400 || got.code() != "InUseSubnetCannotBeDeleted" {
			t.Errorf("%s that takes away a subnet in use: %d %v", method, got.status, got.body)
		}
	}
	if got := a.do("DELETE", subnet, ""); got.code() != "InUseSubnetCannotBeDeleted" {
		t.Errorf("delete of a subnet in use: %d %v", got.status, got.body)
	}
	a.must("DELETE", disk, "")
	a.must("DELETE", subnet, "")
	a.must("DELETE", table, "")
	if got := a.do("GET", table, ""); got.status != 404 {
		t.Errorf("the table is still there: %d", got.status)
	}
}

func TestFieldsOfAzureAreKept(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	first := a.must("PUT", table, `{"location":"eastus","properties":{"resourceGuid":"mine"}}`)
	guid := behaviour.Text(first.body, "properties.resourceGuid")
	if len(guid) != 36 {
		t.Fatalf("resourceGuid %q", guid)
	}
	second := a.must("PUT", table,
		`{"location":"eastus","id":"x","name":"y","type":"z","etag":"e","properties":{"provisioningState":"Failed","resourceGuid":null}}`)
	if behaviour.Text(second.body, "properties.resourceGuid") != guid || second.body["id"] != table || second.body["name"] != "rt" {
		t.Errorf("after a PUT with other values: %v", second.body)
	}
	if got := a.must("GET", table, ""); state(got) != "Succeeded" {
		t.Errorf("provisioningState %s", state(got))
	}
}

func TestAPanicIsAnErrorAndChangesNothing(t *testing.T) {
	var log bytes.Buffer
	a := start(t, core.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	a.group()
	a.must("PUT", table, `{"location":"eastus","tags":{"a":"b"}}`)
	if got := a.do("PUT", table, `{"location":"eastus","properties":{"panic":true}}`); got.status != 500 ||
		got.code() != "InternalServerError" {
		t.Errorf("%d %v", got.status, got.body)
	}
	if got := a.must("GET", table, ""); behaviour.Text(got.body, "tags.a") != "b" {
		t.Errorf("the table is %v", got.body)
	}
	if !strings.Contains(log.String(), "a mistake in a behaviour") {
		t.Errorf("log: %s", log.String())
	}
}

func TestRequestLog(t *testing.T) {
	var log bytes.Buffer
	a := start(t, core.Options{RequestLog: &log})
	a.group()
	a.do("GET", table, "", "User-Agent", "tester/1")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("log of two requests:\n%s", log.String())
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"method": "GET", "path": table, "apiVersion": "2025-05-01", "status": 404.0,
		"errorCode": "ResourceNotFound", "userAgent": "tester/1", "bytesIn": 0.0} {
		if line[key] != want {
			t.Errorf("%s: %v, want %v", key, line[key], want)
		}
	}
}

// FuzzFront sends anything: the answer is always a reply of ARM and never a 500.
func FuzzFront(f *testing.F) {
	for _, seed := range []struct{ method, path, query, body, match string }{
		{"PUT", table, "api-version=2025-05-01",
			`{"location":"eastus","properties":{"routes":[{"name":"a","properties":{"addressPrefix":"10.0.0.0/8"}}]}}`, ""},
		{"PATCH", table + "/routes/a", "api-version=2025-05-01", `{"properties":null}`, "*"},
		{"GET", group + "/providers/Microsoft.Network/routeTables/", "api-version=2025-05-01&$top=-1&$skiptoken=x", "", `W/"`},
		{"DELETE", "/subscriptions/" + core.DefaultSubscription +
			"/resourceGroups/rg/providers/Microsoft.Network/routeTables/rt/providers/Microsoft.Authorization/roleAssignments/x",
			"api-version=2022-04-01", "", ""},
		{"POST", machine + "/powerOff", "api-version=2025-05-01", `{"properties":[]}`, ""},
		{"PUT", "/providers", "api-version=%zz", `{"properties":{"routes":{"a":1}}}`, ""},
		{"PUT", network, "api-version=2025-05-01", `{"location":{"a":1},"properties":{"subnets":[1,null,{"name":7}]}}`, ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.body, seed.match)
	}
	quiet := slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, method, path, query, body, match string) {
		r, err := http.NewRequest(method, "http://azure/", strings.NewReader(body))
		if err != nil {
			return // net/http lets no such request through
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("If-Match", match)
		a := start(t, core.Options{Log: quiet})
		a.group()
		a.must("PUT", table, `{"location":"eastus"}`)
		a.must("PUT", machine, `{"location":"eastus"}`)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %s?%s %s: %d %s", method, path, query, body, w.Code, w.Body)
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: reply is not JSON: %s", method, path, w.Body)
		}
	})
}
