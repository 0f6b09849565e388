package blob

import (
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
)

// allow finds the container, and returns why the request may not use it.
func (c *call) allow(o operation, name, container string) (err error) {
	c.service.Azure.Look(func(w behaviour.World) {
		c.now = w.Now()
		e := account.FindEndpoint(w, name, "blob")
		console, _, keys := vm.FindConsole(w, name, container)
		c.container = e.ID.Child("blobServices", "default")
		if container != "" {
			c.container = c.container.Child("containers", container)
		}
		switch {
		case console != "":
			c.machine = console
			err = c.checkConsole(w, o, c.target(name, container, keys))
		default:
			c.secondary = e.Secondary
			if err = e.Check(c.r.Method); err == nil && c.caller == nil && !c.isDelegated() {
				err = account.CheckKeysAllowed(e.Doc)
			}
			if err == nil {
				err = c.check(w, o, c.target(e.Name, container, storage.Keys(e.Doc)))
			}
		}
	})
	return err
}

// target is what a signature can be for, and the container that it is in.
type target struct {
	account.Target
	container string
}

// target returns what a signature is for.
func (c *call) target(name, container string, keys [2]string) target {
	kind := "o"
	switch {
	case container == "":
		kind = "s"
	case c.blob == "":
		kind = "c"
	}
	return target{account.Target{Account: name, Keys: keys, Service: "b", Kind: kind}, container}
}

func (c *call) check(w behaviour.World, o operation, t target) error {
	if err := c.checkRights(w, o, t); err != nil {
		return err
	}
	if t.container == "" {
		return nil
	}
	doc, there := w.Get(c.container)
	if !there && !o.creates {
		return noContainer()
	}
	c.made = storage.MadeAt(doc)
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	return c.service.kept.Renew(c.container.Key(), c.made)
}

// checkRights returns why the token or the signature does not allow an operation.
func (c *call) checkRights(w behaviour.World, o operation, t target) error {
	switch {
	case c.byKey: // for another request
		return nil
	case sharedkey.Signed(c.r):
		c.byKey = true
		return t.CheckKey(c.r, c.now)
	case c.caller == nil:
		return c.checkSignature(w, o, t)
	case o.action == "":
		return nil
	}
	allowed := w.Allowed
	if o.data {
		allowed = w.AllowedData
	}
	if !allowed(c.caller, "Microsoft.Storage/storageAccounts/blobServices/"+o.action, c.container) {
		return account.Mismatch(account.Permission, "permission")
	}
	return nil
}

// checkSignature returns why a shared access signature does not allow an operation.
func (c *call) checkSignature(w behaviour.World, o operation, t target) error {
	container, _ := w.Get(c.container)
	granted, err := account.WithPolicy(container, c.query)
	if err != nil {
		return err
	}
	if err := account.CheckUse(c.r, granted, c.now); err != nil {
		return err
	}
	if c.query.Get("ss") != "" {
		err = t.CheckSAS(c.query)
	} else {
		err = c.checkService(w, o, t)
	}
	if err != nil {
		return err
	}
	if o.action != "" && !strings.ContainsAny(granted.Get("sp"), o.signed) {
		return account.Mismatch(account.Permission, "permission")
	}
	c.onlyNew = strings.Contains(o.signed, "c") && !strings.Contains(granted.Get("sp"), "w")
	return nil
}

// checkService checks the signature for a container, a blob or a snapshot. That for a container allows to list it, and not to change the
// container itself. It is made with a key of the account or of a user.
func (c *call) checkService(w behaviour.World, o operation, t target) error {
	if t.container == "" {
		return account.Unsigned("The signature is for a container or a blob.")
	}
	resource := "/blob/" + t.Account + "/" + t.container
	switch kind := c.query.Get("sr"); kind {
	case "c":
	case "b", "bs":
		resource += "/" + c.blob
	default:
		return account.Unsigned(fmt.Sprintf("The signed resource %q is not supported: b, bs and c are.", kind))
	}
	if c.isDelegated() {
		if err := c.checkDelegated(w, o, t, resource); err != nil {
			return err
		}
	} else if !sas.SignedBy(t.Keys, storage.BlobSASText(resource, c.query), c.query.Get("sig")) {
		return account.Unsigned("Signature did not match.")
	}
	switch whole := c.query.Get("sr") == "c"; {
	case !o.data:
		return refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
	case !whole && (c.blob == "" || (c.query.Get("sr") == "bs") != (c.snapshot != "")):
		return account.Mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	return nil
}
