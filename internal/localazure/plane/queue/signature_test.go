package queue_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
)

// TestSignatures checks what the letters of a signature for a queue or an account allow, and when.
func TestSignatures(t *testing.T) {
	const failed, permission, refused = "AuthenticationFailed", "AuthorizationPermissionMismatch", "AuthorizationFailure"
	synctest.Test(t, func(t *testing.T) {
		p := start(t, "")
		p.want("PUT", "/orders?comp=acl", "<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Expiry>"+
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+"</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>"+
			"</SignedIdentifiers>", 204, "")
		end := "&se=" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		const text = "<QueueMessage><MessageText>x</MessageText></QueueMessage>"
		for _, x := range []struct {
			values, request string
			status          int
			code            string
		}{
			{"sp=a" + end, "POST /orders/messages?", 201, ""},
			{"sp=a" + end, "GET /orders/messages?", 403, permission},
			{"sp=a" + end, "GET /orders?comp=metadata&", 403, permission},
			{"sp=raup" + end, "GET /orders?comp=metadata&", 200, ""},
			{"sp=r" + end, "GET /orders/messages?peekonly=true&", 200, ""},
			{"sp=p" + end, "GET /orders/messages?", 200, ""},
			{"sp=raup" + end, "PUT /new?", 403, failed},
			{"sp=raup" + end, "PUT /orders?", 403, refused},
			{"sp=raup" + end, "DELETE /orders?", 403, refused},
			{"sp=raup" + end, "DELETE /orders/messages?", 403, permission},
			{"sp=raup" + end, "GET /?comp=list&", 403, failed},
			{"sp=a&se=2000-01-01", "POST /orders/messages?", 403, failed},
			{"si=reader", "GET /orders/messages?peekonly=true&", 200, ""},
			{"si=reader", "POST /orders/messages?", 403, permission},
			{"si=none", "GET /orders/messages?peekonly=true&", 403, failed},
			{"ss=bq&srt=s&sp=l" + end, "GET /?comp=list&", 200, ""},
			{"ss=q&srt=c&sp=c" + end, "PUT /made?", 201, ""},
			{"ss=q&srt=c&sp=r" + end, "DELETE /made?", 403, permission},
			{"ss=q&srt=c&sp=d" + end, "DELETE /made?", 204, ""},
			{"ss=q&srt=o&sp=d" + end, "DELETE /orders/messages?", 204, ""},
			{"ss=q&srt=c&sp=d" + end, "DELETE /orders/messages?", 403, "AuthorizationResourceTypeMismatch"},
			{"ss=b&srt=o&sp=d" + end, "DELETE /orders/messages?", 403, "AuthorizationServiceMismatch"},
		} {
			v, err := url.ParseQuery(x.values + "&sv=2024-11-04")
			if err != nil {
				t.Fatal(err)
			}
			signed := storage.QueueSASText("/queue/acc/orders", v)
			if v.Get("ss") != "" {
				signed = storage.AccountSASText("acc", v)
			}
			v.Set("sig", storage.Sign(p.key, signed))
			method, path, _ := strings.Cut(x.request, " ")
			t.Logf("%s for %s", x.values, x.request)
			p.want(method, path+v.Encode(), text, x.status, x.code)
			v.Set("sig", storage.Sign(p.key, "other"))
			if x.status < 300 {
				p.want(method, path+v.Encode(), text, 403, failed)
			}
		}
		<-time.After(time.Hour)
		v := url.Values{"si": {"reader"}, "sv": {"2024-11-04"}}
		v.Set("sig", storage.Sign(p.key, storage.QueueSASText("/queue/acc/orders", v)))
		p.want("GET", "/orders/messages?peekonly=true&"+v.Encode(), "", 403, failed)
	})
}

