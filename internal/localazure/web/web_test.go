package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/fabric/wiring"
	"kaz/internal/localazure/providers"
	"kaz/internal/localazure/web"
)

const token = "TOKEN"

const group = "/subscriptions/" + core.DefaultSubscription + "/resourceGroups/kaz"

// fixture is a local Azure with its web page, and a browser that has opened the link.
type fixture struct {
	t      *testing.T
	azure  *core.Emulator
	site   *web.Site
	server *httptest.Server
	client *http.Client
}

// start starts a local Azure with a web page.
func start(t *testing.T, change func(*web.Options, *core.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t}
	recorder := web.NewRecorder()
	done := make(chan struct{})
	settings := core.Options{Providers: providers.All(), Written: recorder.Written, RequestLog: recorder}
	options := web.Options{Recorder: recorder, Token: token, Done: done}
	if change != nil {
		change(&options, &settings)
	}
	var err error
	if f.azure, err = core.New(settings); err != nil {
		t.Fatal(err)
	}
	options.Azure = f.azure
	if f.site, err = web.New(options); err != nil {
		t.Fatal(err)
	}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.site.Handler(r.URL.Path).ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	t.Cleanup(func() { close(done) })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.client = &http.Client{Jar: jar}
	t.Cleanup(f.client.CloseIdleConnections)
	if status, _ := f.get("?token=" + token); status != http.StatusOK {
		t.Fatalf("the link: %d", status)
	}
	return f
}

// azureSends sends a request to the local Azure, and returns its status.
func (f *fixture) azureSends(method, path, body string) int {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, "http://azure"+path+"?api-version=2024-05-01", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "<b>tool</b>/1.0 (x)")
	answer, err := f.azure.Transport().RoundTrip(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// put creates a resource.
func (f *fixture) put(path, body string) {
	f.t.Helper()
	if status := f.azureSends(http.MethodPut, path, body); status > 299 {
		f.t.Fatalf("PUT %s: %d", path, status)
	}
}

// begin creates a resource, and does not wait for the reply.
func (f *fixture) begin(path, body string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://azure"+path+"?api-version=2024-05-01", strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if answer, err := f.azure.Transport().RoundTrip(r); err == nil {
		answer.Body.Close()
		f.t.Fatalf("PUT %s: it replied at once", path)
	}
}

// fill creates a group with a network, an address and a load balancer.
func (f *fixture) fill() {
	f.t.Helper()
	network := group + "/providers/Microsoft.Network/"
	f.put(group, `{"location":"eastus"}`)
	f.put(network+"virtualNetworks/net", `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)
	f.put(network+"networkInterfaces/nic", `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{
		"subnet":{"id":"`+network+`virtualNetworks/net/subnets/nodes"}}}]}}`)
	f.put(network+"publicIPAddresses/front", `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)
	lb := network + "loadBalancers/lb"
	f.put(lb, `{"location":"eastus","sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[{"name":"f","properties":{"publicIPAddress":{"id":"`+network+`publicIPAddresses/front"}}}],
		"backendAddressPools":[{"name":"nodes"}],
		"loadBalancingRules":[{"name":"http","properties":{"protocol":"Tcp","frontendPort":80,"backendPort":30080,
			"frontendIPConfiguration":{"id":"`+lb+`/frontendIPConfigurations/f"},"backendAddressPool":{"id":"`+lb+`/backendAddressPools/nodes"}}}]}}`)
}

// get reads a page, and returns its status and its text.
func (f *fixture) get(path string) (int, string) {
	f.t.Helper()
	return f.do(http.MethodGet, path, nil)
}

