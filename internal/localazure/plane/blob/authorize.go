package blob

import (
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
)

// storageAudience is the audience of tokens for all accounts.
const storageAudience = "https://storage.azure.com"

// authenticate finds out which principal has sent a token.
func (c *call) authenticate() (err error) {
	if c.r.Header.Get("Authorization") == "" {
		return refuse(http.StatusUnauthorized, "NoAuthenticationInformation",
			"Server failed to authenticate the request. Please refer to the information in the www-authenticate header.")
	}
	own := "https://" + strings.ToLower(c.r.Host)
	token, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	c.caller, err = c.service.Authenticate(token, storageAudience, storageAudience+"/", own, own+"/")
	if err != nil {
		c.w.Header().Set("WWW-Authenticate",
			fmt.Sprintf("Bearer authorization_uri=%s resource_id=%s", c.service.Authority, storageAudience))
		return refuse(http.StatusUnauthorized, "InvalidAuthenticationInfo", "Server failed to authenticate the request: %v", err)
	}
	return nil
}

// allow finds the container, and returns why the request may not use it.
func (c *call) allow(o operation, account, container string) (err error) {
	c.service.Azure.Look(func(w behaviour.World) {
		c.now = w.Now()
		id, doc := accountOf(w, account)
		console, _, keys := vm.FindConsole(w, account, container)
		c.container = id.Child("blobServices", "default")
		if container != "" {
			c.container = c.container.Child("containers", container)
		}
		switch {
		case console != "":
			c.machine = console
			err = c.checkConsole(w, o, target{account, container, keys})
		case id == "":
			err = refuse(http.StatusNotFound, "ResourceNotFound", "The specified account does not exist.")
		case c.caller == nil && !c.isDelegated() && behaviour.At(doc, "properties.allowSharedKeyAccess") == false:
			err = refuse(http.StatusForbidden, "KeyBasedAuthenticationNotPermitted",
				"Key based authentication is not permitted on this storage account.")
		default:
			err = c.check(w, o, target{account, container, storage.Keys(doc)})
		}
	})
	return err
}

func accountOf(w behaviour.World, name string) (azure.ID, behaviour.Object) {
	for id, doc := range behaviour.Everywhere(w, storage.AccountType) {
		if strings.EqualFold(id.Name(), name) {
			return id, doc
		}
	}
	return "", nil
}

// target is what a signature can be for.
type target struct {
	account, container string
	keys               [2]string
}

// permission is the code of a refusal for missing rights.
const permission = "AuthorizationPermissionMismatch"

func mismatch(code, what string) error {
	return refuse(http.StatusForbidden, code, "%s", sas.Mismatch(what))
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
		return c.checkKey(t)
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
		return mismatch(permission, "permission")
	}
	return nil
}

// checkKey returns why a request is not signed with a key of the account. Such a signature allows everything.
func (c *call) checkKey(t target) error {
	if wrong := sharedkey.Check(c.r, t.account, t.keys, c.now); wrong != "" {
		return unsigned(wrong)
	}
	return nil
}

// checkSignature returns why a shared access signature does not allow an operation.
func (c *call) checkSignature(w behaviour.World, o operation, t target) error {
	container, _ := w.Get(c.container)
	granted, err := withPolicy(container, c.query)
	if err != nil {
		return err
	}
	if code, message := sas.Check(c.r, granted, c.now); code != "" {
		return refuse(http.StatusForbidden, code, "%s", message)
	}
	check := c.checkService
	if c.query.Get("ss") != "" {
		check = c.checkAccount
	}
	if err := check(w, o, t); err != nil {
		return err
	}
	if o.action != "" && !strings.ContainsAny(granted.Get("sp"), o.signed) {
		return mismatch(permission, "permission")
	}
	c.onlyNew = strings.Contains(o.signed, "c") && !strings.Contains(granted.Get("sp"), "w")
	return nil
}

func unsigned(detail string) error {
	return refuse(http.StatusForbidden, sas.Failed, "%s", sas.Failure(detail))
}

// checkAccount checks the signature for an account.
func (c *call) checkAccount(_ behaviour.World, _ operation, t target) error {
	kind := "o"
	switch {
	case t.container == "":
		kind = "s"
	case c.blob == "":
		kind = "c"
	}
	switch {
	case !sas.SignedBy(t.keys, storage.AccountSASText(t.account, c.query), c.query.Get("sig")):
		return unsigned("Signature did not match.")
	case !strings.Contains(c.query.Get("ss"), "b"):
		return mismatch("AuthorizationServiceMismatch", "service")
	case !strings.Contains(c.query.Get("srt"), kind):
		return mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	return nil
}

// checkService checks the signature for a container, a blob or a snapshot. That for a container allows to list it, and not to change the
// container itself. It is made with a key of the account or of a user.
func (c *call) checkService(w behaviour.World, o operation, t target) error {
	if t.container == "" {
		return unsigned("The signature is for a container or a blob.")
	}
	resource := "/blob/" + t.account + "/" + t.container
	switch kind := c.query.Get("sr"); kind {
	case "c":
	case "b", "bs":
		resource += "/" + c.blob
	default:
		return unsigned(fmt.Sprintf("The signed resource %q is not supported: b, bs and c are.", kind))
	}
	if c.isDelegated() {
		if err := c.checkDelegated(w, o, t, resource); err != nil {
			return err
		}
	} else if !sas.SignedBy(t.keys, storage.BlobSASText(resource, c.query), c.query.Get("sig")) {
		return unsigned("Signature did not match.")
	}
	switch whole := c.query.Get("sr") == "c"; {
	case !o.data:
		return refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
	case !whole && (c.blob == "" || (c.query.Get("sr") == "bs") != (c.snapshot != "")):
		return mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	return nil
}
