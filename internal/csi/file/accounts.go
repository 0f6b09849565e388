package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/plan"
	"kaz/internal/plan/share"
	"kaz/internal/reconcile"
)

// accounts chooses and makes storage accounts, and knows their shares. What it reads is kept for a minute, so that many
// volumes at a time need one list.
type accounts struct {
	azure Azure
	log   *slog.Logger

	lists    *memo[[]share.Account]     // by resource group
	services *memo[storage.FileService] // by account
	shares   *memo[*inventory]          // by account
	made     *memo[share.Account]       // by name, also while it is being made
	networks *memo[[]azure.ID]          // subnets with service endpoints, by virtual network
	ready    *memo[bool]                // private endpoints, by what they consist of; subnets, by id; rules, by account and subnets

	mu sync.Mutex // held while room in an account is looked for and taken
}

// inventory is the shares of an account, and those that are being created.
type inventory struct {
	mu     sync.Mutex
	quotas map[string]int64 // GiB, by name
}

// keepFor is how long what was read counts.
const keepFor = time.Minute

func newAccounts(to Azure, log *slog.Logger) *accounts {
	return &accounts{
		azure: to, log: log, lists: newMemo[[]share.Account](keepFor), services: newMemo[storage.FileService](keepFor),
		shares: newMemo[*inventory](keepFor), made: newMemo[share.Account](keepFor),
		networks: newMemo[[]azure.ID](keepFor), ready: newMemo[bool](10 * keepFor),
	}
}

// want is what a volume wants of an account.
type want struct {
	request share.Request
	volume  string // name of the volume
	share   string
	size    int64 // GiB
}

// place is where a share is or will be.
type place struct {
	account share.Account
	// have is the size of the share that exists, 0 if it has to be created.
	have int64
	// release gives the room back that was taken for the share. It is called if the share is not created.
	release func()
}

// named returns the place of a share in an account that the user names.
func (a *accounts) named(ctx context.Context, w want) (place, error) {
	id := w.request.Group().Resource(storage.Accounts, w.request.Account)
	account, err := a.account(ctx, id)
	if err != nil {
		return place{}, err
	}
	return a.take(ctx, account, w, true)
}

// account returns an account as it was up to a minute ago.
func (a *accounts) account(ctx context.Context, id azure.ID) (share.Account, error) {
	return a.made.get(ctx, id.Key(), func(ctx context.Context) (share.Account, error) { return a.read(ctx, id) })
}

func (a *accounts) read(ctx context.Context, id azure.ID) (share.Account, error) {
	doc, err := a.azure.Get(ctx, id)
	if err != nil {
		return share.Account{}, err
	}
	return azure.Decode[storage.Account](doc)
}

// choose returns a place for a share: the account that has it, the first account with room, or a new account.
func (a *accounts) choose(ctx context.Context, w want) (place, error) {
	w.request.Now = time.Now()
	if err := a.findSubnets(ctx, &w.request); err != nil {
		return place{}, err
	}
	all, err := a.list(ctx, w.request)
	if err != nil {
		return place{}, err
	}
	for _, account := range a.candidates(all, w) {
		fits, err := a.fileServiceFits(ctx, account, w.request)
		if err != nil {
			return place{}, err
		}
		if !fits {
			continue
		}
		p, err := a.take(ctx, account, w, false)
		if errors.Is(err, errFull) {
			continue
		}
		if err == nil {
			if err = a.admit(ctx, account, w.request); err != nil {
				p.release()
			}
		}
		return p, err
	}
	account, err := a.create(ctx, all, w)
	if err != nil {
		return place{}, err
	}
	return a.take(ctx, account, w, true)
}

// candidates returns the accounts that can have a share, the best first.
func (a *accounts) candidates(all []share.Account, w want) []share.Account {
	if b := w.request.CreateAccount; b != nil && *b {
		own := w.request.NewName(w.volume, 0)
		return slices.DeleteFunc(slices.Clone(all), func(x share.Account) bool { return !strings.EqualFold(x.ID.Name(), own) })
	}
	return w.request.Order(all, w.volume)
}

func (a *accounts) list(ctx context.Context, r share.Request) ([]share.Account, error) {
	group := r.Group()
	return a.lists.get(ctx, group.Key(), func(ctx context.Context) ([]share.Account, error) {
		docs, err := a.azure.List(ctx, azure.Query{Scope: group, Type: storage.Accounts})
		if err != nil {
			return nil, err
		}
		var all []share.Account
		for _, doc := range docs {
			account, err := azure.Decode[storage.Account](doc)
			if err != nil {
				return nil, err
			}
			all = append(all, account)
		}
		return all, nil
	})
}

