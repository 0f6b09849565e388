package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	access "kaz/internal/localazure/plane/account"
	plane "kaz/internal/localazure/plane/table"
)

// tables is a local Azure with its tables, in the process.
type tables struct {
	*testing.T
	azure   *core.Emulator
	handler *plane.Service
	options *aztables.ClientOptions
	key     *aztables.SharedKeyCredential
	service *aztables.ServiceClient
	// people is a table that is there.
	people *aztables.Client
	// keys are the keys of the account.
	keys [2]string
}

const tablesURL = "https://account1.table.core.windows.net/"

// withTables runs a test with the tables of the account "account1".
func withTables(t *testing.T, options core.Options, f func(a *tables)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &tables{T: t, azure: build(t, options)}
		a.must(a.azure.Do(func(w behaviour.World) error {
			if err := w.Apply(behaviour.Itself(), azure.GroupID(subscription, group), behaviour.Object{"location": region}); err != nil {
				return err
			}
			id := id("Microsoft.Storage/storageAccounts", "account1")
			if err := w.Apply(behaviour.Itself(), id, behaviour.Object{"location": region, "kind": "StorageV2",
				"sku": behaviour.Object{"name": "Standard_RAGRS"}}); err != nil {
				return err
			}
			doc, _ := w.Get(id)
			a.keys = storage.Keys(doc)
			return nil
		}))
		a.open(&plane.Service{})
		_, err := a.service.CreateTable(a.Context(), "People", nil)
		a.must(err)
		f(a)
	})
}

// open has a service answer.
func (a *tables) open(s *plane.Service) {
	a.Helper()
	s.Azure = a.azure
	s.Tokens = access.Tokens{Authenticate: func(text string, _ ...string) (*behaviour.Principal, error) {
		return &behaviour.Principal{ObjectID: text}, nil
	}}
	a.handler = s
	a.options = &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Transport: handled{s},
		Retry: policy.RetryOptions{MaxRetries: -1}}}
	var err error
	a.key, err = aztables.NewSharedKeyCredential("account1", a.keys[1])
	a.must(err)
	a.service, err = aztables.NewServiceClientWithSharedKey(tablesURL, a.key, a.options)
	a.must(err)
	a.people = a.service.NewClient("People")
}

func (a *tables) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// refused wants an error with a code.
func (a *tables) refused(err error, code string) {
	a.Helper()
	if e, ok := errors.AsType[*azcore.ResponseError](err); !ok || e.ErrorCode != code {
		a.Errorf("got %v, want the code %s", err, code)
	}
}

// entity is the JSON of an entity of a partition.
func entity(partition, row string, more ...any) []byte {
	all := map[string]any{"PartitionKey": partition, "RowKey": row}
	for i := 0; i < len(more); i += 2 {
		all[more[i].(string)] = more[i+1]
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text
}

// insert adds entities of the partition p with numbers as row keys.
func (a *tables) insert(rows ...int) {
	a.Helper()
	for _, n := range rows {
		_, err := a.people.AddEntity(a.Context(), entity("p", fmt.Sprintf("%03d", n), "N", n), nil)
		a.must(err)
	}
}

// rows returns the row keys that a query of a client finds, and how many pages they have.
func (a *tables) rows(c *aztables.Client, o *aztables.ListEntitiesOptions) (found []string, pages int) {
	a.Helper()
	for pager := c.NewListEntitiesPager(o); pager.More(); pages++ {
		page, err := pager.NextPage(a.Context())
		a.must(err)
		for _, text := range page.Entities {
			var e aztables.Entity
			a.must(json.Unmarshal(text, &e))
			found = append(found, e.RowKey)
		}
	}
	return found, pages
}

// Values of all types are written and read again.
func TestTableValues(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		sent := map[string]any{"Bool": true, "Int": int32(-5), "Long": aztables.EDMInt64(math.MaxInt64), "Double": 1.5,
			"Text": "<ü&>", "Id": aztables.EDMGUID("4185404a-5818-48c3-b9be-f217df0dba6f"), "Raw": aztables.EDMBinary{0, 255},
			"At": aztables.EDMDateTime(time.Date(2025, 1, 2, 3, 4, 5, 123456700, time.UTC))}
		text, err := json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: "a b%", RowKey: "é+&="}, Properties: sent})
		a.must(err)
		_, err = a.people.AddEntity(a.Context(), text, nil)
		a.must(err)
		got, err := a.people.GetEntity(a.Context(), "a b%", "é+&=", nil)
		a.must(err)
		var e aztables.EDMEntity
		a.must(json.Unmarshal(got.Value, &e))
		for name, want := range sent {
			if got := e.Properties[name]; fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
				a.Errorf("%s: got %T %v, want %T %v", name, got, got, want, want)
			}
		}
		_, err = a.people.AddEntity(a.Context(), entity("it's", "'"), nil)
		a.must(err)
		_, err = a.people.GetEntity(a.Context(), "it's", "'", nil)
		a.must(err)
		_, err = a.people.AddEntity(a.Context(), entity("p", "nan", "X", "NaN", "X@odata.type", "Edm.Double"), nil)
		a.must(err)
		got, err = a.people.GetEntity(a.Context(), "p", "nan", nil)
		a.must(err)
		if !strings.Contains(string(got.Value), `"X":"NaN","X@odata.type":"Edm.Double"`) {
			a.Errorf("NaN is %s", got.Value)
		}
	})
}