func (f *fixture) do(method, path string, form url.Values) (int, string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.server.URL+web.Path+path, strings.NewReader(form.Encode()))
	if err != nil {
		f.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// page reads a page as a tree.
func (f *fixture) page(path string) *html.Node {
	f.t.Helper()
	status, text := f.get(path)
	if status != http.StatusOK {
		f.t.Fatalf("%s: %d %s", path, status, text)
	}
	return parsed(f.t, text)
}

func parsed(t *testing.T, text string) *html.Node {
	t.Helper()
	tree, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// all are the elements with a class, or with a name if it has no dot.
func all(tree *html.Node, what string) (found []*html.Node) {
	class, isClass := strings.CutPrefix(what, ".")
	for n := range tree.Descendants() {
		if n.Type == html.ElementNode && (!isClass && n.Data == what || isClass && slices.Contains(strings.Fields(attribute(n, "class")), class)) {
			found = append(found, n)
		}
	}
	return found
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf is the text of an element, with single spaces.
func textOf(n *html.Node) string {
	var words []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			words = append(words, strings.Fields(d.Data)...)
		}
	}
	return strings.Join(words, " ")
}

// raw is the text of an element as it is.
func raw(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// texts are the texts of the elements with a class or a name.
func texts(tree *html.Node, what string) (found []string) {
	for _, n := range all(tree, what) {
		found = append(found, textOf(n))
	}
	return found
}

// card is the card of a resource on the map.
func card(tree *html.Node, name string) *html.Node {
	for _, class := range []string{".card", ".mini"} {
		for _, c := range all(tree, class) {
			if names := all(c, ".name"); len(names) > 0 && textOf(names[0]) == name {
				return c
			}
		}
	}
	return nil
}

// TestGuard checks which requests reach the page.
func TestGuard(t *testing.T) {
	f := start(t, nil)
	for name, test := range map[string]struct {
		change func(r *http.Request)
		want   int
	}{
		"as it should be":     {func(*http.Request) {}, 200},
		"IPv6":                {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:1234", "[::1]:80" }, 200},
		"name of the host":    {func(r *http.Request) { r.Host = "localhost:80" }, 200},
		"the page itself":     {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		"from the address":    {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
		"its own origin":      {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:80") }, 200},
		"no cookie":           {func(r *http.Request) { r.Header.Del("Cookie") }, 401},
		"wrong cookie":        {func(r *http.Request) { r.Header.Set("Cookie", "kaz-web-80=other") }, 401},
		"cookie of a port":    {func(r *http.Request) { r.Header.Set("Cookie", "kaz-web-81="+token) }, 401},
		"another machine":     {func(r *http.Request) { r.RemoteAddr = "10.0.0.4:1234" }, 403},
		"no address":          {func(r *http.Request) { r.RemoteAddr = "@" }, 403},
		"rebound name":        {func(r *http.Request) { r.Host = "example.com:80" }, 403},
		"address of metadata": {func(r *http.Request) { r.Host = "169.254.169.254" }, 403},
		"another site":        {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"another port":        {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"another origin":      {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:81") }, 403},
		"opaque origin":       {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"long address":        {func(r *http.Request) { r.RequestURI = web.Path + strings.Repeat("x", 9000) }, 414},
		"wrong token":         {func(r *http.Request) { r.URL.RawQuery = "token=other" }, 403},
		"no token":            {func(r *http.Request) { r.URL.RawQuery = "token=" }, 403},
		"token in a POST":     {func(r *http.Request) { r.URL.RawQuery, r.Method = "token="+token, http.MethodPost }, 403},
		"token":               {func(r *http.Request) { r.URL.RawQuery = "token=" + token }, 303},
		"unknown":             {func(r *http.Request) { r.URL.Path = web.Path + "nothing" }, 404},
		"another method":      {func(r *http.Request) { r.Method = http.MethodPut }, 404},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:80"+web.Path, nil)
		r.RemoteAddr = "127.0.0.1:1234"
		r.Header.Set("Cookie", "kaz-web-80="+token)
		test.change(r)
		w := httptest.NewRecorder()
		f.site.Handler(web.Path).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d: %.200s", name, w.Code, test.want, w.Body)
		}
		for header, part := range map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
			if got := w.Header().Get(header); !strings.Contains(got, part) || strings.Contains(got, "unsafe") {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
	}
	if f.site.Handler("/kaz/admin/status") != nil || f.site.Handler("/kaz/webs") != nil {
		t.Error("it answers paths of others")
	}
}

// TestToken checks that the token of the link becomes a cookie that no script and no other site gets.
func TestToken(t *testing.T) {
	f := start(t, nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:8443"+web.Path+"traffic?method=GET&token="+token, nil)
	r.RemoteAddr = "127.0.0.1:1234"
	w := httptest.NewRecorder()
	f.site.Handler(web.Path).ServeHTTP(w, r)
	cookies := w.Result().Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || !cookies[0].Secure || cookies[0].SameSite != http.SameSiteStrictMode ||
		cookies[0].Path != web.Path || cookies[0].Name != "kaz-web-8443" {
		t.Errorf("cookies %v", cookies)
	}
	if got := w.Header().Get("Location"); got != web.Path+"traffic?method=GET" {
		t.Errorf("it leads to %s", got)
	}
}

// TestMap checks that the map has the resources, what they are in, and what they refer to.
func TestMap(t *testing.T) {
	f := start(t, nil)
	if got := texts(f.page(""), ".empty"); len(got) != 1 {
		t.Errorf("an empty Azure: %q", got)
	}
	f.fill()
	tree := f.page("")
	lb := card(tree, "lb")
	if lb == nil {
		t.Fatal("no load balancer")
	}
	if got, want := texts(lb, "li"), []string{"frontend f front", "rule http Tcp 80 → 30080", "pool nodes 0 members"}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if address := card(tree, "front"); attribute(lb, "data-to") != attribute(address, "data-r") || len(texts(address, ".fact")) != 1 {
		t.Errorf("the address %s, and the load balancer refers to %s", attribute(address, "data-r"), attribute(lb, "data-to"))
	}
	subnets := all(card(tree, "net"), ".subnet")
	if len(subnets) != 1 || card(subnets[0], "nic") == nil {
		t.Errorf("the subnet: %q", texts(card(tree, "net"), ".subnet"))
	}
	if !slices.Contains(strings.Fields(attribute(lb, "class")), "created") {
		t.Error("a new resource does not glow")
	}
	if got := texts(tree, "option"); !slices.Contains(got, "kaz") || !slices.Contains(got, "Network/loadBalancers") {
		t.Errorf("filters %q", got)
	}
	if got := textOf(all(tree, ".news")[0]); !strings.Contains(got, "LB lb created") || !strings.Contains(got, "PUT · <b>tool</b>/1.0") {
		t.Errorf("last changes: %s", got)
	}
	if len(all(tree, "b")) > 0 {
		t.Error("a text of a client became an element")
	}
	f.azureSends(http.MethodDelete, group+"/providers/Microsoft.Network/loadBalancers/lb", "")
	tree = f.page("")
	if card(tree, "lb") != nil || !strings.Contains(textOf(all(tree, ".news")[0]), "LB lb deleted") {
		t.Errorf("after a delete: %s", textOf(all(tree, ".news")[0]))
	}
}

// TestHealthOfMembers checks that the map and the page of a load balancer show which members are healthy, and that viewers hear of changes.
func TestHealthOfMembers(t *testing.T) {
	f := start(t, nil)
	f.fill()
	lb := azure.ID(group + "/providers/Microsoft.Network/loadBalancers/lb")
	rule := lb.Child("loadBalancingRules", "HTTP") // Azure does not distinguish letter case
	a, b := netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.0.5")
	row := func() string { return texts(card(f.page(""), "lb"), "li")[1] }
	members := func() []string { return texts(f.page("resource?id="+url.QueryEscape(string(lb))), ".mini") }
	if got := row(); strings.Contains(got, "healthy") || len(members()) > 0 {
		t.Errorf("nothing probes, and the rule is %q with %q", got, members())
	}
	_, stream := f.stream()
	news := bufio.NewScanner(stream)
	for _, step := range []struct {
		healthy []netip.Addr
		row     string
		members []string
		state   string
	}{
		{nil, "rule http Tcp 80 → 30080 healthy 0 of 2", []string{"10.0.0.4 not healthy", "10.0.0.5 not healthy"}, "bad"},
		{[]netip.Addr{b}, "rule http Tcp 80 → 30080 healthy 1 of 2", []string{"10.0.0.4 not healthy", "10.0.0.5 healthy"}, "warn"},
		{[]netip.Addr{a, b}, "rule http Tcp 80 → 30080 healthy 2 of 2", []string{"10.0.0.4 healthy", "10.0.0.5 healthy"}, "good"},
	} {
		f.site.ShowBalancers([]wiring.Balancer{{Rule: rule, Backends: []netip.Addr{a, b}, Healthy: step.healthy}})
		for news.Scan() && news.Text() != "event: changed" {
			continue
		}
		if got := row(); got != step.row {
			t.Errorf("rule %q, want %q", got, step.row)
		}
		if got := members(); !slices.Equal(got, step.members) {
			t.Errorf("members %q, want %q", got, step.members)
		}
		if got := all(card(f.page(""), "lb"), ".health"); len(got) != 1 || attribute(got[0], "class") != "health "+step.state {
			t.Errorf("classes of %d elements, want %s", len(got), step.state)
		}
	}
	f.site.ShowBalancers(nil)
	if got := row(); strings.Contains(got, "healthy") {
		t.Errorf("nothing probes any more, and the rule is %q", got)
	}
}

// TestHealthOfGateways checks that the map and the page of an application gateway show which members of its pools are healthy, as soon as
// something probes them. Of what several settings find, the worst counts.
func TestHealthOfGateways(t *testing.T) {
	f := start(t, nil)
	f.fill()
	gw := azure.ID(group + "/providers/Microsoft.Network/applicationGateways/gw")
	document := behaviour.Object{"location": "westeurope", "properties": behaviour.Object{"provisioningState": "Succeeded",
		"backendAddressPools": []any{behaviour.Object{"name": "web"}, behaviour.Object{"name": "empty"}}}}
	set := func(all ...appgateway.Health) {
		t.Helper()
		if err := f.azure.Do(func(w behaviour.World) error {
			doc := behaviour.Clone(document)
			if len(all) > 0 {
				appgateway.SetHealth(doc, all)
			}
			w.Put(gw, doc)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() []string { return texts(card(f.page(""), "gw"), "li") }
	members := func() []string { return texts(f.page("resource?id="+url.QueryEscape(string(gw))), ".mini") }
	set()
	if got := rows(); !slices.Equal(got, []string{"pool web 0 members", "pool empty 0 members"}) || len(members()) > 0 {
		t.Errorf("nothing probes, and the pools are %q with %q", got, members())
	}
	for _, step := range []struct {
		first, second string // what two settings find of the second member
		want, state   string
		member        string
	}{
		{"Unknown", "Unknown", "healthy 1 of 2", "warn", "web2.example not probed yet"},
		{"Healthy", "Unhealthy", "healthy 1 of 2", "warn", "web2.example not healthy"},
		{"Unhealthy", "Healthy", "healthy 1 of 2", "warn", "web2.example not healthy"},
		{"Healthy", "Healthy", "healthy 2 of 2", "good", "web2.example healthy"},
	} {
		set(appgateway.Health{Pool: "WEB", Setting: "a", Address: "10.0.0.4", State: "Healthy"}, // Azure does not distinguish letter case
			appgateway.Health{Pool: "web", Setting: "a", Address: "web2.example", State: step.first},
			appgateway.Health{Pool: "web", Setting: "b", Address: "web2.example", State: step.second})
		if got := rows(); !slices.Equal(got, []string{"pool web 0 members " + step.want, "pool empty 0 members"}) {
			t.Errorf("%s and %s: pools %q, want %s", step.first, step.second, got, step.want)
		}
		if got := all(card(f.page(""), "gw"), ".health"); len(got) != 1 || attribute(got[0], "class") != "health "+step.state {
			t.Errorf("classes of %d elements, want %s", len(got), step.state)
		}
		if got := members(); !slices.Equal(got, []string{"10.0.0.4 healthy", step.member}) {
			t.Errorf("%s and %s: members %q, want %s", step.first, step.second, got, step.member)
		}
	}
}

// TestFilter checks which resources filters select.
func TestFilter(t *testing.T) {
	f := start(t, nil)
	f.fill()
	f.put(strings.Replace(group, "kaz", "other", 1), `{"location":"eastus"}`)
	for query, want := range map[string][]string{
		"":           {"kaz 4", "other 0"},
		"?group=KAZ": {"kaz 4"},
		"?name=FRON": {"kaz 1"},
		"?type=microsoft.network/virtualNetworks": {"kaz 1"},
		"?name=nothing": nil,
	} {
		got := texts(f.page(query), "h2")
		got = got[:max(0, len(got)-1)] // the last changes
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := texts(f.page("?part=1&name=front"), "nav"); len(got) > 0 {
		t.Errorf("a part has the navigation %q", got)
	}
}

// TestResource checks the page of a resource: its document, its history and its operations.
func TestResource(t *testing.T) {
	f := start(t, nil)
	f.fill()
	address := group + "/providers/Microsoft.Network/publicIPAddresses/front"
	f.put(address, `{"location":"eastus","sku":{"name":"Standard"},"tags":{"team":"</pre><b>a&b"},"properties":{"publicIPAllocationMethod":"Static"}}`)
	page := func(id string) *html.Node { return f.page("resource?id=" + url.QueryEscape(id)) }
	tree := page(address)
	document := all(tree, "pre")[0]
	if got := raw(document); !strings.Contains(got, `"team": "</pre><b>a&b"`) || !strings.Contains(got, `"ipAddress": "`) {
		t.Errorf("document %s", got)
	}
	if got := texts(all(tree, ".history")[0], ".diff"); !slices.ContainsFunc(got, func(text string) bool {
		return strings.Contains(text, `+ tags {"team":"</pre><b>a&b"}`)
	}) {
		t.Errorf("differences %q", got)
	}
	if got := texts(tree, ".refs"); !slices.ContainsFunc(got, func(text string) bool {
		return strings.Contains(text, "f properties.frontendIPConfigurations")
	}) {
		t.Errorf("references %q", got)
	}
	if got := texts(all(tree, ".operations")[0], "td"); len(got) < 4 || !slices.Contains(got, "Succeeded") {
		t.Errorf("operations %q", got)
	}
	lb := group + "/providers/Microsoft.Network/loadBalancers/lb"
	if got := texts(page(lb), ".refs"); len(got) != 1 || !strings.HasPrefix(got[0], "front ") {
		t.Errorf("references of the load balancer %q", got)
	}
	if got := textOf(page(lb + "/backendAddressPools/nodes")); !strings.Contains(got, "Microsoft.Network/loadBalancers/backendAddressPools") {
		t.Errorf("a part of a document: %s", got)
	}
	f.azureSends(http.MethodDelete, lb, "")
	tree = page(lb)
	if got := texts(all(tree, ".history")[0], ".verb"); !slices.Equal(got, []string{"deleted", "changed", "created"}) || len(all(tree, "pre")) > 0 {
		t.Errorf("after a delete: %q", got)
	}
	for path, want := range map[string]int{"resource?id=" + url.QueryEscape(group+"/providers/Microsoft.Network/loadBalancers/none"): 404,
		"resource?id=x": 400, "resource": 400, "resource?id=" + url.QueryEscape(group+"/providers/"+strings.Repeat("x", 5000)): 400} {
		if status, _ := f.get(path); status != want {
			t.Errorf("%.80s: %d, want %d", path, status, want)
		}
	}
}

// TestSecrets checks that no page shows a secret, also not one of an earlier version.
func TestSecrets(t *testing.T) {
	f := start(t, nil)
	f.put(group, `{"location":"eastus"}`)
	vault := group + "/providers/Microsoft.KeyVault/vaults/vault"
	f.put(vault, `{"location":"eastus","properties":{"tenantId":"`+core.DefaultTenant+`","sku":{"family":"A","name":"standard"},"accessPolicies":[]}}`)
	f.put(vault+"/secrets/db", `{"properties":{"value":"HUSH-1"}}`)
	f.put(vault+"/secrets/db", `{"properties":{"value":"HUSH-2"}}`)
	account := group + "/providers/Microsoft.Storage/storageAccounts/account"
	f.put(account, `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"},"properties":{}}`)
	// A type that is a document and nothing else keeps what it is sent.
	insights := group + "/providers/Microsoft.Insights/components/app"
	const secrets = `"adminPassword":"HUSH-3","nested":[{"connectionString":"HUSH-4","uri":"https://x/y?sv=1&sig=HUSH-5&se=2"}],
		"urls":["https://x?sig=HUSH-6"],"protectedSettings":{"x":"HUSH-7"},"parameter":{"type":"SecureString","value":"HUSH-8"}`
	f.put(insights, `{"location":"eastus","properties":{`+secrets+`,"shown":"yes"}}`)
	f.put(insights, `{"location":"eastus","properties":{`+strings.ReplaceAll(secrets, "HUSH", "HUSH-NEW")+`,"shown":"again"}}`)
	for _, path := range []string{"", "traffic", "traffic.json", "resource?id=" + vault, "resource?id=" + vault + "/secrets/db",
		"resource?id=" + account, "resource?id=" + insights} {
		status, text := f.get(path)
		if status != http.StatusOK || strings.Contains(text, "HUSH") || strings.Contains(text, "$value") || strings.Contains(text, "$keys") {
			t.Errorf("%s: %d shows a secret", path, status)
		}
	}
	_, text := f.get("resource?id=" + insights)
	got := raw(parsed(t, text))
	for _, want := range []string{`"adminPassword": "(not shown)"`, `sig=(not shown)&se=2`, `properties.shown "yes" "again"`} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in %s", want, got)
		}
	}
}

// TestTraffic checks the requests, the limits, the operations and the file.
func TestTraffic(t *testing.T) {
	f := start(t, func(_ *web.Options, o *core.Options) { o.Throttle = true })
	f.put(group, `{"location":"eastus"}`)
	f.azure.SetLatency(1000)
	f.begin(group+"/providers/Microsoft.Compute/disks/data",
		`{"location":"eastus","sku":{"name":"Premium_LRS"},"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}`)
	f.azure.SetLatency(0)
	f.azureSends(http.MethodGet, group+"/providers/Microsoft.Compute/disks/none", "")
	tree := f.page("traffic")
	rows := texts(all(tree, ".requests")[0], "tr")
	if len(rows) != 4 || !strings.Contains(rows[1], "GET 404 ResourceNotFound Compute/disks none") || !strings.Contains(rows[2], "PUT 202 Compute/disks data") {
		t.Errorf("requests %q", rows)
	}
	if got := all(tree, "progress"); len(got) != 1 || attribute(got[0], "aria-label") != "create of data" {
		t.Errorf("%d operations run", len(got))
	}
	if got := texts(tree, ".budgets"); len(got) != 1 || !strings.Contains(got[0], "arm writes") {
		t.Errorf("limits %q", got)
	}
	if got := all(tree, "rect"); len(got) < 2 {
		t.Errorf("%d bars", len(got))
	}
	for query, want := range map[string]int{"": 3, "?method=PUT": 2, "?status=4": 1, "?text=DATA": 1, "?text=tool": 2, "?method=POST": 0} {
		if got := all(all(f.page("traffic"+query), ".requests")[0], "tr"); len(got) != want+1 {
			t.Errorf("%s: %d rows, want %d", query, len(got)-1, want)
		}
		_, text := f.get("traffic.json" + query)
		var file struct {
			Requests []struct{ Method, Path string }
		}
		if err := json.Unmarshal([]byte(text), &file); err != nil || len(file.Requests) != want {
			t.Errorf("file of %s: %d requests, want %d: %v", query, len(file.Requests), want, err)
		}
		if query == "" && file.Requests[0].Path != group {
			t.Errorf("the file begins with %v", file.Requests[0])
		}
	}
}

// TestFaults checks that a rule is added, bites, and is removed.
func TestFaults(t *testing.T) {
	f := start(t, func(o *web.Options, _ *core.Options) { o.Write = true })
	f.put(group, `{"location":"eastus"}`)
	status, text := f.do(http.MethodPost, "faults/add", url.Values{"fault": {"error"}, "type": {"loadBalancers"}, "method": {"GET"},
		"status": {"429"}, "seconds": {"60"}})
	rows := texts(parsed(t, text), "td")
	if status != http.StatusOK || len(rows) < 6 || rows[1] != "GET Network/loadBalancers" || rows[2] != "error 429" || !strings.HasSuffix(rows[3], "left") {
		t.Fatalf("added: %d %q", status, rows)
	}
	lb := group + "/providers/Microsoft.Network/loadBalancers/lb"
	if got := f.azureSends(http.MethodGet, lb, ""); got != http.StatusTooManyRequests {
		t.Errorf("a faulty request: %d", got)
	}
	if got := texts(f.page("faults"), "td"); got[4] != "1" || got[5] != "1" {
		t.Errorf("counts %q", got)
	}
	for name, form := range map[string]url.Values{
		"status": {"fault": {"error"}, "status": {"x"}}, "kind": {"fault": {"none"}}, "no kind": {}, "type": {"fault": {"error"}, "type": {"nonsense"}},
		"range": {"fault": {"error"}, "status": {"200"}},
	} {
		status, text := f.do(http.MethodPost, "faults/add", form)
		if got := texts(parsed(t, text), ".problem"); status != http.StatusBadRequest || len(got) != 1 || got[0] == "" {
			t.Errorf("%s: %d %q", name, status, got)
		}
	}
	if status, _ := f.do(http.MethodPost, "faults/add", url.Values{"message": {strings.Repeat("x", 100_000)}}); status != http.StatusBadRequest {
		t.Errorf("a large form: %d", status)
	}
	if status, _ := f.do(http.MethodPost, "faults/remove", url.Values{"id": {rows[0]}}); status != http.StatusOK {
		t.Errorf("removed: %d", status)
	}
	if status, _ := f.do(http.MethodPost, "faults/remove", url.Values{"id": {rows[0]}}); status != http.StatusNotFound {
		t.Errorf("removed twice: %d", status)
	}
	if got := f.azureSends(http.MethodGet, lb, ""); got != http.StatusNotFound {
		t.Errorf("without the rule: %d", got)
	}
	// Each of the usual faults is a rule.
	presets := 0
	for _, form := range all(f.page("faults"), "form") {
		values := url.Values{}
		for _, input := range all(form, "input") {
			if attribute(input, "type") == "hidden" {
				values.Set(attribute(input, "name"), attribute(input, "value"))
			}
		}
		if len(values) > 0 {
			presets++
			if status, _ := f.do(http.MethodPost, "faults/add", values); status != http.StatusOK {
				t.Errorf("usual fault %v: %d", values, status)
			}
		}
	}
	if presets == 0 || len(f.azure.Faults.All()) != presets {
		t.Errorf("%d usual faults, %d rules", presets, len(f.azure.Faults.All()))
	}
}

// TestReadOnly checks that a page without the right to write changes nothing.
func TestReadOnly(t *testing.T) {
	f := start(t, nil)
	if _, err := f.azure.Faults.Add(core.Fault{Fault: core.FaultError}); err != nil {
		t.Fatal(err)
	}
	if got := all(f.page("faults"), "button"); len(got) != 1 { // that of the panel
		t.Errorf("%d buttons", len(got))
	}
	for path, form := range map[string]url.Values{"faults/add": {"fault": {"error"}}, "faults/remove": {"id": {"1"}}} {
		if status, _ := f.do(http.MethodPost, path, form); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
	if got := len(f.azure.Faults.All()); got != 1 {
		t.Errorf("%d rules", got)
	}
}

// stream opens an event stream, and returns its status.
func (f *fixture) stream() (status int, body io.ReadCloser) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.server.URL+web.Path+"events", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	answer, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { answer.Body.Close() })
	return answer.StatusCode, answer.Body
}

// TestEvents checks that a stream tells of changes, and that there is a bound of streams.
func TestEvents(t *testing.T) {
	f := start(t, nil)
	_, first := f.stream()
	lines := bufio.NewScanner(first)
	if !lines.Scan() || lines.Text() != "retry: 2000" {
		t.Fatalf("it begins with %q", lines.Text())
	}
	f.put(group, `{"location":"eastus"}`)
	for lines.Scan() && lines.Text() != "event: changed" {
		if lines.Text() != "" {
			t.Errorf("line %q", lines.Text())
		}
	}
	const most = 16
	for i := 1; i < most; i++ {
		if status, _ := f.stream(); status != http.StatusOK {
			t.Fatalf("stream %d: %d", i, status)
		}
	}
	if status, _ := f.stream(); status != http.StatusServiceUnavailable {
		t.Errorf("a stream too many: %d", status)
	}
	// A viewer that goes makes room.
	first.Close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if status, _ := f.stream(); status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("there is no room after a viewer has gone")
		}
	}
}

// TestAssets checks that the files of the page are there.
func TestAssets(t *testing.T) {
	f := start(t, nil)
	tree := f.page("")
	paths := []string{}
	for _, element := range slices.Concat(all(tree, "link"), all(tree, "script"), all(tree, "img")) {
		paths = append(paths, attribute(element, "href")+attribute(element, "src"))
		if element.FirstChild != nil {
			t.Error("there is an inline script")
		}
	}
	for _, path := range paths {
		status, text := f.get(strings.TrimPrefix(path, web.Path))
		if status != http.StatusOK || text == "" || strings.Contains(text, "https://") {
			t.Errorf("%s: %d", path, status)
		}
	}
	if len(paths) < 4 {
		t.Errorf("files %q", paths)
	}
}

// BenchmarkMap is the map of 2,000 resources after a change of one.
func BenchmarkMap(b *testing.B) {
	recorder := web.NewRecorder()
	azure, err := core.New(core.Options{Providers: providers.All(), Written: recorder.Written})
	if err != nil {
		b.Fatal(err)
	}
	site, err := web.New(web.Options{Azure: azure, Recorder: recorder, Token: token})
	if err != nil {
		b.Fatal(err)
	}
	send := func(path, body string) {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPut, "http://azure"+path+"?api-version=2024-05-01", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := azure.Transport().RoundTrip(r)
		if err != nil || answer.StatusCode > 299 {
			b.Fatal(answer, err)
		}
		answer.Body.Close()
	}
	send(group, `{"location":"eastus"}`)
	disk := func(i int) {
		send(fmt.Sprintf("%s/providers/Microsoft.Compute/disks/disk-%d", group, i%2000),
			fmt.Sprintf(`{"location":"eastus","sku":{"name":"Premium_LRS"},"tags":{"n":"%d"},"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}`, i))
	}
	for i := range 2000 {
		disk(i)
	}
	for i := 2000; b.Loop(); i++ {
		disk(i)
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1:80"+web.Path, nil)
		r.RemoteAddr = "127.0.0.1:1234"
		r.Header.Set("Cookie", "kaz-web-80="+token)
		w := httptest.NewRecorder()
		site.Handler(web.Path).ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Body.Len() < 100_000 {
			b.Fatal(w.Code)
		}
	}
}