// fileServiceFits reports whether the file service of an account is as asked for. An account that was made for such requests
// gets the settings that it lacks. While such an account does not answer, no other one is made.
func (a *accounts) fileServiceFits(ctx context.Context, account share.Account, r share.Request) (bool, error) {
	if !r.NeedsFileService() {
		return true, nil
	}
	service, err := a.services.get(ctx, account.ID.Key(), func(ctx context.Context) (storage.FileService, error) {
		doc, err := a.azure.Get(ctx, storage.FileServiceOf(account.ID))
		if err != nil {
			return storage.FileService{}, err
		}
		s, err := azure.Decode[storage.FileService](doc)
		return s.Properties, err
	})
	fits := err == nil && r.MatchesFileService(service)
	own := r.Made(account.ID.Name())
	if err == nil && !fits && own {
		a.services.forget(account.ID.Key())
		err = a.setFileService(ctx, account.ID, r)
		fits = err == nil
	}
	kind := azure.KindOf(err)
	if err != nil && !own && (kind == azure.Denied || kind == azure.NotFound) {
		a.log.WarnContext(ctx, "storage account is passed over: its file service cannot be read", "account", account.ID, "error", err)
		return false, nil
	}
	return fits, err
}

var errFull = errors.New("the storage account is full")

// take takes room for a share in an account, unless the account is full. An account that the user named, or that was just made,
// is not refused here: Azure decides.
func (a *accounts) take(ctx context.Context, account share.Account, w want, insist bool) (place, error) {
	have, err := a.inventory(ctx, account.ID)
	if err != nil {
		return place{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	have.mu.Lock()
	defer have.mu.Unlock()
	if size, exists := have.quotas[w.share]; exists {
		return place{account: account, have: size, release: func() {}}, nil
	}
	quotas := make([]int64, 0, len(have.quotas))
	for _, q := range have.quotas {
		quotas = append(quotas, q)
	}
	if !insist && w.request.Full(account, quotas, w.size) {
		return place{}, errFull
	}
	have.quotas[w.share] = w.size
	return place{account: account, release: func() { have.remove(w.share) }}, nil
}

func (i *inventory) remove(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.quotas, name)
}

// inventory returns the shares of an account.
func (a *accounts) inventory(ctx context.Context, account azure.ID) (*inventory, error) {
	return a.shares.get(ctx, account.Key(), func(ctx context.Context) (*inventory, error) {
		docs, err := a.azure.List(ctx, azure.Query{Scope: storage.FileServiceOf(account), Type: storage.Shares})
		if err != nil {
			return nil, err
		}
		have := &inventory{quotas: map[string]int64{}}
		for _, doc := range docs {
			s, err := azure.Decode[storage.Share](doc)
			if err != nil {
				return nil, err
			}
			have.quotas[s.ID.Name()] = s.Properties.QuotaGiB
		}
		return have, nil
	})
}

// create makes an account, or returns the one that another caller or process makes at the same time.
func (a *accounts) create(ctx context.Context, all []share.Account, w want) (share.Account, error) {
	for attempt := range share.MostAccounts {
		name := w.request.NewName(w.volume, attempt)
		i := slices.IndexFunc(all, func(x share.Account) bool { return strings.EqualFold(x.ID.Name(), name) })
		switch {
		case i >= 0 && w.request.Closed(all[i]):
			return share.Account{}, status.Errorf(codes.FailedPrecondition, "storage account %s was made for this class and has "+
				"allowSharedKeyAccess false now, while nodes mount with a key: allow it, or choose a class with an identity", name)
		case i >= 0:
			continue // it was made before, and does not fit or is full now
		}
		id := w.request.Group().Resource(storage.Accounts, name)
		account, err := a.made.get(ctx, id.Key(), func(ctx context.Context) (share.Account, error) { return a.make(ctx, name, w.request) })
		if azure.KindOf(err) == azure.Exists {
			continue // another subscription has an account of this name
		}
		return account, err
	}
	return share.Account{}, fmt.Errorf("no name is left for a new storage account in %s: remove unused accounts", w.request.Group())
}

func (a *accounts) make(ctx context.Context, name string, r share.Request) (share.Account, error) {
	account := r.NewAccount(name)
	if err := a.openSubnets(ctx, r); err != nil {
		return account, err
	}
	a.log.InfoContext(ctx, "storage account is made", "account", account.ID, "sku", account.SKU.Name)
	body, _, err := azure.Overlay(nil, account)
	if err != nil {
		return account, err
	}
	if _, err := azure.Do(ctx, a.azure, azure.Request{Verb: azure.Put, ID: account.ID, Body: body, Unseen: true}); err != nil {
		return account, err
	}
	if r.NeedsFileService() {
		if err := a.setFileService(ctx, account.ID, r); err != nil {
			return account, err
		}
	}
	a.shares.keep(account.ID.Key(), &inventory{quotas: map[string]int64{}})
	if all, ok := a.lists.peek(r.Group().Key()); ok {
		a.lists.keep(r.Group().Key(), append(slices.Clone(all), account))
	}
	return account, nil
}

func (a *accounts) setFileService(ctx context.Context, account azure.ID, r share.Request) error {
	id := storage.FileServiceOf(account)
	body, _, err := azure.Overlay(nil, azure.Resource[storage.FileService]{ID: id, Properties: r.FileService()})
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, a.azure, azure.Request{Verb: azure.Put, ID: id, Body: body, Unseen: true})
	return err
}

