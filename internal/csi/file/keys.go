package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
	"kaz/internal/azure/storage"
	"kaz/internal/csi"
	"kaz/internal/plan/parameter"
	"kaz/internal/plan/share"
)

// Names of the values of a Secret with the key of an account.
const (
	SecretAccount = "azurestorageaccountname"
	secretKey     = "azurestorageaccountkey"
)

// Keys reads the keys of accounts. They are kept for a minute.
type Keys struct {
	azure azure.Writer
	read  *memo[[]storage.Key]
}

// NewKeys returns the keys of accounts.
func NewKeys(from azure.Writer) *Keys { return &Keys{from, newMemo[[]storage.Key](keepFor)} }

// Of returns a key of an account: the first, or the newest.
func (k *Keys) Of(ctx context.Context, account azure.ID, newest bool) (secret.Text, error) {
	all, err := k.read.get(ctx, account.Key(), func(ctx context.Context) ([]storage.Key, error) {
		doc, err := azure.Do(ctx, k.azure, azure.Request{Verb: azure.Post, ID: account, Action: "listKeys"})
		if err != nil {
			return nil, err
		}
		var answer storage.Keys
		if err := json.Unmarshal(doc, &answer); err != nil {
			return nil, errors.New("the keys of storage account " + account.Name() + " cannot be read") // the cause has secrets
		}
		return answer.Keys, nil
	})
	if err != nil {
		return secret.Text{}, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(k storage.Key) bool { return k.Value.IsZero() })
	if len(all) == 0 {
		return secret.Text{}, &azure.Error{Kind: azure.NotFound, ID: account, Message: "storage account " + account.Name() + " has no key"}
	}
	if newest {
		slices.SortStableFunc(all, func(a, b storage.Key) int { return madeAt(b).Compare(madeAt(a)) })
	}
	return all[0].Value, nil
}

// Refused forgets the keys of an account if they have the key, which its file server refuses: [Keys.Of] reads them again.
func (k *Keys) Refused(account azure.ID, key secret.Text) {
	all, kept := k.read.peek(account.Key())
	if kept && slices.ContainsFunc(all, func(k storage.Key) bool { return k.Value == key }) {
		k.read.forget(account.Key())
	}
}

func madeAt(k storage.Key) time.Time {
	at, err := time.Parse(time.RFC3339Nano, k.Created)
	if err != nil {
		return time.Time{}
	}
	return at
}

// ReadSecret returns the credentials in the values of a Secret, and whether it has any. A user may have written them: the error names
// the value that is no name or key of an account.
func ReadSecret(values map[string]string) (c Credentials, given bool, err error) {
	value := func(names ...string) (name, value string) {
		for _, name := range names {
			if v := strings.TrimSpace(parameter.Lookup(values, name)); v != "" {
				return name, v
			}
		}
		return "", ""
	}
	accountName, account := value(SecretAccount, "accountname")
	keyName, key := value(secretKey, "accountkey")
	c = Credentials{Account: account, Key: secret.New(key)}
	if account == "" || key == "" {
		return c, false, nil
	}
	if err := share.CheckAccount(account); err != nil {
		return c, true, fmt.Errorf("%s: %w", accountName, err)
	}
	if err := share.CheckKey(key); err != nil {
		return c, true, fmt.Errorf("%s: %w", keyName, err)
	}
	return c, true, nil
}

// requestSecret returns the credentials in the Secret of a request, and whether it has any.
func requestSecret(request string, secrets map[string]string) (Credentials, bool, error) {
	c, given, err := ReadSecret(secrets)
	if err != nil {
		return Credentials{}, false, csi.Invalid("%s: the Secret of the request: %v", request, err)
	}
	return c, given, nil
}

// SecretOf returns the values of the Secret with the credentials.
func SecretOf(c Credentials) map[string]string {
	return map[string]string{SecretAccount: c.Account, secretKey: c.Key.Reveal()}
}
