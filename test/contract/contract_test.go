// Package contract tests the local Azure with Azure's official clients, and kaz's documents with the
// official models. It is a module of its own, because those modules take long to compile and must
// never become part of the product.
//
// Most tests run in the process, in a testing/synctest bubble with Azure's latencies, so pollers wait
// as long as Azure says without real time. Of kaz, only packages of the local Azure are used.
package contract

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

const (
	subscription = core.DefaultSubscription
	region       = "eastus"
	group        = "rg"
)

// token is a credential that needs no server.
type token string

func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// local is a local Azure with its clients.
type local struct {
	testing.TB
	*core.Emulator
	judge     *judge
	options   *arm.ClientOptions
	network   *armnetwork.ClientFactory
	compute   *armcompute.ClientFactory
	resources *armresources.ClientFactory
}

// inBubble runs a test with a new local Azure in the process.
func inBubble(t *testing.T, o core.Options, f func(a *local)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := build(t, o)
		a := connect(t, &judge{TB: t, next: e.Transport()}, "https://management.local")
		a.Emulator = e
		f(a)
	})
}

func build(t testing.TB, o core.Options) *core.Emulator {
	t.Helper()
	o.Providers = providers.All()
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// asOnAzure are the latencies that were seen on Azure.
const asOnAzure = 1

// connect makes the clients for an endpoint. Options are for tests that need other
// retries or further policies.
func connect(t testing.TB, j *judge, endpoint string, options ...func(*arm.ClientOptions)) *local {
	t.Helper()
	o := &arm.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: j,
		Cloud: cloud.Configuration{Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint},
		}},
	}}
	for _, change := range options {
		change(o)
	}
	a := &local{TB: t, judge: j, options: o}
	var errs [3]error
	a.network, errs[0] = armnetwork.NewClientFactory(subscription, token("any"), o)
	a.compute, errs[1] = armcompute.NewClientFactory(subscription, token("any"), o)
	a.resources, errs[2] = armresources.NewClientFactory(subscription, token("any"), o)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return a
}

// and makes other clients of the same Azure.
func (a *local) and(options ...func(*arm.ClientOptions)) *local {
	a.Helper()
	b := connect(a.TB, a.judge, "https://management.local", options...)
	b.Emulator = a.Emulator
	return b
}

// clients returns the clients of a module that only some tests need.
func clients[F any](a *local, make func(string, azcore.TokenCredential, *arm.ClientOptions) (*F, error)) *F {
	a.Helper()
	f, err := make(subscription, token("any"), a.options)
	a.must(err)
	return f
}

// group makes the resource group that most tests need.
func (a *local) group() {
	a.Helper()
	a.groupNamed(group)
}

func (a *local) groupNamed(name string) {
	a.Helper()
	_, err := a.resources.NewResourceGroupsClient().CreateOrUpdate(a.Context(), name,
		armresources.ResourceGroup{Location: new(region)}, nil)
	a.must(err)
}

func (a *local) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// refused wants an error of Azure's with this status and code.
func (a *local) refused(err error, status int, code string) {
	a.Helper()
	if refusal := a.refusal(err, status); refusal.ErrorCode != code {
		a.Fatalf("%d %s, want %s: %v", status, refusal.ErrorCode, code, err)
	}
}

// refusal is the error of Azure's that err must be.
func (a *local) refusal(err error, status int) *azcore.ResponseError {
	a.Helper()
	refusal, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case err == nil:
		a.Fatalf("no error, want status %d", status)
	case !ok:
		a.Fatalf("%v, want an error of Azure's with status %d", err, status)
	case refusal.StatusCode != status:
		a.Fatalf("%d %s, want status %d: %v", refusal.StatusCode, refusal.ErrorCode, status, err)
	}
	return refusal
}

// ended waits for a long-running operation: ended(client.BeginX(...)).
func ended[T any](p *runtime.Poller[T], err error) (T, error) {
	if err != nil {
		return *new(T), err
	}
	return p.PollUntilDone(context.Background(), nil)
}

// gone is ended for operations without a result.
func gone[T any](p *runtime.Poller[T], err error) error {
	_, err = ended(p, err)
	return err
}