// Queries return entities in the order of their keys, by page, and those alone that a filter wants.
func TestTableQueries(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		a.insert(3, 1, 2, 5, 4, 7, 6)
		_, err := a.people.AddEntity(a.Context(), entity("q", "000", "Name", "O'Hara"), nil)
		a.must(err)
		for filter, want := range map[string]string{
			"":                                       "001 002 003 004 005 006 007 000",
			"PartitionKey eq 'q'":                    "000",
			"N gt 2 and (N le 4 or RowKey eq '007')": "003 004 007",
			"Name eq 'O''Hara'":                      "000",
			"not (PartitionKey eq 'p')":              "000",
			"N eq 'x'":                               "",
		} {
			o := &aztables.ListEntitiesOptions{Top: new(int32(3))}
			if filter != "" {
				o.Filter = &filter
			}
			found, pages := a.rows(a.people, o)
			if got := strings.Join(found, " "); got != want || pages != max(1, (len(found)+2)/3) {
				a.Errorf("%s: got %s in %d pages, want %s", filter, got, pages, want)
			}
		}
		_, err = a.people.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: new("N gt")}).NextPage(a.Context())
		a.refused(err, "InvalidInput")
		page, err := a.people.NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: new("Name,N"), Filter: new("N eq 7"),
			Format: new(aztables.MetadataFormatNone)}).NextPage(a.Context())
		a.must(err)
		if got := string(page.Entities[0]); got != `{"N":7,"Name":null}` {
			a.Errorf("chosen properties: %s", got)
		}
		_, err = a.service.NewClient("Absent").NewListEntitiesPager(nil).NextPage(a.Context())
		a.refused(err, "TableNotFound")
	})
}

