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
		case c.caller == nil && behaviour.At(doc, "properties.allowSharedKeyAccess") == false:
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
	return c.service.renew(c.container, c.made)
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
		return c.checkSignature(o, t)
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
func (c *call) checkSignature(o operation, t target) error {
	if code, message := sas.Check(c.r, c.query, c.now); code != "" {
		return refuse(http.StatusForbidden, code, "%s", message)
	}
	check := c.checkService
	if c.query.Get("ss") != "" {
		check = c.checkAccount
	}
	if err := check(o, t); err != nil {
		return err
	}
	granted := c.query.Get("sp")
	if !strings.ContainsAny(granted, o.signed) {
		return mismatch(permission, "permission")
	}
	c.onlyNew = strings.Contains(o.signed, "c") && !strings.Contains(granted, "w")
	return nil
}

func unsigned(detail string) error {
	return refuse(http.StatusForbidden, sas.Failed, "%s", sas.Failure(detail))
}

// checkAccount checks the signature for an account.
func (c *call) checkAccount(_ operation, t target) error {
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

// checkService checks the signature for a container or a blob. That for a container allows to list it, and not to change the
// container itself.
func (c *call) checkService(o operation, t target) error {
	resource := "/blob/" + t.account + "/" + t.container
	switch kind := c.query.Get("sr"); kind {
	case "c":
	case "b":
		resource += "/" + c.blob
	default:
		return unsigned(fmt.Sprintf("The signed resource %q is not supported: b and c are.", kind))
	}
	if !sas.SignedBy(t.keys, storage.BlobSASText(resource, c.query), c.query.Get("sig")) {
		return unsigned("Signature did not match.")
	}
	if !o.data || c.blob == "" && c.query.Get("sr") == "b" {
		return mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	return nil
}