// findSubnets adds the subnets of the virtual network to a request that names none, and gives them service endpoints.
func (a *accounts) findSubnets(ctx context.Context, r *share.Request) error {
	if !r.NeedsNetworkSubnets() {
		return nil
	}
	all, err := a.networks.get(ctx, r.Network().Key(), func(ctx context.Context) ([]azure.ID, error) { return a.subnetsOf(ctx, *r) })
	if err != nil {
		return fmt.Errorf("subnets of virtual network %s: %w", r.Network().Name(), err)
	}
	r.NetworkSubnets = all
	return nil
}

// subnetsOf returns the subnets of a virtual network that have the service endpoint of storage or get it here. A subnet that cannot
// have one is left out, unless the cloud configuration names it.
func (a *accounts) subnetsOf(ctx context.Context, r share.Request) ([]azure.ID, error) {
	docs, err := a.azure.List(ctx, azure.Query{Scope: r.Network(), Type: network.Subnets})
	if azure.KindOf(err) == azure.Denied && r.Cluster.Subnet != "" {
		a.log.WarnContext(ctx,
			"the subnets of the virtual network cannot be listed: only nodes in the configured subnet reach new storage "+
				"accounts", "network", r.Network(), "subnet", r.Cluster.Subnet, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []azure.ID
	for _, doc := range docs {
		have, err := azure.Decode[network.Subnet](doc)
		if err != nil {
			return nil, err
		}
		if !share.TakesNodes(have.ID.Name()) {
			continue
		}
		id := r.Network().Child("subnets", have.ID.Name())
		if _, missing := r.WithEndpoint(have); missing {
			err = a.openSubnet(ctx, r, id)
		}
		passing := []azure.Kind{azure.Throttled, azure.Unavailable, azure.Canceled, azure.Busy, azure.Changed}
		switch {
		case err == nil:
			a.ready.keep(id.Key(), true)
			all = append(all, id)
		case r.Configured(id) || slices.Contains(passing, azure.KindOf(err)):
			return nil, fmt.Errorf("service endpoint of subnet %s: %w", id.Name(), err)
		default:
			a.log.WarnContext(ctx, "a subnet gets no service endpoint: its nodes do not reach new storage accounts",
				"subnet", id, "error", err)
		}
	}
	if len(all) == 0 {
		return nil, status.Errorf(codes.FailedPrecondition,
			"no subnet has a service endpoint for Microsoft.Storage or can get one: name one "+
				"in subnetName")
	}
	return all, nil
}

// openSubnets gives subnets the service endpoint of storage.
func (a *accounts) openSubnets(ctx context.Context, r share.Request) error {
	if !r.NeedsSubnets() {
		return nil
	}
	for _, id := range r.Subnets() {
		_, err := a.ready.get(ctx, id.Key(), func(ctx context.Context) (bool, error) { return true, a.openSubnet(ctx, r, id) })
		if err != nil {
			return fmt.Errorf("service endpoint of subnet %s: %w", id.Name(), err)
		}
	}
	return nil
}

func (a *accounts) openSubnet(ctx context.Context, r share.Request, id azure.ID) error {
	doc, err := a.azure.Get(ctx, id)
	if err != nil {
		return err
	}
	have, err := azure.Decode[network.Subnet](doc)
	if err != nil {
		return err
	}
	have.ID = id
	wanted, missing := r.WithEndpoint(have)
	if !missing {
		return nil
	}
	body, _, err := azure.Overlay(doc, wanted)
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, a.azure, azure.Request{Verb: azure.Put, ID: id, Body: body, IfMatch: have.Etag, Unseen: true})
	return err
}

// admit adds rules to an account of the driver for subnets of a request that have none. The nodes can have more subnets than
// when the account was made. Rules of other programs stay.
func (a *accounts) admit(ctx context.Context, account share.Account, r share.Request) error {
	if len(r.MissingSubnets(account)) == 0 {
		return nil
	}
	_, err := a.ready.get(ctx, fmt.Sprint(account.ID.Key(), r.Subnets()), func(ctx context.Context) (bool, error) {
		return true, a.addSubnets(ctx, account.ID, r)
	})
	if err != nil {
		return fmt.Errorf("open storage account %s for subnets: %w", account.ID.Name(), err)
	}
	return nil
}

func (a *accounts) addSubnets(ctx context.Context, id azure.ID, r share.Request) error {
	if err := a.openSubnets(ctx, r); err != nil {
		return err
	}
	doc, err := a.azure.Get(ctx, id)
	if err != nil {
		return err
	}
	have, err := azure.Decode[storage.Account](doc)
	if err != nil || len(r.MissingSubnets(have)) == 0 {
		return err
	}
	a.log.InfoContext(ctx, "storage account gets rules for subnets", "account", id, "subnets", r.MissingSubnets(have))
	rules := r.WithSubnets(have)
	body, err := rulesOf(doc, azure.Resource[storage.Account]{ID: id, Properties: storage.Account{NetworkRules: &rules}})
	if err != nil {
		return err
	}
	after, err := azure.Do(ctx, a.azure, azure.Request{Verb: azure.Patch, ID: id, Body: body})
	if err != nil {
		return err
	}
	a.lists.forget(r.Group().Key())
	now, err := azure.Decode[storage.Account](after)
	if err == nil && len(r.MissingSubnets(now)) > 0 {
		err = &azure.Error{Kind: azure.Unavailable, ID: id, Message: "Azure reports success, and the account has no rule for a subnet"}
	}
	return err
}

// rulesOf returns the change of an account that sets all its network rules: the wanted ones, and what the document has
// besides them.
func rulesOf(doc azure.Document, wanted share.Account) (azure.Document, error) {
	all, _, err := azure.Overlay(doc, wanted)
	if err != nil {
		return nil, err
	}
	var change struct {
		Properties struct {
			Rules json.RawMessage `json:"networkAcls"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(all, &change); err != nil {
		return nil, err
	}
	return json.Marshal(change)
}

// connect makes the private endpoint of an account.
func (a *accounts) connect(ctx context.Context, account azure.ID, r share.Request) error {
	_, err := a.ready.get(ctx, fmt.Sprint(r.EndpointNeeds(account)), func(ctx context.Context) (bool, error) {
		outcome, err := reconcile.Converge(ctx, fresh{a.azure}, connection{r, account})
		for _, report := range outcome.Reports {
			err = errors.Join(err, report.Err())
		}
		return err == nil, err
	})
	return err
}

// fresh is Azure without a cache.
type fresh struct{ Azure }

func (f fresh) Fresh() azure.Reader { return f }

// connection is the private endpoint of an account as a target.
type connection struct {
	request share.Request
	account azure.ID
}

// Needs implements [reconcile.Target].
func (c connection) Needs(plan.Snapshot) reconcile.Needs {
	return reconcile.Needs{Resources: c.request.EndpointNeeds(c.account)}
}

// Decide implements [reconcile.Target].
func (c connection) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	graph, err := c.request.PrivateEndpoint(c.account, have)
	return reconcile.Decision{Graph: graph}, err
}

// skip tags an account so that no process chooses it for some time.
func (a *accounts) skip(ctx context.Context, account share.Account, group azure.ID) error {
	a.log.WarnContext(ctx, "storage account is full", "account", account.ID, "tag", share.TagSkip)
	a.lists.forget(group.Key())
	doc, err := a.azure.Get(ctx, account.ID)
	if err != nil {
		return err
	}
	have, err := azure.Decode[storage.Account](doc)
	if err != nil {
		return err
	}
	tags := azure.Tags{}
	maps.Copy(tags, have.Tags)
	maps.DeleteFunc(tags, func(name, _ string) bool { return strings.EqualFold(name, share.TagSkip) })
	tags[share.TagSkip] = share.SkipUntil(time.Now())
	body, _, err := azure.Overlay(nil, azure.Resource[storage.Account]{ID: account.ID, Tags: tags})
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, a.azure, azure.Request{Verb: azure.Patch, ID: account.ID, Body: body, Unseen: true})
	return err
}

// fullCodes are Azure's codes of an account without room for one more share.
var fullCodes = []string{
	"TotalSharesProvisionedCapacityExceedsAccountLimit", "TotalSharesCountExceedsAccountLimit",
	"TotalSharesProvisionedIopsExceedsAccountLimit", "TotalSharesProvisionedBandwidthExceedsAccountLimit",
}

// isFull reports whether Azure refused a share because its account has no room.
func isFull(err error) bool {
	e, ok := errors.AsType[*azure.Error](err)
	return ok && slices.Contains(fullCodes, e.Code)
}

// gone forgets a share that was deleted.
func (a *accounts) gone(id azure.ID) {
	if have, ok := a.shares.peek(id.Parent().Parent().Key()); ok {
		have.remove(id.Name())
	}
}
