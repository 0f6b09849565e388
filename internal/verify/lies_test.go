package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kaz/internal/verify"
	"kaz/internal/verify/probe"
)

type object = map[string]any

// ignoring is an Azure that ignores a header.
func ignoring(header string) way {
	return func(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
		r.Header.Del(header)
		return azure.RoundTrip(r)
	}
}

// when answers the requests that match differently.
func when(matches func(*http.Request, string) bool, answer way) way {
	return func(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
		body := []byte{}
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body) // from memory
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		if matches(r, string(body)) {
			return answer(r, azure)
		}
		return azure.RoundTrip(r)
	}
}

// to matches requests by their method and a part of their path.
func to(method, path string) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool {
		return r.Method == method && strings.Contains(strings.ToLower(r.URL.Path), strings.ToLower(path))
	}
}

// sending matches PUTs with a text in their body.
func sending(text string) func(*http.Request, string) bool {
	return func(r *http.Request, body string) bool {
		return r.Method == http.MethodPut && strings.Contains(body, text)
	}
}

// having matches requests with a header.
func having(header string) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool { return r.Header.Get(header) != "" }
}

func reply(r *http.Request, status int, text string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {"application/json"}, "X-Ms-Request-Id": {"made-up"}},
		Body: io.NopCloser(strings.NewReader(text)),
	}
}

// refusing answers with an error.
func refusing(status int, code string) way {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return reply(r, status, fmt.Sprintf(`{"error":{"code":%q,"message":"made up"}}`, code)), nil
	}
}

// accepting answers refused requests as if they had succeeded.
func accepting(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
	answer, err := azure.RoundTrip(r)
	if err != nil || answer.StatusCode < http.StatusBadRequest {
		return answer, err
	}
	return reply(r, http.StatusOK, `{"name":"made-up"}`), nil
}

// showing changes documents in answers. What is no object stays.
func showing(change func(object)) way {
	return func(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
		answer, err := azure.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		tree := object{}
		if json.Unmarshal(text, &tree) == nil {
			change(tree)
			if text, err = json.Marshal(tree); err != nil {
				return nil, err
			}
		}
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil
	}
}

// with sets a member of the properties, or removes it with nil.
func with(name string, value any) way {
	return showing(func(tree object) { set(tree, name, value) })
}

func set(tree object, name string, value any) {
	properties, _ := tree["properties"].(object)
	if properties == nil {
		return
	}
	if value == nil {
		delete(properties, name)
		return
	}
	properties[name] = value
}

// each changes the elements of a list.
func each(change func(object)) way {
	return showing(func(tree object) {
		elements, _ := tree["value"].([]any)
		for _, e := range elements {
			change(e.(object))
		}
	})
}

// capability changes a capability of all sizes.
func capability(name, value string) way {
	return each(func(size object) {
		capabilities, _ := size["capabilities"].([]any)
		for _, c := range capabilities {
			if c := c.(object); c["name"] == name {
				c["value"] = value
			}
		}
	})
}

// headed changes a header of answers.
func headed(name, value string) way {
	return func(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
		answer, err := azure.RoundTrip(r)
		if err == nil && (answer.Header.Get(name) != "" || name == "Date") {
			answer.Header.Set(name, value)
		}
		return answer, err
	}
}

// everything matches all requests.
func everything(*http.Request, string) bool { return true }

// again matches what another match has matched before.
func again(matches func(*http.Request, string) bool) func(*http.Request, string) bool {
	var n atomic.Int64
	return func(r *http.Request, body string) bool { return matches(r, body) && n.Add(1) > 1 }
}

// numbered changes documents with the number of the answer.
func numbered(change func(tree object, n int64)) way {
	var n atomic.Int64
	return showing(func(tree object) { change(tree, n.Add(1)) })
}

