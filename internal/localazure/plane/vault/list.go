package vault

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	resource "kaz/internal/localazure/behaviour/vault"
)

// longestPage is the most elements on a page of a list.
const longestPage = 25

// page returns the page of a list that the request asks for, with the address of the next one. Elements are in the order of their keys.
func page[T any](c *call, all []T, key func(T) string) (any, error) {
	most := longestPage
	if text := c.query.Get("maxresults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > longestPage {
			return nil, bad("maxresults is %q, 1 to %d are allowed.", text, longestPage)
		}
		most = n
	}
	slices.SortStableFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if token := c.query.Get("$skiptoken"); token != "" {
		first, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, bad("$skiptoken %q is not valid.", token)
		}
		all = slices.DeleteFunc(all, func(one T) bool { return key(one) < string(first) })
	}
	var next *string
	if len(all) > most {
		query := url.Values{"api-version": {c.query.Get("api-version")}, "maxresults": {strconv.Itoa(most)},
			"$skiptoken": {base64.RawURLEncoding.EncodeToString([]byte(key(all[most])))}}
		next = new("https://" + c.r.Host + c.r.URL.Path + "?" + query.Encode())
		all = all[:most]
	}
	return struct {
		Value []T     `json:"value"`
		Next  *string `json:"nextLink"`
	}{append([]T{}, all...), next}, nil
}

func keyOf(b bundle) string { return b.ID }

// withoutVersion is the ID of a secret in lists of secrets.
func withoutVersion(v resource.Version) string { return strings.TrimSuffix(v.ID, "/"+v.Version) }

// list lists the secrets, each with its current version.
func (c *call) list() (any, error) {
	var all []bundle
	for _, doc := range c.List(c.vault, "Microsoft.KeyVault/vaults/secrets") {
		versions := resource.Versions(doc)
		current := versions[len(versions)-1]
		shown := c.show(current)
		shown.ID = withoutVersion(current)
		all = append(all, shown)
	}
	return page(c, all, keyOf)
}

func (c *call) versions() (any, error) {
	var all []bundle
	if doc, there := c.Get(c.secret); there {
		for _, v := range resource.Versions(doc) {
			all = append(all, c.show(v))
		}
	}
	return page(c, all, keyOf)
}

// deleted returns a deleted secret as replies have it.
func (c *call) deleted(d resource.Deleted) bundle {
	versions := resource.Versions(d.Secret)
	shown := c.show(versions[len(versions)-1])
	host, _, _ := strings.Cut(strings.TrimPrefix(shown.ID, "https://"), "/")
	shown.RecoveryID = "https://" + host + "/deletedsecrets/" + d.Name
	shown.DeletedDate, shown.ScheduledPurgeDate = d.Deleted.Unix(), d.Purge.Unix()
	return shown
}

func (c *call) listDeleted() (any, error) {
	var all []bundle
	for _, d := range resource.DeletedSecrets(c.doc, c.now) {
		shown := c.deleted(d)
		shown.ID = shown.ID[:strings.LastIndexByte(shown.ID, '/')]
		all = append(all, shown)
	}
	return page(c, all, keyOf)
}

// findDeleted returns the deleted secret in the path.
func (c *call) findDeleted() (resource.Deleted, error) {
	d, there := resource.FindDeleted(c.doc, c.secret.Name(), c.now)
	if !there {
		return d, refuse(http.StatusNotFound, "SecretNotFound", "Deleted Secret not found: %s", c.secret.Name())
	}
	return d, nil
}

func (c *call) getDeleted() (any, error) {
	d, err := c.findDeleted()
	if err != nil {
		return nil, err
	}
	return c.deleted(d), nil
}

func (c *call) purge() (any, error) {
	if _, err := c.findDeleted(); err != nil {
		return nil, err
	}
	if _, purgeable := resource.Retention(c.doc); !purgeable {
		return nil, refuse(http.StatusForbidden, "Forbidden", "Operation \"purge\" is not allowed because purge protection is enabled for "+
			"this vault. Key Vault service will automatically purge it after the retention period has passed. Vault: %s",
			c.vault.Name())
	}
	resource.PurgeSecret(c, c.secret)
	return nil, nil
}

// recover stores a deleted secret again. The reply has no value.
func (c *call) recover() (any, error) {
	d, err := c.findDeleted()
	if err != nil {
		return nil, err
	}
	resource.RecoverSecret(c, c.vault, d)
	v, err := c.find()
	return c.show(v), err
}
