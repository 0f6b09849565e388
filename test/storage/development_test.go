package storage_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// developed is a local Azure with the account that clients of storage emulators know.
type developed struct {
	*testing.T
	connection string
	info       client.Info
}

func startDeveloped(t *testing.T, o server.Options) developed {
	t.Helper()
	o.DevelopmentStorage, o.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	a, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return developed{t, a.Info().DevelopmentStorage, a.Info()}
}

func (d developed) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// blobs returns a client of blobs, with a container.
func (d developed) blobs(container string) *azblob.Client {
	client, err := azblob.NewClientFromConnectionString(d.connection, nil)
	d.must(err)
	_, err = client.CreateContainer(context.Background(), container, nil)
	d.must(err)
	return client
}

// TestDevelopmentStorage uses blobs, queues and tables by the connection string that clients of emulators have.
func TestDevelopmentStorage(t *testing.T) {
	d := startDeveloped(t, server.Options{})
	if want := "AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"; !strings.Contains(d.connection, want) {
		t.Fatalf("the connection string is %s", d.connection)
	}
	t.Run("blobs", d.testBlobs)
	t.Run("queues", d.testQueues)
	t.Run("tables", d.testTables)
}

func (d developed) testBlobs(t *testing.T) {
	d.T = t
	client, ctx := d.blobs("docs"), t.Context()
	const name = "a b/ä.txt"
	_, err := client.UploadBuffer(ctx, "docs", name, []byte("hello"), nil)
	d.must(err)
	blob := client.ServiceClient().NewContainerClient("docs").NewBlobClient(name)
	link, err := blob.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	d.must(err)
	r, err := http.Get(link)
	d.must(err)
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || string(text) != "hello" {
		t.Errorf("by a signature: %s %s %v", r.Status, text, err)
	}
	copied := client.ServiceClient().NewContainerClient("docs").NewBlobClient("copy")
	_, err = copied.StartCopyFromURL(ctx, blob.URL(), nil)
	d.must(err)
	batch, err := client.ServiceClient().NewBatchBuilder()
	d.must(err)
	d.must(batch.Delete("docs", "copy", nil))
	answer, err := client.ServiceClient().SubmitBatch(ctx, batch, nil)
	d.must(err)
	for _, one := range answer.Responses {
		d.must(one.Error)
	}
	page, err := client.NewListBlobsFlatPager("docs", nil).NextPage(ctx)
	d.must(err)
	if got := page.Segment.BlobItems; len(got) != 1 || *got[0].Name != name || !strings.HasSuffix(*page.ServiceEndpoint, "/devstoreaccount1/") {
		t.Errorf("the list of %s has %d blobs", *page.ServiceEndpoint, len(got))
	}
}

func (d developed) testQueues(t *testing.T) {
	d.T = t
	service, err := azqueue.NewServiceClientFromConnectionString(d.connection, nil)
	d.must(err)
	_, err = service.CreateQueue(t.Context(), "work", nil)
	d.must(err)
	queue := service.NewQueueClient("work")
	_, err = queue.EnqueueMessage(t.Context(), "do it", nil)
	d.must(err)
	got, err := queue.DequeueMessage(t.Context(), nil)
	d.must(err)
	if len(got.Messages) != 1 || *got.Messages[0].MessageText != "do it" {
		t.Fatalf("messages: %v", got.Messages)
	}
	_, err = queue.DeleteMessage(t.Context(), *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, nil)
	d.must(err)
}

func (d developed) testTables(t *testing.T) {
	d.T = t
	service, err := aztables.NewServiceClientFromConnectionString(d.connection, nil)
	d.must(err)
	_, err = service.CreateTable(t.Context(), "People", nil)
	d.must(err)
	table := service.NewClient("People")
	_, err = table.SubmitTransaction(t.Context(), []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"a","RowKey":"1"}`)},
		{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"a","RowKey":"2"}`)},
	}, nil)
	d.must(err)
	page, err := table.NewListEntitiesPager(nil).NextPage(t.Context())
	d.must(err)
	if len(page.Entities) != 2 {
		t.Errorf("%d entities, want 2", len(page.Entities))
	}
}

// A wrong key, and another name for this machine, such as that of a web page, are refused.
func TestDevelopmentStorageRefuses(t *testing.T) {
	d := startDeveloped(t, server.Options{})
	endpoint, _, _ := strings.Cut(d.connection[strings.Index(d.connection, "BlobEndpoint=")+len("BlobEndpoint="):], ";")
	d.blobs("docs")
	other := d
	other.connection = strings.Replace(d.connection, "Eby8", "Aby8", 1)
	client, err := azblob.NewClientFromConnectionString(other.connection, nil)
	d.must(err)
	if _, err := client.CreateContainer(t.Context(), "more", nil); err == nil || !strings.Contains(err.Error(), "AuthenticationFailed") {
		t.Errorf("another key: %v", err)
	}
	for host, want := range map[string]int{"": http.StatusUnauthorized, "pages.example": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/docs?restype=container&comp=list", nil)
		d.must(err)
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		d.must(err)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("host %q: %s, want %d", host, answer.Status, want)
		}
	}
}

// The account and what is in it stay over a restart.
func TestDevelopmentStorageStays(t *testing.T) {
	state := t.TempDir() + "/state.json"
	for round := range 2 {
		t.Run("", func(t *testing.T) {
			d := startDeveloped(t, server.Options{State: state})
			client, err := azblob.NewClientFromConnectionString(d.connection, nil)
			d.must(err)
			if round == 0 {
				_, err = client.CreateContainer(t.Context(), "docs", nil)
				d.must(err)
			}
			_, err = client.UploadBuffer(t.Context(), "docs", "x", []byte("y"), nil)
			d.must(err)
		})
	}
}

// A reset empties the account, which is there again at once.
func TestDevelopmentStorageIsReset(t *testing.T) {
	d := startDeveloped(t, server.Options{})
	d.blobs("docs")
	azure, err := client.New(d.info)
	d.must(err)
	_, err = azure.Reset(t.Context())
	d.must(err)
	d.blobs("docs") // no such container is there
}

func TestDevelopmentStorageAddress(t *testing.T) {
	for _, text := range []string{"10000", "127.0.0.1:65534", "example.com:10000", "127.0.0.1:x"} {
		o := server.Options{DevelopmentStorage: text}
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), "--development-storage "+text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