// lies has for each probe an Azure of which its belief is wrong.
func lies() map[string]way {
	put, get, post := http.MethodPut, http.MethodGet, http.MethodPost
	writtenBack := when(sending("provisioningState"), refusing(http.StatusBadRequest, "InvalidParameter"))
	accepted := when(to(put, "/providers/"), accepting)
	return map[string]way{
		"create-only":        ignoring("If-None-Match"),
		"pool-at-creation":   when(to(get, "/backendAddressPools/"), with("loadBalancerBackendAddresses", nil)),
		"pool-interfaces":    when(to(get, "/backendAddressPools/"), with("loadBalancerBackendAddresses", nil)),
		"operation-urls":     when(to(put, "/"), headed("Azure-AsyncOperation", "https://management.azure.com:444/operations/1")),
		"subnets-kept":       when(to(get, "/subnets-kept-vnet"), with("subnets", []any{})),
		"address-ranges":     accepted,
		"overlapping-ranges": accepted,
		"route-count":        accepted,
		"outbound-minutes":   accepted,
		"tag-names":          accepted,

		"disk-preconditions": when(having("If-None-Match"), refusing(http.StatusPreconditionFailed, "PreconditionFailed")),
		"disk-written-back":  writtenBack,
		"disk-attach":        when(to(post, "/attachDetachDataDisks"), showing(func(tree object) { delete(tree, "dataDisks") })),
		"disk-attached-twice": when(again(to(post, "/attachDetachDataDisks")), refusing(http.StatusConflict,
			"AttachDiskWhileBeingDetached")),
		"disk-shared-access": when(to(post, "/attachDetachDataDisks"), accepting),
		"lun-without-name": when(to(get, "/virtualMachines/"), numbered(func(tree object, n int64) {
			set(tree, "storageProfile", object{"dataDisks": []any{object{"managedDisk": object{"id": fmt.Sprint("/disk/", n)}}}})
		})),

		"user-names":       accepted,
		"ssh-keys":         accepted,
		"identity-missing": accepted,
		"interface-stays":  when(to(http.MethodDelete, "/networkInterfaces/"), accepting),

		"share-exists": when(to(get, "/shares/"), with("shareQuota", 1)),
		"share-snapshots": when(to(get, "/shares"), each(func(share object) {
			set(share, "snapshotTime", nil)
		})),
		"account-written-back": writtenBack,
		"account-versions":     when(to(get, "/storageAccounts/"), with("networkAcls", nil)),

		"record-etags":         ignoring("If-Match"),
		"record-metadata":      when(to(get, "/TXT/"), with("metadata", nil)),
		"record-limits":        accepted,
		"alias-address":        when(to(get, "/A/address"), with("ARecords", []any{object{"ipv4Address": "192.0.2.1"}})),
		"alias-profile":        when(to(get, "/A/profile"), with("targetResource", object{})),
		"profile-endpoints":    when(to(get, "/trafficManagerProfiles/"), with("endpoints", []any{})),
		"profile-priorities":   accepted,
		"private-record-names": when(to(get, "/A"), each(func(record object) { record["name"] = "Capital" })),
		"private-zone-tags":    accepted,

		"securestring":     when(to(get, "/deployments/"), with("parameters", object{"p": object{"value": "kaz-verify-not-a-secret"}})),
		"template-spec":    when(to(get, "/versions/"), with("metadata", nil)),
		"what-if-invalid":  when(to(post, "/whatIf"), refusing(http.StatusBadRequest, "InvalidTemplate")),
		"template-limits":  accepted,
		"template-members": accepted,
		"deep-request":     accepted,
		"zone-functions":   when(everything, with("outputs", object{"o": object{"value": []any{"1"}}})),
		"what-if-times": when(everything, showing(func(tree object) {
			properties, _ := tree["properties"].(object)
			changes, _ := properties["changes"].([]any)
			for _, c := range changes {
				c.(object)["changeType"] = "Modify"
			}
		})),

		"secret-absent":      when(to(get, "/secrets/"), accepting),
		"secret-versions":    when(to(get, "/secrets/"), with("secretUriWithVersion", "https://made-up/1")),
		"vault-written-back": writtenBack,
		"vault-policies":     when(to(get, "/vaults/"), with("accessPolicies", []any{})),
		"vault-names":        accepted,

		"capacity-patch": ignoring("If-Match"),
		"instance-disks": when(to(post, "/attachDetachDataDisks"), showing(func(tree object) { delete(tree, "dataDisks") })),
		"deallocated-counted": when(to(get, "/virtualMachineScaleSets/shared-set"), numbered(func(tree object, n int64) {
			tree["sku"] = object{"capacity": 10 - n}
		})),
		"instance-deleted": when(to(put, "/virtualMachines/"), accepting),

		"api-versions": when(to(get, "/providers/Microsoft.Network"), showing(func(tree object) {
			all, _ := tree["resourceTypes"].([]any)
			for _, x := range all {
				x.(object)["apiVersions"] = []any{"2000-01-01"}
			}
		})),
		"date":          when(everything, headed("Date", "Mon, 02 Jan 2006 15:04:05 GMT")),
		"absent-twice":  when(to(get, "/absent-twice-t1"), refusing(http.StatusNotFound, "ResourceNotFound")),
		"sizes-nvme":    when(to(get, "/skus"), capability("DiskControllerTypes", "NVMe")),
		"sizes-cache":   when(to(get, "/skus"), capability("CachedDiskBytes", "12345")),
		"sizes-network": when(to(get, "/skus"), capability("AcceleratedNetworkingEnabled", "perhaps")),

		"gateway-etag":         ignoring("If-Match"),
		"gateway-certificate":  when(sending("publicCertData"), refusing(http.StatusBadRequest, "InvalidRequest")),
		"gateway-refusal":      when(to(put, "/applicationGateways/"), accepting),
		"gateway-server-name":  when(sending("sniName"), refusing(http.StatusBadRequest, "InvalidRequest")),
		"gateway-distribution": when(sending("weightPerServer"), refusing(http.StatusBadRequest, "InvalidRequest")),
		"gateway-streams":      when(sending("stream.example.net"), refusing(http.StatusBadRequest, "InvalidRequest")),
	}
}

// TestEachProbeSeesADifference runs each probe against an Azure of which its belief is wrong.
func TestEachProbeSeesADifference(t *testing.T) {
	wrong := lies()
	for _, p := range probe.Table() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			if wrong[p.Name] == nil {
				t.Fatal("no Azure makes this belief wrong: add one to lies")
			}
			w := newTarget(t, wrong[p.Name], p.Name)
			report := w.run(t)
			if r := report.Results[0]; r.Verdict != verify.Differs {
				t.Errorf("%s: %s\n%q", r.Verdict, r.Reason, r.Seen)
			}
			if left := w.groups(t); len(left) > 0 || len(report.Left) > 0 {
				t.Errorf("left: %v, %v", left, report.Left)
			}
		})
	}
	for name := range wrong {
		if _, err := probe.Select([]string{name}); err != nil {
			t.Error(err)
		}
	}
}