// Entities are written on conditions: that they are there, that they are not, and with the etag that the client has read.
func TestTableConditions(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		a.insert(1)
		_, err := a.people.AddEntity(a.Context(), entity("p", "001"), nil)
		a.refused(err, "EntityAlreadyExists")
		first, err := a.people.GetEntity(a.Context(), "p", "001", nil)
		a.must(err)
		merged, err := a.people.UpdateEntity(a.Context(), entity("p", "001", "M", 1), &aztables.UpdateEntityOptions{IfMatch: &first.ETag, UpdateMode: aztables.UpdateModeMerge})
		a.must(err)
		if merged.ETag == first.ETag {
			a.Error("a write does not change the etag")
		}
		_, err = a.people.UpdateEntity(a.Context(), entity("p", "001"), &aztables.UpdateEntityOptions{IfMatch: &first.ETag, UpdateMode: aztables.UpdateModeMerge})
		a.refused(err, "UpdateConditionNotSatisfied")
		_, err = a.people.DeleteEntity(a.Context(), "p", "001", &aztables.DeleteEntityOptions{IfMatch: &first.ETag})
		a.refused(err, "UpdateConditionNotSatisfied")
		_, err = a.people.UpdateEntity(a.Context(), entity("p", "none"), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		a.refused(err, "ResourceNotFound")
		_, err = a.people.DeleteEntity(a.Context(), "p", "none", nil)
		a.refused(err, "ResourceNotFound")
		both, err := a.people.GetEntity(a.Context(), "p", "001", &aztables.GetEntityOptions{Format: new(aztables.MetadataFormatNone)})
		a.must(err)
		if !strings.HasPrefix(string(both.Value), `{"M":1,"N":1,`) {
			a.Errorf("merged: %s", both.Value)
		}
		replace := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		_, err = a.people.UpsertEntity(a.Context(), entity("p", "001", "R", 1), replace)
		a.must(err)
		_, err = a.people.UpsertEntity(a.Context(), entity("p", "002", "R", 1), replace)
		a.must(err)
		one, err := a.people.GetEntity(a.Context(), "p", "001", &aztables.GetEntityOptions{Format: new(aztables.MetadataFormatNone)})
		a.must(err)
		if !strings.HasPrefix(string(one.Value), `{"PartitionKey":"p","R":1,"RowKey"`) {
			a.Errorf("replaced: %s", one.Value)
		}
		_, err = a.people.DeleteEntity(a.Context(), "p", "001", &aztables.DeleteEntityOptions{IfMatch: &one.ETag})
		a.must(err)
		if found, _ := a.rows(a.people, nil); !slices.Equal(found, []string{"002"}) {
			a.Errorf("left are %v", found)
		}
	})
}

// The changes of a transaction are made together, or not at all. The error names the first that fails.
func TestTableTransactions(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		a.insert(1, 2)
		action := func(kind aztables.TransactionType, text []byte) aztables.TransactionAction {
			return aztables.TransactionAction{ActionType: kind, Entity: text}
		}
		many := func(n int) (all []aztables.TransactionAction) {
			for i := range n {
				all = append(all, action(aztables.TransactionTypeInsertMerge, entity("p", fmt.Sprintf("m%03d", i))))
			}
			return all
		}
		add, drop := aztables.TransactionTypeAdd, aztables.TransactionTypeDelete
		for _, test := range []struct {
			actions []aztables.TransactionAction
			want    string
		}{
			{[]aztables.TransactionAction{action(add, entity("p", "003")), action(drop, entity("p", "001")), action(add, entity("p", "002"))},
				`"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"2:The specified entity already exists.`},
			{[]aztables.TransactionAction{action(add, entity("p", "003")), action(add, entity("q", "003"))},
				`"code":"CommandsInBatchActOnDifferentPartitions","message":{"lang":"en-US","value":"1:All commands`},
			{[]aztables.TransactionAction{action(add, entity("p", "003")), action(drop, entity("p", "003"))},
				`"code":"InvalidDuplicateRow","message":{"lang":"en-US","value":"1:The batch request contains`},
			{[]aztables.TransactionAction{action(add, entity("p", "003", "a-b", 1))},
				`"code":"PropertyNameInvalid","message":{"lang":"en-US","value":"0:The property name is invalid`},
			{many(101), `"code":"InvalidInput","message":{"lang":"en-US","value":"99:The batch request operation exceeds`},
		} {
			_, err := a.people.SubmitTransaction(a.Context(), test.actions, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				a.Errorf("got %v, want %s", err, test.want)
			}
		}
		if found, _ := a.rows(a.people, nil); !slices.Equal(found, []string{"001", "002"}) {
			a.Errorf("after transactions that failed there are %v", found)
		}
		_, err := a.people.SubmitTransaction(a.Context(), append(many(98), action(drop, entity("p", "001")),
			action(aztables.TransactionTypeUpdateReplace, entity("p", "002", "R", 1))), nil)
		a.must(err)
		if found, _ := a.rows(a.people, nil); len(found) != 99 || found[0] != "002" || found[98] != "m097" {
			a.Errorf("after a transaction there are %v", found)
		}
		_, err = a.service.NewClient("Absent").SubmitTransaction(a.Context(), many(1), nil)
		if err == nil || !strings.Contains(err.Error(), "0:The table specified does not exist.") {
			a.Errorf("transaction in a table that is not there: %v", err)
		}
	})
}

