package blob

import (
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/sharedkey"
)

// delegate answers with a key of the user that has sent a token.
func (c serviceCall) delegate() error {
	d := account.Delegation{Caller: c.caller, Service: "b", Now: c.now}
	c.service.Azure.Look(func(w behaviour.World) {
		doc, _ := w.Get(c.container.TopLevel())
		d.Key, d.Tenant = storage.Keys(doc)[0], w.Tenant()
	})
	return d.Reply(c.w, c.r)
}

// isDelegated reports whether a request has a signature by the key of a user, and not by a key of the account.
func (c *call) isDelegated() bool {
	return c.query.Get("skoid") != "" && c.query.Get("ss") == "" && !c.byKey && !sharedkey.Signed(c.r)
}

// delegatedText is the text of a signature by the key of a user for a resource such as /blob/ACCOUNT/CONTAINER/BLOB.
func (c *call) delegatedText(resource string) string {
	// The first versions with the users that an administrator names, with the scope, and with the tenant of another user, and headers and
	// parameters of the request.
	const withUsers, withScope, withTenant, withRequest = "2020-02-10", "2020-12-06", "2025-07-05", "2026-04-06"
	v, version := c.query, c.query.Get("sv")
	text := []string{v.Get("sp"), v.Get("st"), v.Get("se"), resource, account.DelegatedText(v)}
	for _, part := range []struct {
		since string
		names []string
	}{
		{withUsers, []string{"saoid", "suoid", "scid"}}, {withTenant, []string{"skdutid", "sduoid"}},
		{"", []string{"sip", "spr", "sv", "sr", "snapshot"}}, {withScope, []string{"ses"}},
	} {
		if version >= part.since {
			for _, name := range part.names {
				text = append(text, v.Get(name))
			}
		}
	}
	if version >= withRequest {
		headers, parameters := "", ""
		for _, name := range names(v.Get("srh")) {
			headers += name + ":" + c.r.Header.Get(name) + "\n"
		}
		for _, name := range names(v.Get("srq")) {
			parameters += "\n" + name + ":" + v.Get(name)
		}
		text = append(text, headers, parameters)
	}
	for _, header := range []string{"rscc", "rscd", "rsce", "rscl", "rsct"} {
		text = append(text, v.Get(header))
	}
	return strings.Join(text, "\n")
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// checkDelegated returns why a signature by the key of a user does not allow an operation: its user needs the right, too.
func (c *call) checkDelegated(w behaviour.World, o operation, t target, resource string) error {
	user, err := t.SigningUser(c.r, c.query, c.delegatedText(resource), c.now)
	if err != nil {
		return err
	}
	if o.action != "" && !w.AllowedData(user, "Microsoft.Storage/storageAccounts/blobServices/"+o.action, c.container) {
		return account.Mismatch(account.Permission, "permission")
	}
	return nil
}
