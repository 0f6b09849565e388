package queue

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
)

// allow finds the queue, and returns why the request may not use it.
func (c *call) allow(o operation) (err error) {
	c.service.Azure.Look(func(w behaviour.World) {
		c.now = w.Now()
		err = c.find(w, o)
	})
	return err
}

func (c *call) find(w behaviour.World, o operation) error {
	e := account.FindEndpoint(w, account.Of(c.r.Host, "queue"), "queue")
	if err := e.Check(c.r.Method); err != nil {
		return err
	}
	c.secondary = e.Secondary
	c.id = e.ID.Child("queueServices", "default")
	if c.name != "" {
		c.id = c.id.Child("queues", c.name)
	}
	if err := c.check(w, o, e); err != nil {
		return err
	}
	if c.name == "" {
		return nil
	}
	if err := storage.CheckQueueName(c.name); err != nil { // documents would be found by names in capitals, too
		return err
	}
	queue, there := w.Get(c.id)
	if !there && !o.creates {
		return noQueue()
	}
	c.made = storage.MadeAt(queue)
	return nil
}

// check returns why the token, the key or the signature does not allow an operation.
func (c *call) check(w behaviour.World, o operation, e account.Endpoint) error {
	if c.caller != nil {
		if !allowed(w, c.caller, o, c.id) {
			return account.Mismatch(account.Permission, "permission")
		}
		return nil
	}
	if err := account.CheckKeysAllowed(e.Doc); err != nil {
		return err
	}
	t := account.Target{Account: e.Name, Keys: storage.Keys(e.Doc), Service: "q", Kind: "o"}
	switch {
	case c.name == "":
		t.Kind = "s"
	case !o.data:
		t.Kind = "c"
	}
	if sharedkey.Signed(c.r) {
		return t.CheckKey(c.r, c.now)
	}
	return c.checkSignature(w, o, t)
}

// allowed reports whether a principal has the rights of one of the lists of an operation.
func allowed(w behaviour.World, caller *behaviour.Principal, o operation, id azure.ID) bool {
	has := w.Allowed
	if o.data {
		has = w.AllowedData
	}
	return slices.ContainsFunc(o.actions, func(together []string) bool {
		return !slices.ContainsFunc(together, func(action string) bool {
			return !has(caller, storage.AccountType+"/queueServices/"+action, id)
		})
	})
}

// checkSignature returns why a shared access signature does not allow an operation. That for a queue is made with a key of the account, and
// may end where a stored access policy ends.
func (c *call) checkSignature(w behaviour.World, o operation, t account.Target) error {
	queue, _ := w.Get(c.id)
	granted, err := account.WithPolicy(queue, c.query)
	if err != nil {
		return err
	}
	if err := account.CheckUse(c.r, granted, c.now); err != nil {
		return err
	}
	if c.query.Get("ss") != "" {
		err = t.CheckSAS(c.query)
	} else {
		err = c.checkOwn(o, t)
	}
	if err != nil {
		return err
	}
	if !strings.ContainsAny(granted.Get("sp"), o.signed) {
		return account.Mismatch(account.Permission, "permission")
	}
	return nil
}

// checkOwn checks the signature for a queue.
func (c *call) checkOwn(o operation, t account.Target) error {
	if c.name == "" || !sas.SignedBy(t.Keys, storage.QueueSASText("/queue/"+t.Account+"/"+c.name, c.query), c.query.Get("sig")) {
		return account.Unsigned("Signature did not match.")
	}
	if !o.own {
		return behaviour.Refusal(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
	}
	return nil
}

func noQueue() error {
	return behaviour.Refusal(http.StatusNotFound, "QueueNotFound", "The specified queue does not exist.")
}
