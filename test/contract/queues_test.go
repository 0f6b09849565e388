package contract

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/queueerror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/sas"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	storageaccount "kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/queue"
)

// TestQueues sends messages with the official client, which signs with a key of the account. It is a part of what test/storage checks with
// the SDK's own tests, for every change.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := build(t, core.Options{})
		key := ""
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		owner := id("Microsoft.Storage/storageAccounts", "account1")
		must(e.Do(func(w behaviour.World) error {
			if err := w.Apply(behaviour.Itself(), azure.GroupID(subscription, group), behaviour.Object{"location": region}); err != nil {
				return err
			}
			if err := w.Apply(behaviour.Itself(), owner, behaviour.Object{"location": region, "kind": "StorageV2",
				"sku": behaviour.Object{"name": "Standard_LRS"}}); err != nil {
				return err
			}
			doc, _ := w.Get(owner)
			key = storage.Keys(doc)[0]
			return nil
		}))
		service := &queue.Service{Azure: e, Tokens: storageaccount.Tokens{Authenticate: func(string, ...string) (*behaviour.Principal, error) {
			return &behaviour.Principal{ObjectID: "me"}, nil
		}}}
		options := func() *azqueue.ClientOptions { // the client adds its signature to them
			return &azqueue.ClientOptions{ClientOptions: policy.ClientOptions{Transport: handled{service},
				Retry: policy.RetryOptions{MaxRetries: -1}}}
		}
		credential, err := azqueue.NewSharedKeyCredential("account1", key)
		must(err)
		const address = "https://account1.queue.core.windows.net/"
		all, err := azqueue.NewServiceClientWithSharedKeyCredential(address, credential, options())
		must(err)
		ctx := t.Context()
		_, err = all.CreateQueue(ctx, "orders", &azqueue.CreateOptions{Metadata: map[string]*string{"team": new("a")}})
		must(err)
		orders := all.NewQueueClient("orders")
		sent, err := orders.EnqueueMessage(ctx, "one & <two>", &azqueue.EnqueueMessageOptions{TimeToLive: new(int32(3600))})
		must(err)
		got, err := orders.DequeueMessage(ctx, nil)
		must(err)
		m := got.Messages[0]
		if *m.MessageText != "one & <two>" || *m.DequeueCount != 1 || *m.MessageID != *sent.Messages[0].MessageID ||
			!m.ExpirationTime.Equal(time.Now().Add(time.Hour).Truncate(time.Second)) {
			t.Errorf("got %q, taken %d times, until %s", *m.MessageText, *m.DequeueCount, m.ExpirationTime)
		}
		if again, err := orders.DequeueMessage(ctx, nil); err != nil || len(again.Messages) > 0 {
			t.Errorf("while it is hidden: %v, %d messages", err, len(again.Messages))
		}
		<-time.After(30 * time.Second)
		_, err = orders.DequeueMessage(ctx, nil)
		must(err)
		_, err = orders.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)
		if !queueerror.HasCode(err, queueerror.PopReceiptMismatch) {
			t.Errorf("a deletion by the first reader: %v", err)
		}
		properties, err := orders.GetProperties(ctx, nil)
		must(err)
		if *properties.ApproximateMessagesCount != 1 || *properties.Metadata["Team"] != "a" {
			t.Errorf("%d messages, metadata %v", *properties.ApproximateMessagesCount, properties.Metadata)
		}
		signed, err := orders.GetSASURL(sas.QueuePermissions{Read: true}, time.Now().Add(time.Hour), nil)
		must(err)
		reader, err := azqueue.NewQueueClientWithNoCredential(signed, options())
		must(err)
		if _, err := reader.EnqueueMessage(ctx, "x", nil); !queueerror.HasCode(err, queueerror.AuthorizationPermissionMismatch) {
			t.Errorf("a message by a signature to read: %v", err)
		}
		me, err := azqueue.NewServiceClient(address, token("any"), options())
		must(err)
		page, err := me.NewListQueuesPager(nil).NextPage(ctx)
		must(err)
		if len(page.Queues) != 1 || *page.Queues[0].Name != "orders" {
			t.Errorf("the queues are %v", page.Queues)
		}
		_, err = me.DeleteQueue(ctx, "orders", nil)
		must(err)
		if _, err := orders.PeekMessage(ctx, nil); !queueerror.HasCode(err, queueerror.QueueNotFound) {
			t.Errorf("a deleted queue: %v", err)
		}
	})
}
