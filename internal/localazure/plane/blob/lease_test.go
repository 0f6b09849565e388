package blob_test

import (
	"encoding/xml"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	idA  = "00000000-0000-0000-0000-00000000000a"
	idB  = "00000000-0000-0000-0000-00000000000b"
	held = "x-ms-lease-id"
)

// step is a request and what it must be answered with.
type step struct {
	after   time.Duration // time that passes before
	request string        // method, path and headers "name=value", separated by blanks
	status  int
	code    string
	headers string // "name=value", separated by blanks; "name=" for a header that must be absent
}

func run(t *testing.T, steps []step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ask := start(t)
		for i, s := range steps {
			<-time.After(s.after)
			words := strings.Fields(s.request)
			var headers []string
			for _, word := range words[2:] {
				name, value, _ := strings.Cut(word, "=")
				headers = append(headers, name, value)
			}
			got := ask(words[0], words[1], "good", "", headers...)
			got.Body.Close()
			if got.StatusCode != s.status || got.Header.Get("x-ms-error-code") != s.code {
				t.Fatalf("step %d, %s: %d %s, want %d %s", i, s.request,
					got.StatusCode, got.Header.Get("x-ms-error-code"), s.status, s.code)
			}
			for want := range strings.FieldsSeq(s.headers) {
				if name, value, _ := strings.Cut(want, "="); got.Header.Get(name) != value {
					t.Errorf("step %d, %s: %s is %q, want %q", i, s.request, name, got.Header.Get(name), value)
				}
			}
		}
	})
}

// Only the holder of a lease writes and deletes its blob, until the lease ends.
func TestLeaseOfABlob(t *testing.T) {
	const lease = "PUT /c/b?comp=lease x-ms-lease-action="
	const acquire, seconds = lease + "acquire x-ms-proposed-lease-id=" + idA + " x-ms-lease-duration=", time.Second
	const withA, withB = " " + held + "=" + idA, " " + held + "=" + idB
	run(t, []step{
		{0, acquire + "15", 404, "BlobNotFound", ""},
		{0, "PUT /c/b" + withA, 412, "LeaseNotPresentWithBlobOperation", ""},
		{0, "PUT /c/b", 201, "", ""},
		{0, "HEAD /c/b", 200, "", "x-ms-lease-state=available x-ms-lease-status=unlocked x-ms-lease-duration="},
		{0, acquire + "15", 201, "", held + "=" + idA},
		{0, "HEAD /c/b", 200, "", "x-ms-lease-state=leased x-ms-lease-status=locked x-ms-lease-duration=fixed"},
		{0, "PUT /c/b", 412, "LeaseIdMissing", ""},
		{0, "DELETE /c/b", 412, "LeaseIdMissing", ""},
		{0, "PUT /c/b" + withB, 412, "LeaseIdMismatchWithBlobOperation", ""},
		{0, "GET /c/b" + withB, 412, "LeaseIdMismatchWithBlobOperation", ""},
		{0, "GET /c/b" + withA, 200, "", ""},
		{14 * seconds, "PUT /c/b" + withA, 201, "", ""},
		{0, lease + "renew" + withA, 200, "", held + "=" + idA},
		{14 * seconds, "PUT /c/b" + withA, 201, "", ""},
		{1 * seconds, "HEAD /c/b", 200, "", "x-ms-lease-state=expired x-ms-lease-status=unlocked"},
		{0, "PUT /c/b" + withA, 412, "LeaseLost", ""},
		{0, lease + "renew" + withA, 200, "", ""},
		{0, lease + "change x-ms-proposed-lease-id=" + idB + withA, 200, "", held + "=" + idB},
		{0, lease + "release" + withA, 409, "LeaseIdMismatchWithLeaseOperation", ""},
		{0, lease + "break x-ms-lease-break-period=5", 202, "", "x-ms-lease-time=5 " + held + "="},
		{0, lease + "acquire x-ms-lease-duration=15", 409, "LeaseAlreadyPresent", ""},
		{0, lease + "renew" + withB, 409, "LeaseIsBrokenAndCannotBeRenewed", ""},
		{0, "PUT /c/b" + withB, 201, "", ""},
		{5 * seconds, "HEAD /c/b", 200, "", "x-ms-lease-state=broken x-ms-lease-status=unlocked"},
		{0, acquire + "-1", 201, "", ""},
		{time.Hour, "HEAD /c/b", 200, "", "x-ms-lease-state=leased x-ms-lease-duration=infinite"},
		{0, "DELETE /c/b" + withA, 202, "", ""},
	})
}

