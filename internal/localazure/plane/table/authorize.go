package table

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
	"kaz/internal/localazure/plane/table/entity"
)

// grant is what a request may do. Its zero value is for a key of the account, which may do everything.
type grant struct {
	// caller is the principal that has sent a token, nil for a signature of any kind.
	caller *behaviour.Principal
	// signature says that there is a shared access signature, with its letters. It is for some kinds of resources of the account, or for
	// a table.
	signature             bool
	letters, kinds, table string
	// within are the keys that the signature is for.
	within keyRange
}

// authenticate finds out by what right a request comes, in an account with a document.
func (c *call) authenticate(w behaviour.World, doc behaviour.Object) (g grant, err error) {
	lite, signed := strings.CutPrefix(c.r.Header.Get("Authorization"), "SharedKey")
	if !signed && c.query.Get("sig") == "" {
		g.caller, err = c.service.Tokens.Caller(c.out, c.r)
		return g, err
	}
	if err := account.CheckKeysAllowed(doc); err != nil {
		return g, err
	}
	if signed {
		return g, c.checkKey(strings.HasPrefix(lite, "Lite"), storage.Keys(doc))
	}
	target := account.Target{Account: c.account, Keys: storage.Keys(doc), Service: "t"}
	g = grant{signature: true, table: strings.ToLower(c.query.Get("tn")), kinds: c.query.Get("srt"), within: rangeOf(c.query)}
	granted := c.query
	if g.table == "" {
		err = target.CheckSAS(c.query)
	} else if !sas.SignedBy(target.Keys, storage.TableSASText("/table/"+c.account+"/"+g.table, c.query), c.query.Get("sig")) {
		err = account.Unsigned("Signature did not match.")
	} else {
		table, _ := w.Get(c.services.Child("tables", g.table))
		granted, err = account.WithPolicy(table, c.query)
	}
	if err != nil {
		return g, err
	}
	g.letters = granted.Get("sp")
	return g, account.CheckUse(c.r, granted, c.now)
}

// allows returns why a request must not carry out an operation.
func (g grant) allows(w behaviour.World, o operation, c *call) error {
	switch {
	case g.caller != nil:
		return g.allowsCaller(w, o, c)
	case !g.signature:
		return nil
	case o.signed == "" || g.table != "" && o.kind != "o":
		return refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
	case g.table != "" && !strings.EqualFold(g.table, c.path.table):
		return account.Unsigned("The signature is for the table " + g.table + ".")
	case g.table == "" && !strings.Contains(g.kinds, o.kind):
		return account.Mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	all := !strings.ContainsFunc(o.signed, func(r rune) bool { return !strings.ContainsRune(g.letters, r) })
	if all || o.any && strings.ContainsAny(g.letters, o.signed) {
		return nil
	}
	return account.Mismatch(account.Permission, "permission")
}

// allowsCaller returns why the sender of a token must not carry out an operation.
func (g grant) allowsCaller(w behaviour.World, o operation, c *call) error {
	const provider = "Microsoft.Storage/storageAccounts/tableServices/"
	allowed := w.Allowed
	if o.data {
		allowed = w.AllowedData
	}
	all := true
	for _, right := range o.rights {
		all = all && allowed(g.caller, provider+right, c.scope())
	}
	if all || o.instead != "" && allowed(g.caller, provider+o.instead, c.scope()) {
		return nil
	}
	return account.Mismatch(account.Permission, "permission")
}

// checkKey returns why a request is not signed with a key of the account. The text of the signature is shorter than that of other
// services, and the lite one has the date and the path alone.
func (c *call) checkKey(lite bool, keys [2]string) error {
	const longest = 15 * time.Minute
	_, credentials, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	name, signature, ok := strings.Cut(strings.TrimSpace(credentials), ":")
	if !ok || name != c.account {
		return account.Unsigned("The account of the signature is not the account of the request.")
	}
	date := cmp.Or(c.r.Header.Get("x-ms-date"), c.r.Header.Get("Date"))
	at, err := http.ParseTime(date)
	if err != nil || c.now.Sub(at).Abs() > longest {
		return account.Unsigned("The date of the request is missing, or more than 15 minutes from now.")
	}
	resource := "/" + c.account + sharedkey.Path(c.r)
	if c.query.Has("comp") {
		resource += "?comp=" + c.query.Get("comp")
	}
	text := date + "\n" + resource
	if !lite {
		text = c.r.Method + "\n" + c.r.Header.Get("Content-MD5") + "\n" + c.r.Header.Get(contentType) + "\n" + text
	}
	if !sas.SignedBy(keys, text, signature) {
		return account.Unsigned("The signature does not fit the request and the keys of the account.")
	}
	return nil
}

// keyRange are keys from one to another, with both. The zero keyRange has all keys.
type keyRange struct {
	first, last entity.Key
	from, to    bool // there is a first or a last one
	whole       bool // the last partition as a whole
}

func rangeOf(v url.Values) keyRange {
	first := entity.Key{Partition: v.Get("spk"), Row: v.Get("srk")}
	last := entity.Key{Partition: v.Get("epk"), Row: v.Get("erk")}
	return keyRange{first: first, last: last, from: v.Has("spk"), to: v.Has("epk"), whole: !v.Has("erk")}
}

// ended reports whether a key is behind the range.
func (r keyRange) ended(k entity.Key) bool {
	if r.whole {
		return r.to && k.Partition > r.last.Partition
	}
	return r.to && k.Compare(r.last) > 0
}

// check returns why a signature does not allow an entity with a key.
func (r keyRange) check(k entity.Key) error {
	if r.from && k.Compare(r.first) < 0 || r.ended(k) {
		return refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation: "+
			"the signature is for other keys.")
	}
	return nil
}