// Tables of Azure Resource Manager and of the data plane are the same. A table that is made again is empty.
func TestTablesOfBothSides(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		a.insert(1)
		service := id("Microsoft.Storage/storageAccounts", "account1").Child("tableServices", "default")
		id := service.Child("tables", "People")
		apply := func(name string, properties behaviour.Object) {
			a.must(a.azure.Do(func(w behaviour.World) error {
				return w.Apply(behaviour.Itself(), service.Child("tables", name), behaviour.Object{"properties": properties})
			}))
		}
		apply("Animals", behaviour.Object{"signedIdentifiers": []any{behaviour.Object{"id": "reader", "accessPolicy": behaviour.Object{
			"permission": "r", "expiryTime": "2099-01-01T00:00:00Z"}}}})
		_, err := a.service.CreateTable(a.Context(), "animals", nil)
		a.refused(err, "TableAlreadyExists")
		policies, err := a.service.NewClient("ANIMALS").GetAccessPolicy(a.Context(), nil)
		a.must(err)
		if got := policies.SignedIdentifiers; len(got) != 1 || *got[0].ID != "reader" || *got[0].AccessPolicy.Permission != "r" {
			a.Errorf("policies of Azure Resource Manager: %+v", got)
		}
		_, err = a.people.SetAccessPolicy(a.Context(), &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{
			{ID: new("w"), AccessPolicy: &aztables.AccessPolicy{Permission: new("raud"), Expiry: new(time.Now().Add(time.Hour))}}}})
		a.must(err)
		a.azure.Look(func(w behaviour.World) {
			view, _ := w.View(id)
			if got := behaviour.Objects(view, "properties.signedIdentifiers"); len(got) != 1 ||
				behaviour.Text(got[0], "accessPolicy.permission") != "raud" || behaviour.Text(view, "properties.tableName") != "People" {
				a.Errorf("Azure Resource Manager shows %v", view)
			}
		})
		a.must(a.azure.Do(func(w behaviour.World) error { return w.Remove(behaviour.Itself(), id) }))
		_, err = a.people.GetEntity(a.Context(), "p", "001", nil)
		a.refused(err, "TableNotFound")
		<-time.After(time.Second)
		apply("People", behaviour.Object{})
		if found, _ := a.rows(a.people, nil); len(found) != 0 {
			a.Errorf("a table that was made again has %v", found)
		}
		a.insert(2)
		_, err = a.people.Delete(a.Context(), nil)
		a.must(err)
		_, err = a.people.Delete(a.Context(), nil)
		a.refused(err, "ResourceNotFound")
		for name, code := range map[string]string{"ab": "OutOfRangeInput", "1abc": "InvalidResourceName", "a-bc": "InvalidResourceName",
			"Tables": "InvalidResourceName"} {
			_, err := a.service.CreateTable(a.Context(), name, nil)
			a.refused(err, code)
		}
	})
}

// signed returns a client with a shared access signature for the table People, with parameters besides those that all have.
func (a *tables) signed(parameters map[string]string) *aztables.Client {
	a.Helper()
	v := url.Values{"sv": {"2019-02-02"}, "tn": {"people"}, "spr": {"https"}}
	for name, value := range parameters {
		v.Set(name, value)
	}
	text := []string{v.Get("sp"), v.Get("st"), v.Get("se"), "/table/account1/people"}
	for _, name := range []string{"si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"} {
		text = append(text, v.Get(name))
	}
	v.Set("sig", storage.Sign(a.keys[0], strings.Join(text, "\n")))
	c, err := aztables.NewClientWithNoCredential(tablesURL+"People?"+v.Encode(), a.options)
	a.must(err)
	return c
}