// TestKeysForbidden checks that an account without shared keys accepts tokens alone.
func TestKeysForbidden(t *testing.T) {
	p := start(t, "")
	if err := p.azure.Do(func(w behaviour.World) error {
		w.Edit(accountID, func(doc behaviour.Object) { behaviour.Set(doc, "properties.allowSharedKeyAccess", false) })
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.want("GET", "/?comp=list&sig=x", "", 403, "KeyBasedAuthenticationNotPermitted")
	p.want("GET", "/?comp=list", "", 403, "KeyBasedAuthenticationNotPermitted", "Authorization", "SharedKey acc:x")
	p.want("GET", "/?comp=list", "", 200, "")
	p.want("GET", "/?comp=list", "", 401, "InvalidAuthenticationInfo", "Authorization", "Bearer bad")
}

// TestSharing checks which pages of other origins may use the service, by the rules that a client sets.
func TestSharing(t *testing.T) {
	p := start(t, "")
	p.want("PUT", "/?restype=service&comp=properties", `<StorageServiceProperties>
		<Logging><Version>1.0</Version><Read>true</Read><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>
		<Cors><CorsRule><AllowedOrigins>https://a.example,https://b.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>
		<AllowedHeaders>x-ms-meta-*,x-ms-date</AllowedHeaders><ExposedHeaders>x-ms-meta-*</ExposedHeaders>
		<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>`, 202, "")
	asks := func(origin, method, headers string, status int, code string) {
		t.Helper()
		p.want("OPTIONS", "/orders", "", status, code, "Origin", origin, "Access-Control-Request-Method", method,
			"Access-Control-Request-Headers", headers)
	}
	asks("https://a.example", "PUT", "X-Ms-Meta-Color, x-ms-date", 200, "")
	asks("https://c.example", "PUT", "", 403, "CorsPreflightFailure")
	asks("https://a.example", "DELETE", "", 403, "CorsPreflightFailure")
	asks("https://a.example", "GET", "x-other", 403, "CorsPreflightFailure")
	for origin, want := range map[string]string{"https://b.example": "https://b.example", "https://c.example": ""} {
		got := p.want("GET", "/orders?comp=metadata", "", 200, "", "Origin", origin).Header()
		if got.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("origin %s: %v", origin, got)
		}
	}
	// A request changes the settings that it has: the others stay.
	p.want("PUT", "/?restype=service&comp=properties", "<StorageServiceProperties><HourMetrics><Version>1.0</Version>"+
		"<Enabled>true</Enabled></HourMetrics></StorageServiceProperties>", 202, "")
	got := p.want("GET", "/?restype=service&comp=properties", "", 200, "").Body.String()
	for _, want := range []string{"<Days>7</Days>", "<AllowedOrigins>https://a.example,https://b.example</AllowedOrigins>",
		"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>"} {
		if !strings.Contains(got, want) {
			t.Errorf("the settings have no %s: %s", want, got)
		}
	}
	for _, wrong := range []string{"<Cors><CorsRule/></Cors>", "<Cors>" + strings.Repeat("<CorsRule><AllowedOrigins>*</AllowedOrigins>"+
		"<AllowedMethods>GET</AllowedMethods></CorsRule>", 6) + "</Cors>",
		"<Logging><RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy></Logging>"} {
		p.want("PUT", "/?restype=service&comp=properties", "<StorageServiceProperties>"+wrong+"</StorageServiceProperties>", 400,
			"InvalidXmlDocument")
	}
}

// TestRoles checks what each built-in role for queues allows the sender of a token to do.
func TestRoles(t *testing.T) {
	const text = "<QueueMessage><MessageText>x</MessageText></QueueMessage>"
	const sender, processor, reader, contributor = "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a", "8a0f0c08-91a1-4084-bc3d-661d67233fed",
		"19e7f393-937e-4f77-808e-94535e297925", "974c5e8b-45b9-4653-ba55-5f855dd0fb88"
	requests := []string{"POST /orders/messages", "GET /orders/messages", "GET /orders/messages?peekonly=true", "DELETE /orders/messages",
		"GET /orders?comp=metadata", "PUT /orders?comp=metadata", "GET /?comp=list", "GET /orders?comp=acl", "GET /?restype=service&comp=properties"}
	for role, allowed := range map[string][]int{"": {}, sender: {0}, processor: {1, 2}, reader: {2, 4, 6}, contributor: {0, 1, 2, 3, 4, 5, 6}} {
		p := startWith(t, "", core.Options{AccessControl: true})
		if role != "" {
			assignment := azure.ID(string(accountID) + "/providers/Microsoft.Authorization/roleAssignments/" + role)
			if err := p.azure.Do(func(w behaviour.World) error {
				return w.Apply(behaviour.Itself(), assignment, behaviour.Object{"properties": behaviour.Object{"principalId": me,
					"roleDefinitionId": "/subscriptions/" + core.DefaultSubscription + "/providers/Microsoft.Authorization/roleDefinitions/" + role}})
			}); err != nil {
				t.Fatal(err)
			}
		}
		for i, request := range requests {
			method, path, _ := strings.Cut(request, " ")
			status, code := map[string]int{"POST": 201, "PUT": 204, "DELETE": 204, "GET": 200}[method], ""
			if !slices.Contains(allowed, i) {
				status, code = 403, "AuthorizationPermissionMismatch"
			}
			t.Logf("role %q: %s", role, request)
			p.want(method, path, text, status, code)
		}
	}
}