// The lease of a container guards its deletion only.
func TestLeaseOfAContainer(t *testing.T) {
	const container = "/docs?restype=container"
	const lease, withA = "PUT " + container + "&comp=lease x-ms-lease-action=", " " + held + "=" + idA
	run(t, []step{
		{0, "GET " + container, 404, "ContainerNotFound", ""},
		{0, "PUT " + container + " x-ms-meta-a=b", 201, "", ""},
		{0, "PUT " + container, 409, "ContainerAlreadyExists", ""},
		{0, "PUT /others?restype=container x-ms-blob-public-access=all", 400, "InvalidHeaderValue", ""},
		{0, "HEAD " + container, 200, "", "x-ms-lease-state=available x-ms-lease-status=unlocked x-ms-meta-a=b"},
		{0, lease + "acquire x-ms-lease-duration=60 x-ms-proposed-lease-id=" + idA, 201, "", held + "=" + idA},
		{0, "GET " + container, 200, "", "x-ms-lease-state=leased x-ms-lease-status=locked x-ms-lease-duration=fixed"},
		{0, "GET " + container + " " + held + "=" + idB, 412, "LeaseIdMismatchWithContainerOperation", ""},
		{0, "PUT /docs/b", 201, "", ""},
		{0, "DELETE " + container, 412, "LeaseIdMissing", ""},
		{60 * time.Second, "GET " + container, 200, "", "x-ms-lease-state=expired x-ms-lease-duration="},
		{0, lease + "renew" + withA, 200, "", ""},
		{0, "DELETE " + container + withA, 202, "", ""},
		{0, "PUT " + container, 201, "", ""},
		{0, "GET /docs/b", 404, "BlobNotFound", ""},
		{0, lease + "break", 409, "LeaseNotPresentWithLeaseOperation", ""},
		{0, "DELETE " + container + withA, 412, "LeaseNotPresentWithContainerOperation", ""},
		{0, "DELETE " + container, 202, "", ""},
		{0, lease + "acquire x-ms-lease-duration=60", 404, "ContainerNotFound", ""},
	})
}

func TestHeadersOfLeases(t *testing.T) {
	const lease = "PUT /c/b?comp=lease "
	const invalid, missing = "InvalidHeaderValue", "MissingRequiredHeader"
	for _, c := range []struct{ headers, code string }{
		{"", missing},
		{"x-ms-lease-action=take", invalid},
		{"x-ms-lease-action=acquire", missing},
		{"x-ms-lease-action=acquire x-ms-lease-duration=0", invalid},
		{"x-ms-lease-action=acquire x-ms-lease-duration=14", invalid},
		{"x-ms-lease-action=acquire x-ms-lease-duration=61", invalid},
		{"x-ms-lease-action=acquire x-ms-lease-duration=x", invalid},
		{"x-ms-lease-action=acquire x-ms-lease-duration=15 x-ms-proposed-lease-id=x", invalid},
		{"x-ms-lease-action=renew", missing},
		{"x-ms-lease-action=renew x-ms-lease-id=x", invalid},
		{"x-ms-lease-action=change x-ms-lease-id=" + idA, missing},
		{"x-ms-lease-action=release", missing},
		{"x-ms-lease-action=break x-ms-lease-break-period=61", invalid},
	} {
		run(t, []step{{0, "PUT /c/b", 201, "", ""}, {0, lease + c.headers, 400, c.code, ""}, {0, "PUT /c/b", 201, "", ""}})
	}
}

// A list shows the lease of each blob.
func TestLeasesInAList(t *testing.T) {
	ask := start(t)
	for _, name := range []string{"a", "b"} {
		ask("PUT", "/c/"+name, "good", "").Body.Close()
	}
	ask("PUT", "/c/b?comp=lease", "good", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1").Body.Close()
	got := ask("GET", "/c?restype=container&comp=list", "good", "")
	defer got.Body.Close()
	var page struct {
		Status   []string `xml:"Blobs>Blob>Properties>LeaseStatus"`
		State    []string `xml:"Blobs>Blob>Properties>LeaseState"`
		Duration []string `xml:"Blobs>Blob>Properties>LeaseDuration"`
	}
	if err := xml.NewDecoder(got.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(append(append(page.Status, page.State...), page.Duration...), " ")
	if want := "unlocked locked available leased infinite"; all != want {
		t.Errorf("leases in the list: %s, want %s", all, want)
	}
}