// A signature for a table allows what it says: operations, keys from one to another, for a time, and what a stored policy says.
func TestTableSignatures(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		a.insert(1, 2, 3, 4)
		later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		some := a.signed(map[string]string{"sp": "ra", "se": later, "spk": "p", "srk": "002", "epk": "p", "erk": "003"})
		if found, _ := a.rows(some, nil); !slices.Equal(found, []string{"002", "003"}) {
			a.Errorf("a signature for some keys finds %v", found)
		}
		_, err := some.GetEntity(a.Context(), "p", "001", nil)
		a.refused(err, "AuthorizationFailure")
		_, err = some.AddEntity(a.Context(), entity("p", "009"), nil)
		a.refused(err, "AuthorizationFailure")
		_, err = some.AddEntity(a.Context(), entity("p", "0025"), nil)
		a.must(err)
		_, err = some.UpsertEntity(a.Context(), entity("p", "002"), nil)
		a.refused(err, "AuthorizationPermissionMismatch")
		_, err = some.SubmitTransaction(a.Context(), []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeDelete, Entity: entity("p", "002")}}, nil)
		if err == nil || !strings.Contains(err.Error(), `"value":"0:This request is not authorized to perform this operation using this permission.`) {
			a.Errorf("a deletion in a transaction: %v", err)
		}
		_, err = some.Delete(a.Context(), nil)
		a.refused(err, "AuthorizationFailure")
		whole := a.signed(map[string]string{"sp": "r", "se": later, "spk": "p", "epk": "p"})
		if found, _ := a.rows(whole, nil); len(found) != 5 {
			a.Errorf("a signature for a partition finds %v", found)
		}
		_, err = a.people.SetAccessPolicy(a.Context(), &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{
			{ID: new("reader"), AccessPolicy: &aztables.AccessPolicy{Permission: new("r"), Expiry: new(time.Now().Add(time.Hour))}}}})
		a.must(err)
		var listed *aztables.Client
		stored := a.signed(map[string]string{"si": "reader"})
		if found, _ := a.rows(stored, nil); len(found) != 5 {
			a.Errorf("a signature by a policy finds %v", found)
		}
		_, err = a.signed(map[string]string{"si": "gone"}).GetEntity(a.Context(), "p", "001", nil)
		a.refused(err, "AuthenticationFailed")
		a.must(a.azure.Do(func(w behaviour.World) error {
			got, err := w.Act(behaviour.Itself(), id("Microsoft.Storage/storageAccounts", "account1"), "ListServiceSas", behaviour.Object{
				"canonicalizedResource": "/table/account1/people", "signedPermission": "r", "signedExpiry": later, "startPk": "p",
				"startRk": "003", "endPk": "p", "endRk": "003"})
			if err == nil {
				text, _ := got.(behaviour.Object)["serviceSasToken"].(string)
				listed, err = aztables.NewClientWithNoCredential(tablesURL+"People?"+text, a.options)
			}
			return err
		}))
		if found, _ := a.rows(listed, nil); !slices.Equal(found, []string{"003"}) {
			a.Errorf("a signature of Azure Resource Manager finds %v", found)
		}
		<-time.After(2 * time.Hour)
		_, err = stored.GetEntity(a.Context(), "p", "001", nil)
		a.refused(err, "AuthenticationFailed")
	})
}

// A signature for an account is for kinds of resources.
func TestTableAccountSignatures(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		client := func(kinds aztables.AccountSASResourceTypes, may aztables.AccountSASPermissions) *aztables.ServiceClient {
			address, err := a.service.GetAccountSASURL(kinds, may, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
			a.must(err)
			c, err := aztables.NewServiceClientWithNoCredential(address, a.options)
			a.must(err)
			return c
		}
		objects := client(aztables.AccountSASResourceTypes{Object: true}, aztables.AccountSASPermissions{Read: true, Write: true, Add: true})
		_, err := objects.CreateTable(a.Context(), "Other", nil)
		a.refused(err, "AuthorizationResourceTypeMismatch")
		_, err = objects.NewClient("People").AddEntity(a.Context(), entity("p", "1"), nil)
		a.must(err)
		containers := client(aztables.AccountSASResourceTypes{Container: true}, aztables.AccountSASPermissions{Create: true})
		_, err = containers.CreateTable(a.Context(), "Other", nil)
		a.must(err)
		_, err = containers.DeleteTable(a.Context(), "Other", nil)
		a.refused(err, "AuthorizationPermissionMismatch")
		_, err = containers.NewClient("Other").GetAccessPolicy(a.Context(), nil)
		a.refused(err, "AuthorizationFailure")
	})
}