// every collects the items of all pages.
func every[P, R any](p *runtime.Pager[P], items func(P) []*R) ([]*R, error) {
	var all []*R
	for p.More() {
		page, err := p.NextPage(context.Background())
		if err != nil {
			return nil, err
		}
		all = append(all, items(page)...)
	}
	return all, nil
}

// id is the id of a resource of the group.
func id(fullType, name string) azure.ID {
	return azure.GroupID(subscription, group).Resource(fullType, name)
}

func networkID(kind, name string) azure.ID { return id("Microsoft.Network/"+kind, name) }

func ref(to azure.ID) *armnetwork.SubResource {
	return &armnetwork.SubResource{ID: new(string(to))}
}

func has[T comparable](t testing.TB, what string, got *T, want T) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is absent, want %v", what, want)
	} else if *got != want {
		t.Errorf("%s is %v, want %v", what, *got, want)
	}
}

// life checks what every resource type must support. Its functions get the name of the resource.
type life[R any] struct {
	given  func(a *local) // what must be there
	names  [2]string      // of two of them, when they are not "one" and "Two"
	want   func(name string) R
	put    func(a *local, name string, r R) (R, error)
	get    func(a *local, name string) (R, error)
	list   func(a *local) ([]*R, error)
	remove func(a *local, name string) error
	id     func(r *R) *string
	// change and changed are an update and whether it is to be seen.
	change  func(r *R)
	changed func(r *R) bool
	// absent is the code of a 404; "" is ResourceNotFound.
	absent string
}

// A case of a table of lives of several types.
type lifecase struct {
	name string
	run  func(a *local)
}

func lives(t *testing.T, cases []lifecase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { inBubble(t, core.Options{Latency: asOnAzure}, c.run) })
	}
}

// run creates, reads, lists, updates and deletes.
func (l life[R]) run(a *local) {
	if l.absent == "" {
		l.absent = "ResourceNotFound"
	}
	if l.names[0] == "" {
		l.names = [2]string{"one", "Two"}
	}
	one, two := l.names[0], l.names[1]
	if l.given == nil {
		// A missing group contains nothing.
		_, err := l.get(a, one)
		a.refused(err, http.StatusNotFound, "ResourceGroupNotFound")
		_, err = l.list(a)
		a.refused(err, http.StatusNotFound, "ResourceGroupNotFound")
	}
	a.group()
	if l.given != nil {
		l.given(a)
	}
	_, err := l.get(a, one)
	a.refused(err, http.StatusNotFound, l.absent)
	l.isListed(a)

	for i, name := range l.names {
		made, err := l.put(a, name, l.want(name))
		a.must(err)
		got, err := l.get(a, name)
		a.must(err)
		has(a, "id of what was made", l.id(&made), *l.id(&got))
		l.isListed(a, l.names[:i+1]...)
	}
	l.update(a)

	a.must(l.remove(a, one))
	_, err = l.get(a, one)
	a.refused(err, http.StatusNotFound, l.absent)
	a.must(l.remove(a, one)) // of what is not there: 204
	l.isListed(a, two)
	a.must(l.remove(a, strings.ToUpper(two))) // names are the same in any case
	l.isListed(a)
}

func (l life[R]) update(a *local) {
	r, err := l.get(a, l.names[0])
	a.must(err)
	l.change(&r)
	after, err := l.put(a, l.names[0], r)
	a.must(err)
	if !l.changed(&after) {
		a.Error("the reply to the update does not show it")
	}
	after, err = l.get(a, l.names[0])
	a.must(err)
	if !l.changed(&after) {
		a.Error("the update is not to be read")
	}
}

// isListed compares the names in the list.
func (l life[R]) isListed(a *local, want ...string) {
	a.Helper()
	items, err := l.list(a)
	a.must(err)
	var names []string
	for _, r := range items {
		if l.id(r) == nil {
			a.Fatalf("an item of the list has no id: %+v", *r)
		}
		names = append(names, azure.ID(*l.id(r)).Name())
	}
	slices.Sort(names)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(names, want) {
		a.Errorf("listed are %q, want %q", names, want)
	}
}
