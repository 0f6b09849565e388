package verify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
	"kaz/internal/verify/bench"
)

// removals is how often a deletion is tried, and between how long it waits.
const (
	removals = 3
	between  = 20 * time.Second
)

// remove removes the group of a run. It returns what is still there.
func remove(o Options, group azure.ID) (left []string) {
	ctx, cancel := o.Removing()
	defer cancel()
	o.Recorder.Label("")
	o.Say("removing resource group %s", group.Name())
	var err error
	for i := range removals {
		if i > 0 && pause.For(ctx, between) != nil {
			break
		}
		if err = removeGroup(ctx, o.Azure, group); err == nil {
			return purge(ctx, o.Azure, group)
		}
		o.Say("resource group %s: %v", group.Name(), err)
	}
	return []string{fmt.Sprintf("resource group %s: %v; remove it with kaz verify clean --all", group.Name(), err)}
}

// removeGroup reads a group, and deletes it if it is one of a run.
func removeGroup(ctx context.Context, a Azure, id azure.ID) error {
	doc, err := a.Get(ctx, id)
	if azure.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isOwn(doc) {
		return errForeign
	}
	_, err = azure.Do(ctx, a, azure.Request{Verb: azure.Delete, ID: id})
	return err
}

// isOwn reports whether a group is one of a run: by its name and its tag.
func isOwn(doc azure.Document) bool {
	return strings.HasPrefix(bench.Text(doc, "name"), prefix) && bench.Text(doc, "tags."+ownerTag) == ownerMark
}

// deletedVaults is the type of key vaults that are deleted and can be recovered.
const deletedVaults = "Microsoft.KeyVault/deletedVaults"

// purge removes the key vaults of a run's group for good, which the deleted group leaves for some days. Names say nothing: the vault must
// have been in the group, which was one of a run. What cannot be removed is returned. It costs nothing, and Azure removes it then.
func purge(ctx context.Context, a Azure, group azure.ID) (left []string) {
	docs, err := a.List(ctx, azure.Query{Scope: azure.SubscriptionID(group.Subscription()), Type: deletedVaults})
	if err != nil {
		return nil // no right to look, or no such provider: no vault was made
	}
	for _, d := range docs {
		vault := azure.ID(bench.Text(d, "properties.vaultId"))
		if !vault.Under(group) {
			continue
		}
		if _, err := azure.Do(ctx, a, azure.Request{Verb: azure.Post, ID: d.ID(), Action: "purge"}); err != nil {
			left = append(left, fmt.Sprintf("deleted key vault %s: %v; Azure removes it after some days", vault.Name(), err))
		}
	}
	return left
}

// Found is a resource group that a run left.
type Found struct {
	Group    string `json:"group"`
	Location string `json:"location"`
	// Expires is the time of its tag, "" if there is no time in it.
	Expires string `json:"expires,omitempty"`
	Expired bool   `json:"expired"`
	// Removed says that it is gone, Failure why it is not.
	Removed bool   `json:"removed"`
	Failure string `json:"failure,omitempty"`
}

// Find lists the groups of runs in a subscription.
func Find(ctx context.Context, a Azure, subscription string, now time.Time) ([]Found, error) {
	docs, err := a.List(ctx, azure.Query{Scope: azure.SubscriptionID(subscription), Type: resourceGroups})
	if err != nil {
		return nil, fmt.Errorf("resource groups of subscription %s: %w", subscription, err)
	}
	found := []Found{}
	for _, d := range docs {
		if !isOwn(d) {
			continue
		}
		f := Found{Group: bench.Text(d, "name"), Location: bench.Text(d, "location")}
		if expires, err := time.Parse(time.RFC3339, bench.Text(d, "tags."+expiryTag)); err == nil {
			f.Expires, f.Expired = expires.UTC().Format(time.RFC3339), expires.Before(now)
		}
		found = append(found, f)
	}
	return found, nil
}

// Remove removes the groups that have expired, or all with unexpired. It notes in each whether it is gone.
func Remove(ctx context.Context, a Azure, subscription string, found []Found, unexpired bool) {
	for i := range found {
		f := &found[i]
		if !f.Expired && !unexpired {
			continue
		}
		if err := removeGroup(ctx, a, azure.GroupID(subscription, f.Group)); err != nil {
			f.Failure = err.Error()
			continue
		}
		f.Removed = true
		purge(ctx, a, azure.GroupID(subscription, f.Group))
	}
}