// Requests are signed with Shared Key, too, whose text has the method and headers.
func TestTableSharedKey(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		send := func(key string) int {
			r, err := http.NewRequestWithContext(a.Context(), http.MethodPost, tablesURL+"Tables", strings.NewReader(`{"TableName":"Other"}`))
			a.must(err)
			date := time.Now().UTC().Format(http.TimeFormat)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Ms-Date", date)
			r.Header.Set("Authorization", "SharedKey account1:"+storage.Sign(key, "POST\n\napplication/json\n"+date+"\n/account1/Tables"))
			reply, err := handled{a.handler}.Do(r)
			a.must(err)
			defer reply.Body.Close()
			return reply.StatusCode
		}
		if got := send("d3Jvbmc="); got != http.StatusForbidden {
			a.Errorf("with another key: %d", got)
		}
		if got := send(a.keys[0]); got != http.StatusCreated {
			a.Errorf("with a key: %d", got)
		}
	})
}

// Senders of tokens have the rights of their roles. The secondary location of an account is only read.
func TestTableRights(t *testing.T) {
	withTables(t, core.Options{AccessControl: true}, func(a *tables) {
		a.insert(1)
		const reader, contributor = "76199698-9eea-4c19-bc75-cec21354c6b6", "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3"
		principals := map[string]string{"reader": "00000000-0000-0000-0000-000000000001", "writer": "00000000-0000-0000-0000-000000000002",
			"stranger": "00000000-0000-0000-0000-000000000003"}
		assign(a, principals["reader"], reader)
		assign(a, principals["writer"], contributor)
		client := func(principal string) *aztables.Client {
			c, err := aztables.NewClient(tablesURL+"People", token(principals[principal]), a.options)
			a.must(err)
			return c
		}
		if found, _ := a.rows(client("reader"), nil); len(found) != 1 {
			a.Errorf("the reader finds %v", found)
		}
		_, err := client("reader").AddEntity(a.Context(), entity("p", "2"), nil)
		a.refused(err, "AuthorizationPermissionMismatch")
		_, err = client("writer").UpsertEntity(a.Context(), entity("p", "2"), nil)
		a.must(err)
		_, err = client("writer").GetAccessPolicy(a.Context(), nil)
		a.refused(err, "AuthorizationPermissionMismatch")
		_, err = client("stranger").GetEntity(a.Context(), "p", "2", nil)
		a.refused(err, "AuthorizationPermissionMismatch")
		second, err := aztables.NewClientWithSharedKey("https://account1-secondary.table.core.windows.net/People", a.key, a.options)
		a.must(err)
		_, err = second.GetEntity(a.Context(), "p", "2", nil)
		a.must(err)
		_, err = second.AddEntity(a.Context(), entity("p", "3"), nil)
		a.refused(err, "InsufficientAccountPermissions")
	})
}

func assign(a *tables, principal, role string) {
	a.Helper()
	scope := id("Microsoft.Storage/storageAccounts", "account1")
	a.must(a.azure.Do(func(w behaviour.World) error {
		return w.Apply(behaviour.Itself(), scope.Resource("Microsoft.Authorization/roleAssignments", w.GUID()), behaviour.Object{
			"properties": behaviour.Object{"roleDefinitionId": string(azure.SubscriptionID(subscription).Resource(
				"Microsoft.Authorization/roleDefinitions", role)), "principalId": principal, "principalType": "ServicePrincipal"}})
	}))
}

// What was acknowledged is there after the process was killed.
func TestTablesKilled(t *testing.T) {
	withTables(t, core.Options{}, func(a *tables) {
		file := filepath.Join(a.TempDir(), "tables.jsonl")
		for range 2 {
			killed := &plane.Service{Azure: a.azure}
			a.must(killed.Open(file, slog.New(slog.DiscardHandler)))
			defer killed.Close()
			a.open(killed)
			found, _ := a.rows(a.people, nil)
			a.insert(len(found) + 1)
		}
		if found, _ := a.rows(a.people, nil); !slices.Equal(found, []string{"001", "002"}) {
			a.Errorf("there are %v", found)
		}
	})
}
